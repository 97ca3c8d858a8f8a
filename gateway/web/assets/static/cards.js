// Updates the messages in the page. The node draws them.

import { hold } from './keys.js';
import { page } from './rpc.js';

export const cardOf = (element) => element.closest('li.message');
const formOf = (card) => card.querySelector('parley-ask');

/** Announces a text to screen readers. */
export function announce(text) {
  const news = document.getElementById('news');
  news.textContent = '';
  requestAnimationFrame(() => { news.textContent = text; });
}

/** Reports whether the person is typing, which nothing may disturb. */
export function isTyping() {
  if (document.querySelector('dialog[open]')) return true;
  if ([...document.querySelectorAll('parley-ask')].some((f) => f.isTyped)) return true;
  const at = document.activeElement;
  return Boolean(at?.matches('input, textarea') && at.value);
}

/** Returns a span of seconds in a word, such as 4 m. */
function short(seconds) {
  const [size, unit] = [[86400, 'd'], [3600, 'h'], [60, 'm']].find(([s]) => seconds >= s) ?? [1, 's'];
  return `${Math.max(Math.floor(seconds / size), 0)} ${unit}`;
}

/** Updates the spans of time: how long something waits, and how much is left. */
export function tellSpans(root) {
  for (const t of root.querySelectorAll('time:is(.lasts, .age)')) t.textContent = short((Date.now() - new Date(t.dateTime)) / 1000);
  for (const t of root.querySelectorAll('time.left-time')) {
    const left = (new Date(t.dateTime) - Date.now()) / 1000;
    const minutes = left >= 3600 && left < 36000 ? Math.floor(left % 3600 / 60) : 0; // it ends so soon that these count
    t.textContent = left > 0 ? `in ${short(left)}${minutes ? ` ${minutes} m` : ''}` : 'now';
  }
}

export function tellTimes(root) {
  tellSpans(root);
  const today = new Date().toDateString();
  for (const t of root.querySelectorAll('time[datetime]')) {
    const at = new Date(t.dateTime);
    const isToday = at.toDateString() === today;
    t.title = at.toLocaleString();
    if (t.matches('.age, .lasts, .left-time')) continue;
    if (t.matches('.moment')) t.textContent = at.toLocaleString([], isToday ? { timeStyle: 'medium' } : at.getFullYear() === new Date().getFullYear() ? { day: 'numeric', month: 'short', hour: 'numeric', minute: '2-digit' } : { dateStyle: 'medium' });
    else t.textContent = at.toLocaleString([], isToday ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' });
  }
}

/** Replaces a message by its new drawing. An open form keeps its input. */
function replaceCard(old, next) {
  tellTimes(next);
  const steps = old.querySelector('.head .steps');
  if (steps) next.querySelector('.head .steps')?.replaceWith(steps);
  if (old.hasAttribute('data-waits') && next.hasAttribute('data-waits') && old.hasAttribute('data-group') === next.hasAttribute('data-group')) {
    if (old.dataset.revision !== next.dataset.revision) return replaceQuestion(old, next);
    old.dataset.claim = next.dataset.claim ?? '';
    for (const part of ['.head:not(:has(details[open]))', '.discussion', '.notes:not(.receipt)', '.place', '.claims']) old.querySelector(part)?.replaceWith(next.querySelector(part) ?? '');
    return old;
  }
  if (old.querySelector('.reply') && next.querySelector('.posts')) { // a reply may be begun
    for (const part of ['.head', '.posts']) old.querySelector(part).replaceWith(next.querySelector(part));
    return old;
  }
  if (old.hasAttribute('data-keys')) next.setAttribute('data-keys', '');
  else hold(next);
  const had = old.contains(document.activeElement);
  const lost = old.hasAttribute('data-waits') && formOf(old)?.isTyped && !formOf(old).busy;
  old.replaceWith(next);
  const told = old.querySelector('.unsent'); // it was drawn again since
  if (told) next.querySelector('article').append(told);
  if (lost) {
    const note = document.createElement('p');
    note.className = 'hint unsent';
    note.textContent = 'What you typed here was not sent.';
    next.querySelector('article').append(note);
  }
  const state = next.querySelector('.state')?.innerText.trim();
  if (state && old.hasAttribute('data-waits') && !formOf(old)?.busy) announce(state); // who acts here is told once it is done
  if (had) next.focus({ preventScroll: true });
  return next;
}

/** Replaces a form by its amended question. The input stays where the fields are the same. */
function replaceQuestion(old, next) {
  const { filling } = formOf(old);
  const had = old.contains(document.activeElement) && document.activeElement;
  old.replaceWith(next);
  hold(next);
  const now = formOf(next).filling;
  now.take(filling);
  const note = document.createElement('p');
  note.className = 'hint changed-note';
  note.textContent = 'The question has changed. What you typed stays where the fields are the same.';
  next.querySelector('form.ask').prepend(note);
  announce(`${note.textContent} ${next.querySelector('.amended')?.innerText ?? ''}`);
  if (had) (now.controlLike(had, filling) ?? next).focus({ preventScroll: true });
  return next;
}

/** Fetches a message, replaces its card if that is still in the page, and returns the new one. */
export async function refresh(card) {
  const address = `/forms/${encodeURIComponent(card.dataset.id)}?` + new URLSearchParams({ as: card.dataset.as, pane: 'item', ...(card.hasAttribute('data-group') && { like: 'yes' }) });
  try {
    const next = (await page(address)).querySelector('li.message');
    const now = document.getElementById(card.id); // an event may have replaced the card already
    if (next && now) replaceCard(now, document.adoptNode(next));
    return next;
  } catch {
    return null; // the stream of events updates it once the node is back
  }
}
