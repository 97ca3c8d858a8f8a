// Moves among the changes of a call, and begins comments on its lines. Comments become the reason of a denial.

import { openCard } from './item.js';

const isChanged = (line) => line.matches('.added, .removed');

/** Returns the first lines of the runs of changed lines, and of the files. */
function starts(card) {
  return [...card.querySelectorAll('.block:is(.diff, .file) .line')].filter((l) => isChanged(l) ? !l.previousElementSibling || !isChanged(l.previousElementSibling) : !l.previousElementSibling);
}

/** Moves to the next change of the open call, or the one before. */
export function stepChange(by) {
  const card = openCard();
  const all = card ? starts(card) : [];
  const at = all.findIndex((l) => l.matches('.at'));
  const to = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
  if (!to) return;
  card.querySelector('.line.at')?.classList.remove('at');
  const folded = to.closest('.long');
  if (folded) folded.open = true;
  to.classList.add('at');
  to.scrollIntoView({ block: 'center' });
}

/** Begins a comment on a line: its place is put into the reason, behind what is there. */
function comment(line) {
  const why = openCard()?.querySelector('.bar .why');
  const text = why?.querySelector('textarea');
  if (!text) return;
  const file = line.closest('.block').querySelector('.path bdi')?.textContent.split('/').pop() ?? '';
  const place = `${file}:${line.dataset.new ?? line.dataset.old}: `;
  why.open = true;
  text.value = (text.value ? `${text.value.trimEnd()}\n` : '') + place;
  text.dispatchEvent(new Event('input', { bubbles: true }));
  text.focus();
  text.setSelectionRange(text.value.length, text.value.length);
}

/** Gives the lines of a change their places side by side: what is removed, and beside it what is added. What stays is on both sides. */
function pair(code) {
  let [row, removed, added] = [1, 0, 0];
  for (const line of [...code.children]) {
    if (line.matches('.removed')) line.style.gridRow = row + removed++;
    else if (line.matches('.added')) line.style.gridRow = row + added++;
    else {
      row += Math.max(removed, added);
      [removed, added] = [0, 0];
      line.style.gridRow = row++;
      if (!line.matches('.same')) continue;
      const twin = line.cloneNode(true);
      twin.classList.add('twin');
      twin.ariaHidden = 'true';
      line.after(twin);
    }
  }
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
  function count() {
    for (const m of members) review.querySelector(`.tree a[href="#${CSS.escape(m.id)}"]`)?.toggleAttribute('data-seen', seen.has(m.dataset.key));
    said.textContent = `${members.filter((m) => seen.has(m.dataset.key)).length} of ${members.length} seen`;
  }
  count();
}

const kept = 'parley.unified';

/** Shows changes side by side, or one below the other, in the open review. */
function showSplit(isSplit) {
  document.documentElement.toggleAttribute('data-split', isSplit);
  for (const b of document.querySelectorAll('#alone [data-split]')) b.ariaPressed = String(Boolean(b.dataset.split) === isSplit);
}

function startSplit(alone) {
  let isSplit = true;
  try {
    isSplit = !localStorage.getItem(kept);
  } catch { /* as for who has not chosen */ }
  const draw = () => {
    for (const review of alone.querySelectorAll('[data-review]:not(:has(.of-seen))')) markSeen(review);
    for (const code of alone.querySelectorAll('[data-review] .block.diff .code:not(:has(.twin))')) pair(code);
    showSplit(isSplit);
  };
  draw();
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

/** Begins a comment on the line that N and P have moved to, and reports whether there is one. */
export function commentHere() {
  const line = openCard()?.querySelector('[data-waits] .line.at, .line.at');
  if (line) comment(line);
  return Boolean(line);
}
