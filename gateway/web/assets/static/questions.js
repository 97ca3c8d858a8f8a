// Shows the number of open questions in the title and the tabs, and the questions themselves on their page.

import { announce, isTyping, refresh, showEmpty, tellTimes } from './cards.js';
import { hold } from './keys.js';
import { page } from './rpc.js';

export function questionsChanged({ count, keys }) {
  document.getElementById('count').textContent = count;
  document.getElementById('badge').hidden = count === 0;
  document.title = (count ? `(${count}) ` : '') + document.title.replace(/^\(\d+\) /, '');
  const list = document.getElementById('questions');
  if (list) enqueue(() => reconcile(list, new Set(keys), count > keys.length));
}

let last = Promise.resolve(); // one update at a time
const enqueue = (fn) => { last = last.then(fn, fn); };

async function reconcile(list, keys, isPart) {
  const waiting = [...list.querySelectorAll(':scope > li[data-waits]')];
  const gone = isPart ? [] : waiting.filter((c) => !keys.has(c.id));
  await Promise.all(gone.map(refresh));
  if ([...keys].some((k) => !document.getElementById(k))) await fetchNew(list);
  showEmpty();
}

async function fetchNew(list) {
  const doc = await page('/questions');
  const come = [...doc.querySelectorAll('#questions > li')].filter((c) => !document.getElementById(c.id)).map((c) => document.adoptNode(c));
  if (come.length === 0) return;
  list.append(...come);
  come.forEach(tellTimes);
  announce(come.length === 1 ? 'A new question' : `${come.length} new questions`);
  if (!isTyping() && !document.activeElement?.closest('parley-ask, li[data-waits]')) focusFirst(come[0]);
}

/** Focuses the first input, never a button: a key press meant for something else must not answer. */
export function focusFirst(card) {
  if (card?.matches('[data-type=approval]')) {
    hold(card);
    card.focus();
  } else {
    (card?.querySelector('.field :is(input, textarea, select)') ?? card)?.focus();
  }
}
