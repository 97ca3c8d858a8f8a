// Decisions that wait a moment before they are sent, so that they can be taken back. One waits at a time.

import { announce, refresh } from './cards.js';
import { open, openNext } from './item.js';
import { rows } from './list.js';
import { call, home } from './rpc.js';
import { toast } from './toast.js';
import { visible } from './visible.js';

const largest = 60_000; // bytes that a closing page can still send

let waiting; // the decision: { calls, ids, card, ended, note, timer }

/** Returns how long a decision waits, in milliseconds: 5 s, or as many seconds as the tab keeps under "parley.undo". */
function pause() {
  try {
    return 1000 * Number(sessionStorage.getItem('parley.undo') ?? 5);
  } catch {
    return 5000;
  }
}

/** Reports whether calls can wait: a page that is closed meanwhile has to send them. */
export const mayWait = (calls) => pause() > 0 && new TextEncoder().encode(JSON.stringify(calls)).length < largest;

/** Marks the rows of messages as decided, or as waiting again. */
function mark(ids, decided) {
  document.body.dataset.deciding = decided ? ids.join(' ') : '';
  for (const r of rows()) {
    if (!ids.includes(r.dataset.id)) continue;
    r.toggleAttribute('data-waits', !decided);
    r.toggleAttribute('data-deciding', decided);
  }
}

/**
 * Sends a decision after a moment, or before another one. Until then a toast takes it back. The next item opens at once.
 * @param {{calls: [string, object][], ids: string[], said: string, card?: Element, ended: () => void}} decision with the operations and
 * their bodies, the IDs of the calls decided, and the card of one of them if it is open
 */
export function decideLater(decision) {
  if (waiting && waiting.ids.every((id) => decision.ids.includes(id))) forget(); // it is decided anew
  else flush();
  const words = document.createElement('span');
  words.textContent = visible(decision.said);
  const undo = document.createElement('button');
  undo.type = 'button';
  undo.textContent = 'Undo';
  const content = document.createElement('span');
  content.className = 'undo';
  content.append(words, ' · ', undo);
  waiting = { ...decision, note: toast(content), timer: setTimeout(flush, pause()) };
  undo.addEventListener('click', takeBack);
  decision.card?.toggleAttribute('inert', true);
  mark(decision.ids, true);
  announce(`${decision.said}. Undo takes it back.`);
  if (decision.card) openNext();
}

/** Ends the waiting of a decision, and returns it. */
function forget() {
  const d = waiting;
  waiting = undefined;
  if (!d) return d;
  clearTimeout(d.timer);
  d.note.remove();
  document.body.dataset.deciding = '';
  return d;
}

function takeBack() {
  const d = forget();
  if (!d) return;
  mark(d.ids, false);
  announce('Taken back: nothing was decided');
  if (!d.card) return;
  d.card.toggleAttribute('inert', false);
  if (d.card.isConnected) d.card.focus();
  else open(d.card.querySelector('form.ask').action);
}

/** Sends the decision that waits. */
async function flush() {
  const d = forget();
  if (!d) return;
  try {
    const results = [];
    for (const [operation, body] of d.calls) results.push(...(await call(operation, body)).results ?? []);
    const wrong = results.filter((r) => r.error);
    d.ended();
    if (wrong.length > 0) say(`${wrong.length} of ${results.length} calls were not decided: ${wrong[0].error.message}`);
  } catch (refused) {
    say(`Not decided: ${refused.code === 'UNAUTHENTICATED' ? 'the session has ended, run parley open for another.' : refused.message}`);
    mark(d.ids, false);
  }
  d.card?.toggleAttribute('inert', false);
  if (d.card?.isConnected) await refresh(d.card);
}

function say(text) {
  const words = document.createElement('span');
  words.className = 'failure';
  words.role = 'alert';
  words.textContent = visible(text);
  toast(words);
}

/** Sends the decision that waits from a page that is closed, or may be without notice. */
function leave() {
  const d = forget();
  if (!d) return;
  for (const [operation, body] of d.calls) {
    fetch(`${home}/rpc/${operation}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), keepalive: true }).then(
      (r) => { if (r.ok) d.ended(); else mark(d.ids, false); }, () => mark(d.ids, false),
    );
  }
  d.card?.toggleAttribute('inert', false);
}

addEventListener('pagehide', leave);
document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'hidden') leave(); });
