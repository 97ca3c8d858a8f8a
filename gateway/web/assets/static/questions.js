// Shows the number of rows that wait, at each link to them, keeps their list, and tells of new ones.

import { holdBack, isAtList } from './arrivals.js';
import { announce, isTyping, refresh } from './cards.js';
import { membersCome, membersEnded, membersOf } from './group.js';
import { canShow, isOpening, open, openCard, openNext } from './item.js';
import { keysOf, look, rowOf, rows } from './list.js';
import { page } from './rpc.js';
import { forgetToasts, toast } from './toast.js';

const mostNew = 50; // that one request asks for

let known; // keys of all open questions
let changes = ''; // revisions of the amended ones, and claims

export function questionsChanged({ count, more = false, keys, part: isPart = false, amended = {}, claimed = {} }) {
  const shown = more ? `${count}+` : count;
  for (const badge of document.querySelectorAll('.badge')) {
    badge.hidden = count === 0;
    badge.firstElementChild.textContent = shown;
  }
  document.title = (count ? `(${shown}) ` : '') + document.title.replace(/^\(\d+\+?\) /, '');
  const now = new Set(keys);
  const isGone = (key) => !isPart && !now.has(key);
  const come = known ? keys.filter((k) => !known.has(k)) : [];
  known = now;
  document.documentElement.dataset.told = 'yes';
  forgetToasts(isPart ? new Set([...box(), ...now]) : now);
  const card = openCard();
  if (card?.hasAttribute('data-group') ? !membersEnded(card, isGone) : card?.hasAttribute('data-waits') && isGone(card.id)) refresh(card);
  for (const c of document.querySelectorAll('li.message[data-waits][data-revision]')) if (amended[c.id] > c.dataset.revision) refresh(c);
  if (card?.hasAttribute('data-waits') && now.has(card.id) && (claimed[card.id] ?? '') !== (card.dataset.claim ?? '')) refresh(card);
  const isAmended = changes !== (changes = JSON.stringify([amended, claimed]));
  const list = document.getElementById('list');
  const isListed = list?.dataset.needs && list.dataset.newest;
  const isOver = isAmended || rows().some((r) => !r.matches('[data-left]') && keysOf(r).some(isGone));
  const isMore = come.length > 0 || keys.some((k) => !rowOf(k));
  const waits = isMore && !isOver && isAtList() && card?.hasAttribute('data-waits');
  if (isListed && waits) holdBack(come.length, () => look(isGone));
  const listed = isListed && !waits && (isOver || isMore) ? look(isGone) : Promise.resolve();
  if (isListed || come.length > 0) listed.then(() => tell(come)).then(countCome);
}

/** Says at the open group how many similar calls its row in the list has besides. */
function countCome() {
  const card = openCard();
  if (!card?.matches('[data-group][data-waits]')) return;
  const row = rowOf(membersOf(card)[0]);
  if (row) membersCome(card, keysOf(row));
}

const box = () => [...document.querySelectorAll('.toast')].map((t) => t.dataset.key);

/** Opens a new question where nothing else is open to be decided, and shows a toast otherwise. */
async function tell(keys) {
  const isFree = document.getElementById('list')?.dataset.needs && canShow() && !isTyping() && !isOpening() && !openCard()?.hasAttribute('data-waits');
  const opened = isFree && openNext();
  if (keys.length === 0) return;
  announce(keys.length > 1 ? `${keys.length} new questions` : 'A new question');
  for (const row of await questionRows(keys.filter((k) => k !== opened && k !== openCard()?.id).slice(-3))) {
    const a = row.querySelector('a');
    a.removeAttribute('aria-current');
    if (row.dataset.key !== openCard()?.id) toast(a, row.dataset.key); // it may have been opened meanwhile
  }
}

/** Fetches questions by their keys, and returns the rows of those still open. */
export async function questionRows(keys) {
  if (keys.length === 0) return [];
  try {
    const doc = await page('/questions?pane=list&' + new URLSearchParams(keys.slice(0, mostNew).map((k) => ['key', k])));
    return keys.map((k) => doc.getElementById(`row-${k}`)).filter(Boolean).map((r) => document.adoptNode(r));
  } catch {
    return []; // the page counts them
  }
}

/** Opens a question by its key. */
export async function openKey(key) {
  const [row] = await questionRows([key]);
  if (row) open(row.querySelector('a').href);
}
