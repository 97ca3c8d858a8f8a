// The keys of the page: of an approval, and to move about.

import { composing } from './composing.js';
import { scrollOn } from './whole.js';

const pause = 700; // milliseconds for which an item that has just appeared takes no keys: they are for what was there before
const holds = new WeakMap(); // the timers, by card

/** Holds the keys of an item back, since the person may not have seen it yet. */
export function hold(card) {
  clearTimeout(holds.get(card));
  card.removeAttribute('data-keys');
  holds.set(card, setTimeout(() => card.setAttribute('data-keys', ''), pause));
}

/** Focuses the first input, never a button: a key press meant for something else must not answer. */
export function focusFirst(card) {
  if (card?.matches('[data-type=approval]')) card.focus({ preventScroll: true });
  else {
    (card?.querySelector('.field :is(input, textarea, select)') ?? card)?.focus();
  }
}

const ofWriting = 'input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]';

/** Handles a key of an approval: A allows once, or scrolls what was not shown yet; D gives a reason and E edits the input, and A does nothing until that is closed. */
function decide(card, key, event) {
  const [reason, edit] = [card.querySelector('.why textarea'), card.querySelector('.edit textarea')];
  if (key === 'a') {
    event.preventDefault();
    if (card.querySelector('.why[open], .edit[open]')) return; // a denial was begun, or another input
    const once = card.querySelector('button[value=once], a.see');
    if (once?.matches('[data-unseen]')) scrollOn(card);
    else once?.click();
  } else if (key === 'd' && reason) {
    event.preventDefault();
    reason.closest('details').open = true;
    document.addEventListener('keyup', () => reason.focus(), { once: true }); // the letter is not part of the reason
  } else if (key === 'e' && edit) {
    event.preventDefault();
    edit.closest('details').open = true;
    document.addEventListener('keyup', () => edit.focus(), { once: true });
  }
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

/** Moves the focus to the next row of the list, or the one before. */
function step(by) {
  const rows = [...document.querySelectorAll('#stream .entry > a')];
  const at = rows.indexOf(document.activeElement);
  const current = rows.findIndex((a) => a.hasAttribute('aria-current'));
  const to = rows[at >= 0 ? at + by : Math.max(current, 0)];
  to?.focus();
  to?.scrollIntoView({ block: 'nearest' });
}

/** Returns the approval that a key is for: the one with the focus, or the open one unless the focus is elsewhere. */
function approvalFor(at, more) {
  const waits = '.message[data-type=approval][data-waits]';
  if (at.closest?.('.message')) return at.closest(waits);
  const isFree = at.matches?.('html, body, #main, #rows, .entry > a[aria-current]') && !more.isPicking();
  return isFree && more.shown()?.matches(waits) ? more.shown() : null;
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
  if (event.ctrlKey || event.metaKey) return;
  const [at] = event.composedPath(); // within an element's shadow, too
  const card = approvalFor(at, more);
  const takesKeys = card?.hasAttribute('data-keys') && !event.repeat;
  if (takesKeys && at.matches('.why textarea') && event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault();
    card.querySelector('button[value=deny]')?.click();
  }
  if (at.matches?.(ofWriting)) return;
  if (takesKeys) decide(card, key, event);
  if (event.defaultPrevented || event.repeat && !'jk'.includes(key)) return;
  if (!card && more.isPicking()) {
    const bulk = { a: 'once', d: 'deny', e: 'dismiss', s: 'snooze-4' }[key];
    if (bulk || key === 'escape') {
      event.preventDefault();
      if (bulk) more.pressBulk(bulk);
      else more.pickNone();
      return;
    }
  }
  if (/^[1-9]$/.test(key)) choose(Number(key));
  if ('eus'.includes(key) && more.shown() && !more.shown().hasAttribute('data-keys')) return;
  const act = { j: () => step(1), k: () => step(-1), e: more.done, u: more.unread, s: more.snooze, x: more.pick, '/': () => document.getElementById('search')?.focus(), '?': more.help, escape: more.back }[key];
  if (!act) return;
  if (key !== 'escape') event.preventDefault();
  act();
}

/**
 * Starts the keys. More has a function for each: palette, help, back, done, unread, snooze, pick; shown, which returns the open
 * message if the window shows it; and for picked messages isPicking, pickNone and pressBulk.
 */
export function startKeys(more) {
  document.addEventListener('keydown', (e) => pressed(e, more));
}
