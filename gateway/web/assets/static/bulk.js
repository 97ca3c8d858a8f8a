// Acts on several messages, whose rows are picked. The buttons are those of a plain form.

import { announce, refresh } from './cards.js';
import { commentsIn, countFromList, forgetComments, mayDrop, reasonFromList } from './comments.js';
import { composing } from './composing.js';
import { open, openCard, openNext } from './item.js';
import { linkOf, markDecided, rowOf, rows } from './list.js';
import { call } from './rpc.js';
import { deed, toast, undoable, warn } from './toast.js';
import { visible } from './visible.js';
import { scrollOn, wasShown } from './whole.js';

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

const callsOf = (groups) => groups.flatMap((g) => g.calls.map(([form]) => form));
const count = (groups, of) => groups.reduce((n, g) => n + g[of].length, 0);
const isHigh = (pick) => pick.closest('.entry').hasAttribute('data-high');
const isUnseen = (pick) => new URLSearchParams(pick.value).getAll('of').some((named) => !wasShown(named.split(' ')[1]));
const waits = (pick) => pick.closest('.entry').hasAttribute('data-waits');

/** Shows how many messages each button is for, and hides those that are for none. */
function countPicks() {
  if (!bar) return;
  const all = picks();
  const groups = messagesOf(all);
  const calls = count(groups, 'calls');
  const many = count(groups, 'ids');
  bar.querySelector('.picked').textContent = all.length ? `${all.length} selected${many > all.length ? `, ${many} calls` : ''}` : '';
  const fits = { once: calls > 0, deny: calls > 0, dismiss: all.some((p) => !waits(p)), snooze: all.some(waits) };
  for (const b of bar.querySelectorAll('button[name=do]')) b.hidden = !(fits[b.value.split('-')[0]] ?? true);
  const once = bar.querySelector('button[value=once]');
  if (once) {
    const [unseen, high] = [all.filter(isUnseen).length, all.filter(isHigh).length]; // nothing is allowed that was not shown
    once.disabled = unseen + high > 0;
    once.textContent = high ? `${high} of high risk: open each` : unseen ? `Open ${unseen} to allow` : 'Allow once';
  }
  const why = bar.querySelector('.why');
  const { sent } = countFromList(openCard(), callsOf(groups));
  if (why) why.querySelector('[data-comments]').textContent = sent ? ` with ${commentsIn(sent)}` : '';
  if (why) why.hidden = calls === 0;
  if (why && !all.length) why.open = false;
  const menu = bar.querySelector('.menu');
  if (menu) menu.hidden = !fits.snooze;
}

/** Returns the box of a row; null for one that was decided, which leaves the list soon. */
const boxOf = (row) => row?.matches(':not([data-decided])') ? row.querySelector('.pick') : null;

function select(rows) {
  for (const box of rows.map(boxOf)) if (box) box.checked = true;
  countPicks();
}

/** Selects the row of a link. */
export const pickRow = (link) => select([link.closest('.entry')]);

/** Selects the rows of the section with the focus, or with the open message. */
export function pickGroup() {
  const row = document.activeElement?.closest('.entry') ?? rowOf(openCard()?.id) ?? document.querySelector('#stream .entry');
  let first = row;
  while (first?.previousElementSibling?.matches('.entry')) first = first.previousElementSibling;
  const all = [];
  for (let e = first; e?.matches('.entry'); e = e.nextElementSibling) all.push(e);
  select(all);
}

/** Picks the row with the focus or the open message, or picks it no more. */
export function pick() {
  const row = document.activeElement?.closest('.entry') ?? rowOf(openCard()?.id);
  const box = boxOf(row);
  if (!box) return;
  box.checked = !box.checked;
  countPicks();
}

export const pickAll = () => select(rows());

export function pickNone() {
  selecting(false);
  for (const p of picks()) p.checked = false;
  countPicks();
}

/** Shows more of the picked calls that were not shown whole: the open one further on, or the next one. */
function showUnseen() {
  const rows = picks().filter(isUnseen).map((p) => p.closest('.entry'));
  const card = openCard();
  if (card && rows.includes(rowOf(card.id)) && !wasShown(card.dataset.digest)) scrollOn(card);
  else if (rows.length) open(linkOf(rows[0]).href, { focus: false });
}

/** Presses a button of the bar, if it is for a picked message. */
export function pressBulk(value) {
  const button = bar?.querySelector(`button[value="${value}"]`);
  const why = value === 'deny' && button?.closest('.why:not([open], [hidden])');
  if (why) {
    why.open = true;
    why.querySelector('input').focus();
    return undefined;
  }
  if (value === 'once' && button?.disabled && !button.hidden) return showUnseen();
  if (button && !button.hidden && !button.closest('[hidden]')) button.click();
  return undefined;
}

/** Returns the names of the rows that have some of the messages, as the list calls them. They are read before the rows leave. */
function namesOf(rows) {
  const all = rows.map((pick) => ({ ids: new Set(new URLSearchParams(pick.value).getAll('id')), name: pick.closest('.entry').querySelector('.what').textContent.trim() }));
  return (ids) => all.filter((r) => ids.some((id) => r.ids.has(id))).map((r) => r.name);
}

/** Decides the calls among the messages, in one call for each agent's mail, and tells how it ended and for which. */
async function decide(decision, groups, reason, names) {
  const decided = [];
  const wrong = [];
  for (const { as, calls } of groups.filter((g) => g.calls.length)) {
    const reasonFor = (form) => (decision === 'deny' ? reasonFromList(openCard(), form, reason) : reason);
    const { results } = await call('decide_many', { as, key: crypto.randomUUID?.() ?? '', decisions: calls.map(([form, digest]) => ({ form, digest, decision, ...(reasonFor(form) && { reason: reasonFor(form) }) })) });
    for (const r of results) (r.error ? wrong : decided).push(r);
  }
  const ids = decided.map((r) => r.form);
  markDecided(ids, decision === 'once' ? '✓ Allowed once' : '✕ Denied');
  forgetComments(ids);
  const ended = { voted: '◐ Voted, and waiting for others', answering: '◌ Kept until the node of its agent can be reached' };
  const counts = Map.groupBy(decided, (r) => ended[r.outcome?.status] ?? (decision === 'once' ? '✓ Allowed once' : '✕ Denied'));
  if (ids.length) {
    const said = document.createElement('div');
    for (const [words, of] of counts) said.append(deed(`${words}, ${of.length} ${of.length === 1 ? 'call' : 'calls'}`, ...names(of.map((r) => r.form))));
    toast(said);
    announce([...said.children].map((p) => p.textContent).join('. '));
  }
  if (wrong.length) warn(`${wrong.length} of ${wrong.length + ids.length} calls were not decided. ${names([wrong[0].form])[0] ?? 'The first'}: ${wrong[0].error.message}`);
  if (ids.includes(openCard()?.dataset.id) && !openNext()) await refresh(openCard());
}

/** Reports whether a decision may drop the comments that do not go with it: the first press says that they are not sent. */
function mayDropComments(decision, groups) {
  const { sent, unsent } = countFromList(openCard(), callsOf(groups));
  const many = decision === 'deny' ? unsent : sent + unsent;
  const about = `${decision} ${many} ${callsOf(groups)}`;
  if (bar.toldOf !== about) bar.toldAt = undefined;
  bar.toldOf = about;
  const why = decision === 'deny' ? `: ${many === 1 ? 'its call is' : 'their calls are'} not open. Press again to deny, or open ${many === 1 ? 'it' : 'them'}.` : ' when you allow. Press again to allow, or deny.';
  return !many || mayDrop(bar, () => warn(`${commentsIn(many)} ${many === 1 ? 'is' : 'are'} not sent${why}`));
}

const most = 256; // messages of one call

/** Moves messages in one call for each agent's mail. Returns the number of those that moved, and the refused ones. */
async function move(what, groups, until) {
  let moved = 0;
  const refused = [];
  for (const { as, ids } of groups) {
    for (let i = 0; i < ids.length; i += most) {
      const messages = ids.slice(i, i + most).map((id) => ({ id }));
      const got = await call('move_messages', { as, messages, do: what === 'wake' ? 'snooze' : what, ...(until && { until }) });
      moved += got.moved;
      refused.push(...(got.refused ?? []).map(({ id, error }) => ({ as, id, error })));
    }
  }
  return { moved, refused };
}

/** Moves the messages, tells of those that were refused, and offers to undo it. */
async function moveAll(value, groups, names) {
  const [what, hours] = value.split('-');
  const { moved, refused } = await move(what, groups, hours && new Date(Date.now() + Number(hours) * 3_600_000).toISOString());
  const why = refused.length ? `, ${refused.length} refused: ${visible(refused[0].error.message)}` : '';
  if (!moved) throw new Error(why.slice(2));
  const isRefused = (as, id) => refused.some((r) => r.as === as && r.id === id);
  const back = groups.map(({ as, ids }) => ({ as, ids: ids.filter((id) => !isRefused(as, id)) }));
  const said = deed(`${{ dismiss: 'Done', restore: 'Not done', wake: 'Brought back', snooze: 'Snoozed' }[what]}, ${moved}${why}`, ...names(back.flatMap((g) => g.ids)));
  announce(said.textContent);
  if (undoOf[what]) undoable(said, () => move(undoOf[what], back));
}

async function submitted(event) {
  event.preventDefault();
  const value = event.submitter?.value;
  if (!value) return;
  const isFor = { dismiss: (p) => !waits(p), snooze: waits }[value.split('-')[0]] ?? (() => true);
  const picked = picks().filter(isFor);
  const [groups, names] = [messagesOf(picked), namesOf(picked)];
  const decides = value === 'once' || value === 'deny';
  if (decides && !mayDropComments(value, groups)) return;
  const reason = value === 'deny' ? bar.querySelector('[name=reason]').value.trim() : '';
  for (const menu of bar.querySelectorAll('details')) menu.open = false;
  for (const b of bar.querySelectorAll('button')) b.disabled = true; // until it is durable
  document.getElementById('rows').focus({ preventScroll: true });
  try {
    if (decides) await decide(value, groups, reason, names);
    else await moveAll(value, groups, names);
    bar.reset();
    pickNone();
  } catch (refused) {
    warn(refused.message);
  }
  for (const b of bar.querySelectorAll('button')) b.disabled = false;
  countPicks();
}

/** Has a click at a row select it, and not open it. A finger has no other way. */
function selecting(is) {
  const button = document.getElementById('select');
  if (!button) return;
  button.ariaPressed = String(is);
  button.closest('.list').toggleAttribute('data-selecting', is);
}

function startSelecting() {
  const button = document.getElementById('select');
  if (!button) return;
  button.hidden = false;
  button.addEventListener('click', () => {
    const is = button.ariaPressed !== 'true';
    if (is) selecting(true);
    else pickNone();
  });
  document.getElementById('stream').addEventListener('click', (e) => {
    const box = button.ariaPressed === 'true' && boxOf(e.target.closest('.entry'));
    if (!box || e.target === box || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    e.stopPropagation();
    box.checked = !box.checked;
    countPicks();
  }, true);
}

export function startBulk() {
  if (!bar) return;
  startSelecting();
  bar.addEventListener('submit', submitted);
  bar.addEventListener('keydown', (e) => {
    if (e.key !== 'Enter' || composing(e) || !e.target.matches('[name=reason]')) return;
    e.preventDefault();
    bar.querySelector('button[value=deny]').click();
  });
  bar.addEventListener('reset', () => { for (const menu of bar.querySelectorAll('details')) menu.open = false; });
  for (const name of ['parley-shown', 'remarked']) document.addEventListener(name, countPicks);
  bar.addEventListener('reset', () => { selecting(false); setTimeout(countPicks); });
  document.getElementById('stream').addEventListener('change', countPicks);
}
