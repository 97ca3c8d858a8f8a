// Shows what comes as toasts, which take no focus. What they are about stays in its list.

import { announce, tellTimes } from './cards.js';
import { visible } from './visible.js';

const stays = 12_000; // milliseconds
const most = matchMedia('(max-width: 30rem)').matches ? 1 : 3;

const box = document.getElementById('toasts');

/** Places the toasts above the bar of the open message, whose buttons they would cover. */
export function placeToasts() {
  const bar = document.querySelector('#alone form.ask > .bar')?.getBoundingClientRect();
  box.style.bottom = ''; // measured where it is by itself: a narrow window keeps it clear of its tabs
  const at = box.getBoundingClientRect();
  if (bar && bar.height > 0 && bar.right > at.left && bar.top < at.bottom && bar.bottom > at.top - 8) box.style.bottom = `${Math.max(innerHeight - bar.top + 8, 16)}px`;
}

new ResizeObserver(placeToasts).observe(box);
document.addEventListener('scroll', placeToasts, { capture: true, passive: true });

/** Shows a toast with an element's content. It goes by itself, and with gone. */
export function toast(content, key = '') {
  const t = document.createElement('div');
  t.className = 'toast';
  t.dataset.key = key;
  const away = document.createElement('button');
  away.type = 'button';
  away.className = 'quiet';
  away.textContent = '×';
  away.setAttribute('aria-label', 'Put away');
  away.addEventListener('click', () => t.remove());
  t.append(content, away);
  tellTimes(t);
  box.append(t);
  while (box.childElementCount > most && !box.firstElementChild.contains(document.activeElement)) box.firstElementChild.remove();
  const leave = () => { if (t.matches(':hover, :focus-within, :has(.failure)')) setTimeout(leave, stays); else t.remove(); };
  setTimeout(leave, stays);
  return t;
}

const longest = 64; // characters of what something was done to
const ofEach = 40; // of each of several
const named = 2; // of several

/** Returns what was done, and to what: the first of several by name. The middle of a name is left out where it is long, since its end may be what counts. */
export function deed(words, ...whats) {
  const p = document.createElement('p');
  p.className = 'deed-done';
  p.append(words);
  const all = whats.map((what) => [...visible(what)]).filter((letters) => letters.length);
  const most = all.length > 1 ? ofEach : longest;
  for (const [i, letters] of all.slice(0, named).entries()) {
    const name = document.createElement('bdi');
    name.textContent = letters.length > most ? `${letters.slice(0, most / 2).join('')} … ${letters.slice(-most / 2).join('')}` : letters.join('');
    p.append(i ? ', ' : ': ', name);
  }
  if (all.length > named) p.append(` and ${all.length - named} more`);
  return p;
}

/** Shows what was done, with a button that undoes it. */
export function undoable(p, undo) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'quiet';
  button.textContent = 'Undo';
  p.append(' ', button);
  const t = toast(p);
  button.addEventListener('click', async () => {
    t.remove();
    try {
      await undo();
    } catch (refused) {
      announce(refused.message);
    }
  });
}

/** Shows what went wrong. It stays until it is put away. */
export function warn(text) {
  const words = document.createElement('p');
  words.className = 'failure';
  words.role = 'alert';
  words.textContent = visible(text);
  toast(words);
}

/** Shows that calls wait for the node's disk, until none does. */
export function startDisk() {
  let shown;
  addEventListener('diskwaits', ({ detail }) => {
    if (shown?.isConnected) return;
    const words = document.createElement('p');
    words.className = 'failure';
    words.role = 'alert';
    words.textContent = `The node's disk has not finished a flush for ${detail} s. What you asked for may still happen.`;
    shown = toast(words);
  });
  addEventListener('diskgoes', () => shown?.remove());
}

/** Removes the toasts about questions that are settled. */
export function forgetToasts(open) {
  for (const t of box.querySelectorAll('.toast')) if (t.dataset.key && !open.has(t.dataset.key)) t.remove();
}
