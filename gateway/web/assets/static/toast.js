// Shows what comes as toasts, which take no focus. What they are about stays in its list.

import { announce, tellTimes } from './cards.js';

const stays = 12_000; // milliseconds
const most = 3;

const box = document.getElementById('toasts');

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
  const leave = () => { if (t.matches(':hover, :focus-within')) setTimeout(leave, stays); else t.remove(); };
  setTimeout(leave, stays);
  return t;
}

/** Shows what was done, with a button that undoes it. */
export function undoable(text, undo) {
  const p = document.createElement('p');
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'quiet';
  button.textContent = 'Undo';
  p.append(`${text} `, button);
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

/** Removes the toasts about questions that are settled. */
export function forgetToasts(open) {
  for (const t of box.querySelectorAll('.toast')) if (t.dataset.key && !open.has(t.dataset.key)) t.remove();
}
