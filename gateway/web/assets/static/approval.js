// Shows a new approval in a dialog, unless the person is typing. Esc closes the dialog and leaves the approval open.

import { announce, isTyping, tellTimes } from './cards.js';
import { focusFirst } from './questions.js';
import { questionCards } from './rpc.js';

const prefix = 'top-'; // the page may show the same message: IDs stay unique
const references = ['id', 'for', 'form', 'aria-labelledby', 'aria-describedby'];

let known; // keys of all open questions
let come = []; // keys of the new ones, in order
let busy = false;

export function approvalsChanged({ keys }) {
  const shown = document.querySelector('dialog.approval');
  if (known && shown && known.has(shown.dataset.key) && !keys.includes(shown.dataset.key)) settled(shown);
  if (known) come.push(...keys.filter((k) => !known.has(k)));
  known = new Set(keys);
  document.documentElement.dataset.told = 'yes';
  if (!document.querySelector('dialog.approval')) showNext();
}

/** Shows the first new approval that is still open. The page of questions needs no dialog. */
async function showNext() {
  if (busy) return;
  come = come.filter((k) => known.has(k));
  if (come.length === 0) return;
  if (isTyping() || document.getElementById('questions')) {
    come = [];
    return;
  }
  busy = true;
  try {
    const cards = (await questionCards(come)).filter((c) => c.matches('[data-type=approval]'));
    come = cards.slice(1).map((c) => c.id);
    if (cards[0] && known.has(cards[0].id) && !isTyping()) show(cards[0]);
  } catch {
    come = []; // they stay open, and the page counts them
  }
  busy = false;
}

function show(card) {
  const { id } = card;
  const dialog = document.createElement('dialog');
  dialog.className = 'approval';
  dialog.dataset.key = id;
  dialog.setAttribute('aria-labelledby', `${prefix}${id}-head`);
  dialog.innerHTML = '<ol class="stream"></ol><div class="acts"><button type="button" class="quiet" name="later">Later (Esc)</button></div>';
  setApart(card, id);
  dialog.firstElementChild.append(document.adoptNode(card));
  tellTimes(card);
  dialog.addEventListener('keydown', (e) => {
    if (e.key !== 'Escape' || e.isComposing) return;
    e.preventDefault();
    e.stopPropagation(); // the text is kept as a draft: no need to confirm
    leave(dialog);
  }, true);
  dialog.addEventListener('cancel', (e) => { e.preventDefault(); leave(dialog); });
  dialog.querySelector('[name=later]').addEventListener('click', () => leave(dialog));
  new MutationObserver(() => { if (!dialog.querySelector('[data-waits]')) settled(dialog); }).observe(dialog, { childList: true, subtree: true });
  document.body.append(dialog);
  dialog.showModal();
  focusFirst(card); // never a button: a key press meant for something else must not decide
  announce('A tool call waits for permission');
}

/** Prefixes the IDs of a message's elements, and the references to them. */
function setApart(card, id) {
  for (const e of [card, ...card.querySelectorAll('*')]) {
    for (const name of references.filter((n) => e.hasAttribute(n))) {
      const ids = e.getAttribute(name).split(' ');
      e.setAttribute(name, ids.map((i) => (i === id || i.startsWith(`${id}-`) ? prefix + i : i)).join(' '));
    }
  }
}

function close(dialog) {
  dialog.close(); // returns the focus
  dialog.remove();
}

function leave(dialog) {
  come = []; // closing one dismisses the others too
  close(dialog);
}

function settled(dialog) {
  if (!dialog.isConnected) return;
  close(dialog);
  announce('The approval is settled');
  showNext();
}
