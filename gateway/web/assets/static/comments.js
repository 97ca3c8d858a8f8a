// Comments on changes: on their lines, and on whole files. They stand behind their lines, or below the head of the file, and go with the reason of a denial: to each call those on its own
// files. The browser keeps them, as it keeps drafts, until the call is decided.

import { forgetDraft, readDraft, saveDraft } from './draft.js';
import { composing } from './composing.js';
import { visible } from './visible.js';

const most = 50; // comments on a call
const longest = 1000; // characters of one
const ofLine = 120; // characters of the line that are sent with it

/** Returns where the comments on a call are kept. */
const nameOf = (call) => `comments/${call}`;

/** Returns the comments on a call by their places, in the order in which they were made. */
function readAll(call) {
  const all = readDraft(nameOf(call));
  return new Map(Array.isArray(all) ? all : []);
}

function writeAll(call, all) {
  if (all.size) saveDraft(nameOf(call), [...all]);
  else forgetDraft(nameOf(call));
}

/** Returns the part of a card that is about one call: a member of several, or the card. */
const partOf = (element) => element.closest('section.member') ?? element.closest('.message');

/** Returns the ID of the call of a part. */
const callOf = (part) => part.querySelector(':scope > .cap [name=of]')?.value.split(' ')[0] ?? part.dataset.id;

const blocksOf = (part) => [...part.querySelectorAll('.block')].filter((b) => partOf(b) === part);

const heads = ':scope > .path'; // of a block, which a comment on the whole file is on as others are on lines
const isHead = (line) => line.matches('.path');

/** Returns the side and number of a line: as it will be, or as it was if it goes. */
const sideOf = (line) => (isHead(line) ? 'file' : line.dataset.new ? `+${line.dataset.new}` : `-${line.dataset.old}`);

/** Returns the place of a line in its call, as it is found again: the block, and the side and number. */
const placeOf = (line, part) => `${blocksOf(part).indexOf(line.closest('.block'))} ${sideOf(line)}`;

/** Returns the line at a place of a call. */
function lineAt(place, part) {
  const [block, side] = place.split(' ');
  if (side === 'file') return blocksOf(part)[block]?.querySelector(heads);
  return [...blocksOf(part)[block]?.querySelectorAll('.line:not(.twin)') ?? []].find((l) => (l.dataset.new || l.dataset.old) && sideOf(l) === side);
}

const fileOf = (line) => visible(line.closest('.block').querySelector('.path bdi')?.textContent ?? '');

const shortOf = (line) => fileOf(line).split('/').pop() || 'the change';

/** Returns a place in words: the file's name, and the line, of the old text if it is removed. */
const wordsFor = (line) => (isHead(line) ? `all of ${shortOf(line)}` : `${shortOf(line)}, ${line.dataset.new ? 'line' : 'removed line'} ${line.dataset.new ?? line.dataset.old}`);

/** Tells all that count comments that their number has changed. */
const changed = (remark) => remark.dispatchEvent(new Event('remarked', { bubbles: true }));

/** Lays the lines of a change out, with the comments behind theirs: see changes.js. */
const laidOut = (code) => code.dispatchEvent(new Event('laidout', { bubbles: true }));

/** Puts a comment behind a line. It can be written, or it is shown with what changes it. */
function put(line, text, isOpen) {
  const part = partOf(line);
  const [call, place] = [callOf(part), placeOf(line, part)];
  const words = wordsFor(line);
  const remark = document.createElement('div');
  remark.className = `remark ${line.dataset.new || isHead(line) ? '' : 'of-old'}`;
  remark.role = 'group';
  remark.ariaLabel = `Your comment on ${words}`;
  remark.innerHTML = '<p class="on"></p><p class="remark-text"></p><textarea rows="2" spellcheck="true"></textarea><p class="does"><button type="button" class="save">Save <kbd aria-hidden="true">Ctrl ↵</kbd></button><button type="button" class="change">Edit</button><button type="button" class="quiet remove">Remove</button><span class="muted">Sent to the agent if you deny</span></p>';
  const [on, said, input] = remark.children;
  on.textContent = remark.ariaLabel;
  input.ariaLabel = `Comment on ${words}`;
  input.maxLength = longest;
  let last = text;
  function keep(now) {
    const all = readAll(call);
    if (now.trim()) all.set(place, now);
    else all.delete(place);
    writeAll(call, all);
    changed(remark);
  }
  function show(open) {
    remark.toggleAttribute('data-open', open);
    said.textContent = input.value.split('\n').map(visible).join('\n');
  }
  /** Returns to the line, which keys are for then; from a whole file to the line that they were for. */
  const leave = () => {
    if (!isHead(line)) {
      for (const l of line.closest('.message').querySelectorAll('.line.at')) l.classList.remove('at');
      line.classList.add('at');
    }
    line.closest('.message').focus({ preventScroll: true });
  };
  function remove() {
    input.value = '';
    keep('');
    remark.remove();
    laidOut(line.parentElement);
    leave();
  }
  function save() {
    if (!input.value.trim()) return remove();
    last = input.value;
    show(false);
    return leave();
  }
  input.addEventListener('input', () => keep(input.value));
  input.addEventListener('keydown', (e) => {
    if (composing(e)) return;
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) save();
    else if (e.key === 'Escape') { // what was typed since goes
      input.value = last;
      keep(last);
      save();
    } else return;
    e.preventDefault();
    e.stopPropagation();
  });
  remark.querySelector('.save').addEventListener('click', save);
  remark.querySelector('.remove').addEventListener('click', remove);
  remark.querySelector('.change').addEventListener('click', () => { show(true); input.focus(); });
  remark.edit = () => { show(true); input.focus(); };
  input.value = text;
  show(isOpen);
  const twin = line.nextElementSibling;
  (twin?.matches('.twin') ? twin : line).after(remark);
  laidOut(line.parentElement);
  return remark;
}

/** Returns the comment on a line. */
function remarkOn(line) {
  let next = line.nextElementSibling;
  if (next?.matches('.twin')) next = next.nextElementSibling;
  return next?.matches('.remark') ? next : undefined;
}

/** Begins a comment on a line, or on the file that a head is of, or goes on with the one that is there. */
export function comment(line) {
  if (!line.dataset.new && !line.dataset.old && !isHead(line)) return;
  const of = line.matches('.twin') ? line.previousElementSibling : line;
  const there = remarkOn(of);
  if (!there && readAll(callOf(partOf(of))).size >= most) return;
  (there ?? put(of, '', true)).edit();
}

/** Puts a button into the head of each file, by which all of it is commented on. */
function offerWhole(part) {
  for (const block of blocksOf(part)) {
    const head = block.matches('.diff, .file') && block.querySelector(heads);
    if (!head || head.querySelector('button')) continue;
    const button = Object.assign(document.createElement('button'), { type: 'button', className: 'quiet', textContent: 'Comment', ariaLabel: `Comment on ${wordsFor(head)}` });
    button.addEventListener('click', () => comment(head));
    head.append(button);
  }
}

/** Puts the comments that were made before into a card that was drawn anew, and what begins one on a file. */
export function showComments(card) {
  for (const part of [card, ...card.querySelectorAll('section.member')]) {
    if (part === card && card.hasAttribute('data-group')) continue;
    offerWhole(part);
    for (const [place, text] of readAll(callOf(part))) {
      const line = lineAt(place, part);
      if (line && !remarkOn(line)) put(line, text, false);
    }
  }
  changed(card);
}

/** Returns the comments on the calls of a card that are selected, if they can be, or on all: by the ID of the call, in the order of their lines. */
function allOf(card, isEvery) {
  const all = new Map();
  for (const remark of card?.querySelectorAll('.remark') ?? []) {
    const part = partOf(remark);
    const text = remark.querySelector('textarea').value.trim();
    if (!text || !isEvery && part.querySelector(':scope > .cap [name=of]:not(:checked)')) continue;
    const call = callOf(part);
    const line = remark.previousElementSibling.matches('.twin') ? remark.previousElementSibling.previousElementSibling : remark.previousElementSibling;
    all.set(call, [...all.get(call) ?? [], { line, text }]);
  }
  return all;
}

/** Returns a number of comments in words. */
export const commentsIn = (many) => `${many} ${many === 1 ? 'comment' : 'comments'}`;

/** Returns how many comments go with a denial. */
export const countComments = (card) => [...allOf(card).values()].reduce((n, of) => n + of.length, 0);

/** Returns a comment as the model reads it: the place, the line as it stands there, and below it the words. */
function written({ line, text }) {
  if (isHead(line)) return `${fileOf(line) || 'change'} (whole file)\n${text}`;
  const code = [...line.textContent.replace(/\n$/, '')];
  const shown = code.length > ofLine ? `${code.slice(0, ofLine).join('')}…` : code.join('');
  return `${fileOf(line) || 'change'}:${line.dataset.new ?? line.dataset.old}${line.dataset.new ? '' : ' (removed)'}\n> ${shown}\n${text}`;
}

/**
 * Returns the reason of a denial with the comments on one of its calls. Of several calls, one without a comment of its own, and without a
 * reason, is told where the comments are.
 */
export function withComments(card, call, reason = '', all = allOf(card)) {
  const own = all.get(card.hasAttribute('data-group') ? call : card.dataset.id)?.map(written) ?? []; // identical calls have one drawing
  if (own.length) return [reason.trim(), ...own].filter(Boolean).join('\n\n');
  if (reason.trim() || !all.size) return reason;
  const files = [...new Set([...all.values()].flat().map(({ line }) => fileOf(line) || 'another change'))];
  return `See the comments on ${files.slice(0, 3).join(', ')}${files.length > 3 ? ` and ${files.length - 3} more` : ''}.`;
}

/** Returns the reason of a call's denial from the list, with the comments on it if it is in the open card, whatever is selected there. */
export function reasonFromList(card, call, reason) {
  const isOpen = card && (card.dataset.id === call || [...card.querySelectorAll(':is(.same, .member) [name=of]')].some((of) => of.value.split(' ')[0] === call));
  return isOpen ? withComments(card, call, reason, allOf(card, true)) : reason;
}

/** Returns how many comments on calls go with their denial from the list, and how many do not: lines are known of the open card alone. */
export function countFromList(card, calls) {
  const all = allOf(card, true);
  const sum = (of) => calls.reduce((n, call) => n + of(call), 0);
  const sent = sum((call) => all.get(call)?.length ?? 0);
  return { sent, unsent: Math.max(sum((call) => readAll(call).size) - sent, 0) };
}

/** Reports whether a press that drops comments is the second one. The first says so, and decides nothing. What is pressed keeps when that was. */
export function mayDrop(pressed, say) {
  const since = performance.now() - (pressed.toldAt ?? -Infinity);
  if (since > 700 && since < 8000) return true;
  if (since >= 8000) {
    pressed.toldAt = performance.now();
    say();
  }
  return false;
}

/** Drops the comments on calls that were decided. */
export function forgetComments(calls) { for (const call of calls) forgetDraft(nameOf(call)); }
