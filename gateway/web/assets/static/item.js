// Opens messages beside the list, without loading the page again.

import { release } from './arrivals.js';
import { announce, tellTimes } from './cards.js';
import { askToLeave } from './dialog.js';
import { dropMeant, focusFirst, hold } from './keys.js';
import { linkOf, markCurrent, rowOf, rows } from './list.js';
import { call, page } from './rpc.js';
import { warn } from './toast.js';

const alone = document.getElementById('alone');
const narrow = matchMedia('(max-width: 1099.98px)');

/** Returns the open message; null for none. */
export const openCard = () => alone?.querySelector(':scope > .message') ?? null;

/** Reports whether a message would be in view: a narrow window shows the list or the message. */
export const canShow = () => document.body.dataset.view === 'item' || !narrow.matches;

let coming; // what is being opened, if anything

/** Reports whether calls wait in the list, but for one row: their keys must not be typed into a form that has opened by itself. */
export const callsWait = (but) => rows().some((r) => r !== but && r.matches('[data-waits][data-type=approval]:not([data-decided])'));

/** Reports whether a message is being opened: its place is taken. */
export const isOpening = () => Boolean(coming);

/** Opens the message at an address, unless another is opened meanwhile. It stays closed if a form with a secret, which no draft keeps, is not to be left; that is not asked where the form was just put away. */
export async function open(address, { focus = 'field', push = true, asks = true } = {}) {
  const ask = openCard()?.querySelector('parley-ask');
  if (asks && ask?.isTyped && ask.querySelector('.secret') && await askToLeave() === 'stay') return;
  const at = new URL(address, location.href);
  const asked = new URL(at);
  asked.searchParams.set('pane', 'item');
  const own = {};
  coming = own;
  let doc;
  try {
    doc = await page(asked.pathname + asked.search, { base: '' });
  } catch (refused) {
    warn(refused.message);
  }
  if (coming !== own) return;
  coming = undefined;
  const card = doc?.querySelector('#alone > .message');
  if (!card) return dropMeant(openCard(), warn);
  alone.replaceChildren(document.adoptNode(card));
  for (const t of document.querySelectorAll('.toast')) if (t.dataset.key === card.id) t.remove();
  tellTimes(card);
  document.title = (/^\(\d+\+?\) /.exec(document.title)?.[0] ?? '') + doc.title.replace(/^\(\d+\+?\) /, '');
  document.body.dataset.view = 'item';
  if (push && at.href !== location.href) history.pushState(null, '', at.href);
  markCurrent();
  document.getElementById('item').scrollTop = 0;
  showPost(card);
  document.getElementById('item-title').textContent = doc.getElementById('item-title').textContent;
  if (focus) focusFirst(card, focus === 'message');
  hold(card); // a part that a key was pressed for takes the focus
  if (rowOf(card.id)?.hasAttribute('data-new')) read(card);
}

/** Scrolls to the message of a thread that was opened. */
export function showPost(card) {
  const post = card?.querySelector('.post[data-opened]');
  if (post?.previousElementSibling) post.scrollIntoView({ block: 'end' });
}

/** Marks the open message as read, with those of its thread, or as unread. */
export async function read(card = openCard(), unread = false) {
  if (!card) return;
  try {
    await call('mark_read', { as: card.dataset.as, numbers: [...new Set([card.dataset.number, ...(!unread && card.querySelector('.posts')?.dataset.unread.split(' ').filter(Boolean)) || []])].map(Number), unread });
    if (unread) announce('Marked as unread');
  } catch {
    // a session may be allowed to read the mail alone
  }
}

/** Presses a button of the open message, if it has one. */
export function press(value) {
  openCard()?.querySelector(`.tools button[value="${value}"]`)?.click();
}

/** Opens the row next to the open message that waits, and returns its key; '' if there is none. */
export function openNext() {
  const all = rows();
  const at = all.findIndex((r) => r.dataset.key === openCard()?.id);
  const later = at >= 0 ? [] : openCard()?.querySelector('.steps')?.dataset.later?.split(' ') ?? []; // its row may have gone before the answer came
  release();
  const next = [...later.map(rowOf), ...all.slice(at + 1), ...all.slice(0, Math.max(at, 0))].find((r) => r?.hasAttribute('data-waits'));
  if (next) open(linkOf(next).href, { focus: callsWait(all[at]) ? 'message' : 'field', asks: false });
  return next?.dataset.key ?? '';
}

/** Returns from a message to its row. */
export function close() {
  const key = openCard()?.id;
  if (narrow.matches && document.body.dataset.view === 'item') document.getElementById('back')?.click();
  (key && linkOf(rowOf(key)))?.focus();
}

export function startItem() {
  if (!alone || !document.getElementById('list')) return;
  const list = location.href;
  document.addEventListener('click', (e) => {
    const to = e.target.closest?.('.entry:not([data-ruled]) a, .toast a, #alone .see, #alone .steps a[href], #back');
    if (!to || e.defaultPrevented || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
    if (to.id === 'back') {
      if (document.body.dataset.begun !== 'list') return;
      e.preventDefault();
      history.pushState(null, '', list);
      document.body.dataset.view = 'list';
      return;
    }
    e.preventDefault();
    open(to.href);
  });
  document.body.dataset.begun = document.body.dataset.view;
  addEventListener('popstate', () => {
    if (location.pathname.includes('/forms/')) open(location.href, { push: false });
    else if (location.href.split('#')[0] === list.split('#')[0]) document.body.dataset.view = 'list';
    else location.reload();
  });
}
