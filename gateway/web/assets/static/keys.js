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
  if (meant) openPart(card, meant);
  meant = '';
  holds.set(card, setTimeout(() => {
    card.setAttribute('data-keys', '');
    card.removeAttribute('data-held');
    card.removeAttribute('data-strays');
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

const partOf = { d: ':is(.why, .decline)', e: '.edit', r: '.asks', m: '.leave' }; // of the bar, by the key that opens it
let meant = ''; // such a key, pressed for an item that is being opened

/** Takes back a key that was pressed for an item that has not come, and has that said. What is typed behind it is for no item: the open one takes no key until the typing rests. */
export function dropMeant(card, say) {
  if (!meant) return;
  say(`The next item has not come, and ${meant.toUpperCase()} did nothing.`);
  meant = '';
  if (!card) return;
  card.setAttribute('data-strays', '');
  card.focus({ preventScroll: true });
  hold(card);
}

/** Opens the part of an item that a key is for, and reports whether there is one. It decides nothing, so it need not wait: what is typed next is for its input, and not for keys. */
function openPart(card, key, event) {
  const part = card.querySelector(`.bar ${partOf[key]}`);
  if (!part) return false;
  part.open = true;
  (key === 'e' ? card.querySelector('.edit-card textarea') : part.querySelector('textarea, input')).focus();
  if (event) swallow(event.code);
  return true;
}

/**
 * Handles A at an approval: it allows once, or scrolls what was not shown yet; with Shift it makes the rule that is chosen. It does
 * nothing until a part that another key has opened is closed.
 */
function decide(card, event) {
  event.preventDefault();
  if (card.querySelector('.bar .act[open]')) return; // a denial was begun, or another input
  const button = card.querySelector(event.shiftKey ? '.choices button[value=always]' : '.choices :is(button[value=once], a.see)');
  if (button?.matches('[data-unseen]')) scrollOn(card);
  else button?.click();
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

/** Moves the focus to the next row of the list, or the one before, from the open item if the focus is in no row. With picks it selects the rows on the way. */
function step(by, pick, shown) {
  const rows = [...document.querySelectorAll('#stream .entry:not([data-decided]) a')];
  if (rows.length && !rows[0].checkVisibility()) { // the item is alone in the window
    document.querySelector(`#alone .steps ${by > 0 ? '.next' : '.prev'}[href]`)?.click();
    return;
  }
  const at = rows.indexOf(document.activeElement);
  const current = rows.findIndex((a) => a.hasAttribute('aria-current'));
  const to = at >= 0 ? rows[at + by] : (shown && !pick && rows[current + by]) || rows[Math.max(current, 0)];
  if (pick && at >= 0) pick(rows[at]);
  to?.focus();
  to?.scrollIntoView({ block: 'nearest' });
  if (pick && to) pick(to);
}

/** Returns the approval or form that a key is for: the one with the focus, or the open one unless the focus is elsewhere. */
function openFor(at, more) {
  const waits = '.message[data-waits]';
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
  const open = openFor(at, more);
  const card = open?.matches('[data-type=approval]') ? open : null;
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
  if (/^[a-z]$/.test(key) && at.closest?.('.bar .act[open] .panel')) return; // at a checkbox of an open part: typed for that, and not for the item
  const strayed = document.querySelector('#alone > [data-strays]');
  if (strayed && (key.length === 1 || key === 'enter')) {
    event.preventDefault();
    hold(strayed);
    return;
  }
  if (!event.repeat && goTo(key, event)) return;
  const row = !more.isPicking() && at.closest?.('.entry:not([data-ruled]) a:not([aria-current])');
  const comes = more.isOpening() || open?.querySelector('parley-ask')?.busy; // the next item, after a decision that is sent
  if (/^[a-z]$/.test(key) && (comes ? meant || 'ademrsu'.includes(key) : row && 'ademrsu'.includes(key))) { // for an item that is not there yet
    event.preventDefault();
    meant ||= partOf[key] ? key : '';
    if (!comes) row.click();
    return;
  }
  meant = '';
  if (open && partOf[key] && !event.repeat && openPart(open, key, event)) event.preventDefault();
  else if (takesKeys && key === 'a') decide(card, event);
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
  const act = { j: () => step(1, event.shiftKey && more.pickRow, more.shown()), k: () => step(-1, event.shiftKey && more.pickRow, more.shown()), e: more.done, u: more.unread, s: more.snooze, x: more.pick, n: () => more.change(1), p: () => more.change(-1), c: () => more.comment(event.shiftKey) || location.assign(`${home}/new`), '/': () => document.getElementById('search')?.focus(), '?': more.help, escape: more.back }[key];
  if (!act) return;
  if (key !== 'escape') event.preventDefault();
  act();
}

/**
 * Starts the keys. More has a function for each: palette, help, back, done, unread, snooze, change, line, comment, pick; shown, which returns the open
 * message if the window shows it; isOpening, which reports whether another comes; and for selected messages pickRow, pickGroup, isPicking, pickNone and pressBulk.
 */
export function startKeys(more) {
  document.addEventListener('keydown', (e) => pressed(e, more));
}
