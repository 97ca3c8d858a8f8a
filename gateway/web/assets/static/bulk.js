// Acts on several messages, whose rows are picked. The buttons are those of a plain form.

import { announce } from './cards.js';
import { openCard } from './item.js';
import { rowOf } from './list.js';
import { call } from './rpc.js';
import { toast, undoable } from './toast.js';
import { decideLater } from './undo.js';
import { visible } from './visible.js';

const bar = document.getElementById('bulk');
const undoOf = { dismiss: 'restore', snooze: 'wake' };

const picks = () => [...document.querySelectorAll('#stream .pick:checked')];

/** Reports whether rows are picked. */
export const isPicking = () => picks().length > 0;

/** Returns the messages of picked rows by the agent with the mail: their IDs, and the decisions on the open calls among them. */
function messagesOf(rows) {
  const all = new Map();
  for (const pick of rows) {
    const q = new URLSearchParams(pick.value);
    const as = q.get('as') ?? '';
    if (!all.has(as)) all.set(as, { as, ids: [], calls: [] });
    all.get(as).ids.push(...q.getAll('id'));
    all.get(as).calls.push(...q.getAll('of').map((named) => named.split(' ')));
  }
  return [...all.values()];
}

const count = (groups, of) => groups.reduce((n, g) => n + g[of].length, 0);
const waits = (pick) => pick.closest('.entry').hasAttribute('data-waits');

/** Shows how many messages each button is for, and hides those that are for none. */
export function countPicks() {
  if (!bar) return;
  const all = picks();
  const groups = messagesOf(all);
  const calls = count(groups, 'calls');
  bar.querySelector('.picked').textContent = all.length ? `${count(groups, 'ids')} picked` : '';
  const fits = { once: calls > 0, deny: calls > 0, dismiss: all.some((p) => !waits(p)), snooze: all.some(waits) };
  for (const b of bar.querySelectorAll('button[name=do]')) b.hidden = !(fits[b.value.split('-')[0]] ?? true);
  const menu = bar.querySelector('.menu');
  if (menu) menu.hidden = !fits.snooze;
}

/** Picks the row with the focus or the open message, or picks it no more. */
export function pick() {
  const row = document.activeElement?.closest('.entry') ?? rowOf(openCard()?.id);
  const box = row?.querySelector('.pick');
  if (!box) return;
  box.checked = !box.checked;
  countPicks();
}

export function pickAll() {
  for (const p of document.querySelectorAll('#stream .pick')) p.checked = true;
  countPicks();
}

export function pickNone() {
  for (const p of picks()) p.checked = false;
  countPicks();
}

/** Presses a button of the bar, if it is for a picked message. */
export function pressBulk(value) {
  const button = bar?.querySelector(`button[value="${value}"]`);
  if (button && !button.hidden && !button.closest('[hidden]')) button.click();
}

function decide(decision, groups) {
  const calls = groups.filter((g) => g.calls.length).map(({ as, calls }) => ['decide_many', {
    as, key: crypto.randomUUID?.() ?? '', decisions: calls.map(([form, digest]) => ({ form, digest, decision })),
  }]);
  const ids = groups.flatMap((g) => g.calls.map(([id]) => id));
  const card = openCard();
  decideLater({ calls, ids, said: `${decision === 'once' ? '✓ Allowed once' : '✕ Denied'} ×${ids.length}`, card: ids.includes(card?.dataset.id) ? card : null, ended: () => {} });
}

/** Performs an operation on each message, and offers to undo it. */
async function each(value, groups) {
  const [what, hours] = value.split('-');
  const until = hours && new Date(Date.now() + Number(hours) * 3_600_000).toISOString();
  const operation = { dismiss: 'dismiss', restore: 'restore_message', wake: 'snooze', snooze: 'snooze' };
  const run = async (name, more) => {
    for (const { as, ids } of groups) for (const id of ids) await call(operation[name], { as, id, ...more });
  };
  await run(what, until && { until });
  const said = `${{ dismiss: 'Done', restore: 'Not done', wake: 'Brought back', snooze: 'Snoozed' }[what]}: ${count(groups, 'ids')}`;
  announce(said);
  if (undoOf[what]) undoable(said, () => run(undoOf[what]));
}

async function submitted(event) {
  event.preventDefault();
  const value = event.submitter?.value;
  if (!value) return;
  const isFor = { dismiss: (p) => !waits(p), snooze: waits }[value.split('-')[0]] ?? (() => true);
  const groups = messagesOf(picks().filter(isFor));
  for (const menu of bar.querySelectorAll('details')) menu.open = false;
  pickNone();
  document.getElementById('rows').focus({ preventScroll: true });
  try {
    if (value === 'once' || value === 'deny') decide(value, groups);
    else await each(value, groups);
  } catch (refused) {
    const words = document.createElement('span');
    words.className = 'failure';
    words.role = 'alert';
    words.textContent = visible(refused.message);
    toast(words);
  }
}

export function startBulk() {
  if (!bar) return;
  bar.addEventListener('submit', submitted);
  bar.addEventListener('reset', () => setTimeout(countPicks));
  document.getElementById('stream').addEventListener('change', countPicks);
}
