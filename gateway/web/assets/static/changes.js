// Moves among the changes of a call, lays them out side by side, and begins comments on their lines.

import { comment, commentsIn, countComments, showComments } from './comments.js';
import { openCard } from './item.js';

const isChanged = (line) => line.matches('.added, .removed');

/** Returns the first lines of the runs of changed lines, and of the files. */
function starts(card) {
  return [...card.querySelectorAll('.block:is(.diff, .file) .line:not(.twin)')].filter((l) => {
    const before = lineBefore(l);
    return !before || isChanged(l) && !isChanged(before);
  });
}

/** Returns the line before one. A comment may stand between them. */
function lineBefore(line) {
  let before = line.previousElementSibling;
  while (before && !before.matches('.line:not(.twin)')) before = before.previousElementSibling;
  return before;
}

/** Moves to the next change of the open call, or the one before. */
export function stepChange(by) {
  const card = openCard();
  const all = card ? starts(card) : [];
  const at = all.findIndex((l) => l.matches('.at'));
  markLine(card, all[at < 0 ? startNear(all, card, by) : at + by], 'center');
}

/** Returns the place of the change next to the marked line, which is within one; of the first or last change if there is none. */
function startNear(all, card, by) {
  const marked = card?.querySelector('.line.at');
  if (!marked) return by > 0 ? 0 : all.length - 1;
  const later = all.findIndex((l) => marked.compareDocumentPosition(l) & Node.DOCUMENT_POSITION_FOLLOWING);
  if (by > 0) return later;
  return (later < 0 ? all.length : later) - 1;
}

function markLine(card, line, block) {
  if (!line) return;
  card.querySelector('.line.at')?.classList.remove('at');
  const folded = line.closest('.long');
  if (folded) folded.open = true;
  line.classList.add('at');
  line.scrollIntoView({ block });
}

/** Moves from the marked line to the next one of the change, or the one before, and reports whether there is a marked line. */
export function stepLine(by) {
  const card = openCard();
  const marked = card?.querySelector('.line.at');
  if (!marked) return false;
  const all = [...card.querySelectorAll('.block:is(.diff, .file) .line:not(.twin)')].filter((l) => l.dataset.new || l.dataset.old);
  markLine(card, all[all.indexOf(marked) + by], 'nearest');
  return true;
}

/** Gives the lines of a change their places side by side: what is removed, and beside it what is added. What stays is on both sides. */
function pair(code) {
  paired.add(code);
  for (const line of code.querySelectorAll('.line.same:not(:has(+ .twin), .twin)')) {
    const twin = line.cloneNode(true);
    twin.classList.add('twin');
    twin.ariaHidden = 'true';
    line.after(twin);
  }
  place(code);
}

/** Numbers the rows of lines that are side by side. A comment takes a row of its own, below that of its line. */
function place(code) {
  let [row, removed, added] = [1, 0, 0];
  const rows = new Map(); // of the lines, as if there were no comments
  const remarks = [];
  for (const e of code.children) {
    if (e.matches('.remark')) remarks.push([rows.get(e.previousElementSibling), e]);
    else if (e.matches('.twin')) rows.set(e, row - 1);
    else if (e.matches('.removed')) rows.set(e, row + removed++);
    else if (e.matches('.added')) rows.set(e, row + added++);
    else {
      row += Math.max(removed, added);
      [removed, added] = [0, 0];
      rows.set(e, row++);
    }
  }
  remarks.sort(([a], [b]) => a - b);
  for (const [line, at] of rows) line.style.gridRow = at + remarks.filter(([of]) => of < at).length;
  remarks.forEach(([of, remark], i) => { remark.style.gridRow = of + i + 1; });
}

const seen = new Set(); // the calls whose changes the person has marked as seen

/** Puts a box at each file of a review, by which the person keeps account of what was read. It decides nothing, and hides nothing. */
function markSeen(review) {
  const members = [...review.querySelectorAll('section.member')];
  for (const m of members) {
    const label = document.createElement('label');
    label.className = 'seen';
    label.innerHTML = '<input type="checkbox"> Seen';
    const box = label.firstElementChild;
    box.checked = seen.has(m.dataset.key);
    box.ariaLabel = `Seen: ${m.ariaLabel}`;
    box.addEventListener('change', () => { seen[box.checked ? 'add' : 'delete'](m.dataset.key); count(); });
    m.querySelector('.cap > .when').before(label);
  }
  const said = document.createElement('p');
  said.className = 'muted of-seen';
  said.role = 'status';
  review.querySelector('.tree').append(said);
  review.addEventListener('remarked', count);
  function count() {
    const comments = countComments(review);
    for (const m of members) review.querySelector(`.tree a[href="#${CSS.escape(m.id)}"]`)?.toggleAttribute('data-seen', seen.has(m.dataset.key));
    said.textContent = `${members.filter((m) => seen.has(m.dataset.key)).length} of ${members.length} seen${comments ? ` · ${commentsIn(comments)}` : ''}`;
  }
  count();
}

const kept = 'parley.unified';

/** Shows changes side by side, or one below the other, in the open review. */
function showSplit(isSplit) {
  document.documentElement.toggleAttribute('data-split', isSplit);
  for (const b of document.querySelectorAll('#alone [data-split]')) b.ariaPressed = String(Boolean(b.dataset.split) === isSplit);
}

const paired = new WeakSet();
const commented = new WeakSet();

/** Shows the comments that were made on the calls of a card, once. */
function showOnce(card) {
  if (commented.has(card)) return;
  commented.add(card);
  showComments(card);
}

function startSplit(alone) {
  let isSplit = true;
  try {
    isSplit = !localStorage.getItem(kept);
  } catch { /* as for who has not chosen */ }
  const draw = () => {
    for (const review of alone.querySelectorAll('[data-review]:not(:has(.of-seen))')) markSeen(review);
    for (const code of alone.querySelectorAll('[data-review] .block.diff .code')) if (!paired.has(code)) pair(code);
    for (const card of alone.querySelectorAll('.message[data-type=approval][data-waits]')) showOnce(card);
    showSplit(isSplit);
  };
  draw();
  alone.addEventListener('laidout', (e) => { if (paired.has(e.target)) place(e.target); });
  new MutationObserver(draw).observe(alone, { childList: true });
  alone.addEventListener('click', (e) => {
    const file = e.target.closest?.('.tree a');
    if (file) {
      e.preventDefault(); // the address is that of the message
      document.getElementById(file.hash.slice(1))?.scrollIntoView({ block: 'start' });
    }
    const button = e.target.closest?.('button[data-split]');
    if (!button) return;
    isSplit = Boolean(button.dataset.split);
    try {
      localStorage[isSplit ? 'removeItem' : 'setItem'](kept, 'yes');
    } catch { /* it is for this page */ }
    showSplit(isSplit);
  });
}

/** Has a click at the number of a line, or C at the line that N and P have moved to, begin a comment. */
export function startChanges() {
  const alone = document.getElementById('alone');
  if (alone) startSplit(alone);
  document.addEventListener('click', (e) => {
    const line = e.target.closest?.('#alone .message[data-waits] .block:is(.diff, .file) .line');
    if (line && e.clientX - line.getBoundingClientRect().left < 80 && getSelection().isCollapsed) comment(line);
  });
}

/** Begins a comment on the line that N and P have moved to, or on the whole file that it is in, and reports whether there is one. */
export function commentHere(isWhole) {
  const line = openCard()?.querySelector('.line.at');
  if (line && openCard().matches('[data-waits]')) comment(isWhole && line.closest('.block').querySelector('.path') || line);
  return Boolean(line);
}
