// The keys of the page: of an approval, and to move about.

import { composing } from './composing.js';
import { home } from './rpc.js';
import { scrollOn } from './whole.js';

const pause = 700; // milliseconds for which an item that has just appeared takes no decision: it is for what was there before
const holds = new WeakMap(); // the timers, by card

/** Holds decisions on an item back, by keys and by clicks, since the person may not have seen it yet. */
export function hold(card) {
  clearTimeout(holds.get(card));
  card.removeAttribute('data-keys');
  card.setAttribute('data-held', '');
  holds.set(card, setTimeout(() => {
    card.setAttribute('data-keys', '');
    card.removeAttribute('data-held');
  }, pause));
}

/** Reports whether an item takes no decision yet. */
export const isHeld = (card) => card.hasAttribute('data-held');

/** Focuses the first input, or the message itself, never a button: a key press meant for something else must not answer. */
export function focusFirst(card, onMessage = false) {
  if (onMessage || card?.matches('[data-type=approval]')) card?.focus({ preventScroll: true });
  else {
    (card?.querySelector('.field :is(input, textarea, select)') ?? card)?.focus();
  }
}

const ofWriting = 'input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]';

const partOf = { d: '.why', e: '.edit', r: '.asks', m: '.leave' }; // of the bar, by the key that opens it

/**
 * Handles a key of an approval: A allows once, or scrolls what was not shown yet; with Shift it makes the rule that is chosen. D
 * gives a reason, E edits the input, R asks back and M allows more; A does nothing until that is closed.
 */
function decide(card, key, event) {
  const part = card.querySelector(`.bar ${partOf[key]}`);
  if (key === 'a') {
    event.preventDefault();
    if (card.querySelector('.bar .act[open]')) return; // a denial was begun, or another input
    const button = card.querySelector(event.shiftKey ? '.choices button[value=always]' : '.choices :is(button[value=once], a.see)');
    if (button?.matches('[data-unseen]')) scrollOn(card);
    else button?.click();
  } else if (part) {
    event.preventDefault();
    part.open = true;
    const input = key === 'e' ? card.querySelector('.edit-card textarea') : part.querySelector('textarea, input');
    input.focus(); // at once: what is typed next is for it
    swallow(event.code);
  }
}

/** Keeps the repetitions of a key that is held out of the text that it has opened. */
function swallow(code) {
  const stop = (e) => { if (e.code === code && e.repeat) e.preventDefault(); };
  document.addEventListener('keydown', stop, true);
  document.addEventListener('keyup', () => document.removeEventListener('keydown', stop, true), { once: true });
}

/** Chooses the option with a number, of the field with the focus or else the first one with options. A button gets the focus alone. */
function choose(number) {
  const card = document.querySelector('#alone > .message[data-waits]:not([data-type=approval])');
  const fields = [...card?.querySelectorAll('.field:has(.choices)') ?? []];
  const field = fields.find((f) => f.contains(document.activeElement)) ?? fields[0];
  const option = field?.querySelectorAll('.choices :is(input, button)')[number - 1];
  option?.focus();
  if (option?.matches('input')) option.click();
}

/** Moves the focus to the next row of the list, or the one before. With picks it selects the rows on the way. */
function step(by, pick) {
  const rows = [...document.querySelectorAll('#stream .entry a')];
  if (rows.length && !rows[0].checkVisibility()) { // the item is alone in the window
    document.querySelector(`#alone .steps ${by > 0 ? '.next' : '.prev'}[href]`)?.click();
    return;
  }
  const at = rows.indexOf(document.activeElement);
  const current = rows.findIndex((a) => a.hasAttribute('aria-current'));
  const to = rows[at >= 0 ? at + by : Math.max(current, 0)];
  if (pick && at >= 0) pick(rows[at]);
  to?.focus();
  to?.scrollIntoView({ block: 'nearest' });
  if (pick && to) pick(to);
}

/** Returns the approval that a key is for: the one with the focus, or the open one unless the focus is elsewhere. */
function approvalFor(at, more) {
  const waits = '.message[data-type=approval][data-waits]';
  if (at.closest?.('.message')) return at.closest(waits);
  const isFree = at.matches?.('html, body, #main, #rows, .entry a[aria-current]') && !more.isPicking();
  return isFree && more.shown()?.matches(waits) ? more.shown() : null;
}

const places = { n: '/questions', m: '/mail', a: '/agents', h: '/history', r: '/access' };
let goes = -Infinity; // when G was pressed, in milliseconds; the next key is a place for a while
const goesFor = 1500;

/** Goes to the place of a letter behind G, and reports whether the key was for that. */
function goTo(key, event) {
  const isPlace = event.timeStamp - goes < goesFor;
  goes = key === 'g' && !isPlace ? event.timeStamp : -Infinity;
  if (isPlace && places[key]) location.assign(home + places[key]);
  if (isPlace || key === 'g') event.preventDefault();
  return isPlace || key === 'g';
}

/** Handles a key. */
function pressed(event, more) {
  if (composing(event) || event.altKey || document.querySelector('dialog[open]')) return;
  const key = event.key.toLowerCase();
  if (key === 'k' && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    more.palette();
    return;
  }
  if (key === 'a' && (event.ctrlKey || event.metaKey) && event.target.matches?.('.entry > *, #rows')) {
    event.preventDefault();
    more.pickGroup();
    return;
  }
  if (event.ctrlKey || event.metaKey) return;
  const [at] = event.composedPath(); // within an element's shadow, too
  const card = approvalFor(at, more);
  const takesKeys = card?.hasAttribute('data-keys') && !event.repeat;
  if (takesKeys && at.matches('.why textarea') && event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault();
    card.querySelector('.choices button[value=deny]')?.click();
  }
  if (takesKeys && at.matches('.asks textarea') && event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault();
    card.querySelector('[data-asks]').click();
  }
  if (at.matches?.(ofWriting)) return;
  if (!event.repeat && goTo(key, event)) return;
  if (takesKeys) decide(card, key, event);
  if (event.defaultPrevented || event.repeat && !['j', 'k', 'arrowdown', 'arrowup'].includes(key)) return;
  if (!card && more.isPicking()) {
    const bulk = event.shiftKey ? '' : { a: 'once', d: 'deny', e: 'dismiss', s: 'snooze-4' }[key];
    if (bulk || key === 'escape') {
      event.preventDefault();
      if (bulk) more.pressBulk(bulk);
      else more.pickNone();
      return;
    }
  }
  if (['arrowdown', 'arrowup'].includes(key) && !event.shiftKey && !at.matches?.('input, .entry *, #rows') && more.line(key === 'arrowdown' ? 1 : -1)) {
    event.preventDefault();
    return;
  }
  if (/^[1-9]$/.test(key)) choose(Number(key));
  if ('eus'.includes(key) && more.shown() && !more.shown().hasAttribute('data-keys')) return;
  const act = { j: () => step(1, event.shiftKey && more.pickRow), k: () => step(-1, event.shiftKey && more.pickRow), e: more.done, u: more.unread, s: more.snooze, x: more.pick, n: () => more.change(1), p: () => more.change(-1), c: () => more.comment(event.shiftKey) || location.assign(`${home}/new`), '/': () => document.getElementById('search')?.focus(), '?': more.help, escape: more.back }[key];
  if (!act) return;
  if (key !== 'escape') event.preventDefault();
  act();
}

/**
 * Starts the keys. More has a function for each: palette, help, back, done, unread, snooze, change, line, comment, pick; shown, which returns the open
 * message if the window shows it; and for selected messages pickRow, pickGroup, isPicking, pickNone and pressBulk.
 */
export function startKeys(more) {
  document.addEventListener('keydown', (e) => pressed(e, more));
}
