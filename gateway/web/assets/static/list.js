// Keeps the list of messages: newest first, in chunks, of which only those near the visible part have rows.

import { announce, isTyping, tellTimes } from './cards.js';
import { page } from './rpc.js';

const part = 50; // rows of a chunk, as many as the node draws at once
const pause = 500; // milliseconds until what failed is fetched again
const reach = 1500; // pixels around the visible part in which chunks have rows

const list = document.getElementById('list');
const pane = document.getElementById('rows');
const stream = document.getElementById('stream');

/** Returns the row of a message, which is that of all identical asks. */
export const rowOf = (key) => document.getElementById(`row-${key}`) ?? stream?.querySelector(`.entry[data-keys~="${CSS.escape(key ?? '')}"]`) ?? null;
/** Returns the keys of the messages of a row. */
export const keysOf = (row) => [row.dataset.key, ...(row.dataset.keys?.split(' ') ?? [])];
export const rows = () => [...(stream?.querySelectorAll('.entry') ?? [])];

/** Returns the link of a row to its message. */
export const linkOf = (row) => row?.querySelector('a');

/** Returns the IDs of the messages of a row. */
const idsOf = (row) => new URLSearchParams(row.querySelector('.pick')?.value ?? { id: row.dataset.id }).getAll('id');

/** Marks the rows of messages that were decided, with how in words. They leave the list soon. */
export function markDecided(ids, words = '') {
  for (const r of rows()) {
    const own = idsOf(r);
    if (!own.every((id) => ids.includes(id))) continue;
    r.removeAttribute('data-waits');
    r.setAttribute('data-decided', '');
    const marks = r.querySelector('.marks');
    if (!words || !marks) continue;
    for (const e of [...marks.children]) if (!e.matches('.age')) e.remove();
    marks.prepend(Object.assign(document.createElement('span'), { className: 'state', textContent: words }));
    r.dataset.status = 'answered';
    r.toggleAttribute('data-denied', words.startsWith('✕'));
  }
}

/** Fetches the chunk at an address of the list. */
async function chunkAt(address) {
  const at = new URL(address, location.href);
  at.searchParams.set('pane', 'list');
  const doc = await page(at.pathname + at.search, { base: '' });
  return { chunk: document.adoptNode(doc.querySelector('#stream > .chunk')), older: doc.getElementById('older')?.href, total: doc.getElementById('list').dataset, filters: doc.querySelector('#list nav.filters'), tally: doc.getElementById('tally'), empty: doc.getElementById('empty') };
}

const days = new Intl.DateTimeFormat([], { weekday: 'long', day: 'numeric', month: 'long' });

/** Returns the local day of a row in words. */
function dayOf(row) {
  const at = new Date(row.querySelector('time:is(.age, .moment)').dateTime); // and not the deadline
  const ago = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / 86_400_000);
  return ago === 0 ? 'Today' : ago === 1 ? 'Yesterday' : days.format(at);
}

/** Sets the headings between the rows of a chunk. */
function group(chunk) {
  if (list.dataset.group || list.dataset.needs) return;
  for (const g of chunk.querySelectorAll('.group')) g.remove();
  let last = chunk.previousElementSibling?.dataset.last;
  for (const row of [...chunk.children]) {
    const day = row.hasAttribute('data-urgent') ? 'Urgent' : dayOf(row);
    if (day !== last) {
      const heading = document.createElement('li');
      heading.className = 'group';
      heading.textContent = day;
      row.before(heading);
    }
    last = day;
  }
  chunk.dataset.last = last ?? '';
}

const watch = list && new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) (isIntersecting ? fill : drop)(target);
}, { root: pane, rootMargin: `${reach}px` });

function drop(chunk) {
  if (!chunk.childElementCount || chunk.contains(document.activeElement) || chunk.querySelector('.pick:checked')) return;
  chunk.style.height = `${chunk.offsetHeight}px`;
  chunk.replaceChildren();
}

async function fill(chunk) {
  if (chunk.childElementCount || chunk.busy) return;
  chunk.busy = true;
  try {
    const next = (await chunkAt(chunk.dataset.href)).chunk;
    const own = [...next.children].filter((r) => (isPast ? chunk.own.includes(r.dataset.key) : Number(r.dataset.number ?? Infinity) >= Number(chunk.dataset.least)));
    chunk.replaceChildren(...own);
    chunk.style.height = '';
    finish(chunk);
  } catch {
    setTimeout(() => { watch.unobserve(chunk); watch.observe(chunk); }, pause); // if it is near then
  }
  chunk.busy = false;
}

function finish(chunk) {
  group(chunk);
  tellTimes(chunk);
  markCurrent();
}

const isPast = list?.matches('.decisions'); // by the ends of its messages, and not by their numbers
const isByAgent = list?.dataset.group === 'agent';

/** Moves the rows of a later chunk to those of the same agents above. The chunk keeps the agents that are not there. */
function gather(chunk) {
  let heading;
  for (const e of [...chunk.children]) {
    if (e.matches('.group')) {
      heading = [...stream.querySelectorAll(`.group[data-of="${e.dataset.of}"]`)].find((g) => g.parentElement !== chunk);
      if (heading) e.remove();
    } else if (heading) {
      let at = heading;
      while (at.nextElementSibling?.matches('.entry')) at = at.nextElementSibling;
      at.after(e);
    }
  }
  if (!chunk.childElementCount) chunk.remove();
}

/** Has a chunk emptied when it is far away. The list of questions is short, and one by agent keeps its rows. */
function adopt(chunk, address) {
  const own = chunk.querySelectorAll('.entry');
  if (list.dataset.needs || isByAgent || !own.length) return;
  chunk.dataset.href = address;
  chunk.own = [...own].map((r) => r.dataset.key);
  chunk.dataset.least = Math.min(...[...own].map((r) => Number(r.dataset.number)));
  watch.observe(chunk);
}

async function loadOlder(older) {
  if (older.busy) return;
  older.busy = true;
  try {
    const { chunk, older: next } = await chunkAt(older.href);
    for (const r of chunk.querySelectorAll('.entry')) if (document.getElementById(r.id)) r.remove();
    const last = [...stream.querySelectorAll('.group')].at(-1)?.firstElementChild?.textContent; // a day has no element
    const heading = chunk.querySelector('.group');
    if (list.dataset.needs && heading === chunk.firstElementChild && heading?.firstElementChild?.textContent === last) heading.remove();
    stream.append(chunk);
    finish(chunk);
    if (isByAgent) gather(chunk);
    adopt(chunk, older.href);
    if (next) older.href = next;
    else older.parentElement.remove();
  } catch {
    announce('The older messages cannot be read now.');
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }
  older.busy = false;
}

export function startList() {
  if (!list) return;
  finish(stream.querySelector('.chunk'));
  lookBehind();
  list.querySelector('.filter form')?.addEventListener('change', (e) => e.currentTarget.requestSubmit());
  const older = document.getElementById('older');
  if (!older) return;
  older.addEventListener('click', (e) => { e.preventDefault(); loadOlder(older); });
  const end = new IntersectionObserver(async (seen) => {
    if (!seen.at(-1).isIntersecting) return;
    await loadOlder(older);
    end.unobserve(older);
    if (older.isConnected) end.observe(older); // observes the new position
  }, { root: pane, rootMargin: `${reach}px` });
  end.observe(older);
}

/** Marks the row of the open message. */
export function markCurrent() {
  const key = document.querySelector('#alone > .message')?.id;
  for (const a of stream?.querySelectorAll('.entry [aria-current]') ?? []) a.removeAttribute('aria-current');
  if (key) linkOf(rowOf(key))?.setAttribute('aria-current', 'true');
  tellSteps(rowOf(key));
}

/** Tells at the open message where it is in the list, and links those next to it. */
function tellSteps(row) {
  const steps = document.querySelector('#alone > .message .steps');
  if (!steps) return;
  const all = rows().filter((r) => r === row || !r.matches('[data-ruled], [data-decided]'));
  const at = all.indexOf(row);
  steps.hidden = at < 0;
  if (at < 0) return; // what was behind it stays known
  steps.dataset.later = all.slice(at + 1).map((r) => r.dataset.key).join(' ');
  steps.querySelector('.count').textContent = list.dataset.total ? `${at + 1} of ${Math.max(all.length, list.dataset.total)}${list.dataset.more ?? ''}` : '';
  for (const [name, to] of [['.prev', all[at - 1]], ['.next', all[at + 1]]]) {
    const link = steps.querySelector(name);
    if (to) link.href = linkOf(to).href;
    else link.removeAttribute('href');
  }
}

/** Changes the rows, and keeps the focus on its row and the picked rows. */
function change(make) {
  const at = document.activeElement?.closest('.entry');
  const next = at?.nextElementSibling?.id ?? at?.previousElementSibling?.id;
  const picked = rows().filter((r) => r.querySelector('.pick')?.checked).map((r) => r.dataset.key);
  make();
  for (const key of picked) {
    const box = rowOf(key)?.querySelector('.pick');
    if (box) box.checked = true;
  }
  if (picked.length) stream.dispatchEvent(new Event('change')); // the bar counts them
  document.getElementById('empty').hidden = rows().length > 0;
  markCurrent();
  if (at && !at.isConnected) (document.getElementById(at.id) ?? document.getElementById(next))?.querySelector('a')?.focus({ preventScroll: true });
}

/** Puts the rows of changed messages into the list of all mail. */
export function mailChanged(what) {
  if (what.reload) {
    if (isTyping()) announce('Much has happened: reload the page once you are done.');
    else location.reload();
    return;
  }
  const news = what.messages.map(({ number, html }) => ({ number, next: html ? new DOMParser().parseFromString(html, 'text/html').querySelector('.entry') : null }));
  if (list.dataset.picked || news.some(isTogether)) {
    look(undefined, new Set(news.map((m) => String(m.number))));
    return;
  }
  let come = 0;
  change(() => {
    const first = stream.querySelector('.chunk');
    const newest = Math.max(-1, ...[...first.querySelectorAll('.entry')].map((r) => Number(r.dataset.number))); // an urgent one may lead
    for (const { number, next } of news) {
      const old = rowOfNumber(number);
      if (!next) old?.remove();
      else if (old) old.replaceWith(next);
      else if (number > newest) {
        first.prepend(next);
        come++;
      }
    }
    finish(first);
    split(first);
  });
  if (come) announce(come === 1 ? 'A new message' : `${come} new messages`);
}

const rowOfNumber = (number) => stream.querySelector(`.entry[data-number="${number}"]`);

/** Reports whether a changed message is or was one row with identical asks, which the node draws. */
function isTogether({ number, next }) {
  const own = rowOf(rows()[0]?.dataset.key.replace(/\d+$/, number));
  const ask = next?.dataset.ask;
  return Boolean(own?.dataset.keys) || Boolean(ask) && rows().some((r) => r !== own && r.dataset.ask === ask);
}

/** Moves the older rows of a long first chunk to a chunk of their own. */
function split(first) {
  const own = [...first.querySelectorAll('.entry')];
  if (own.length < 2 * part) return;
  below(first, own.slice(part));
  finish(first);
}

/** Puts rows into a chunk of their own below the first chunk, with the address of what follows that. */
function below(first, own, address) {
  const rest = first.cloneNode();
  rest.append(...own);
  first.after(rest);
  finish(rest);
  const at = new URL(list.dataset.home, location.href);
  at.searchParams.set('before', Math.max(...own.map((r) => Number(r.dataset.number))) + 1);
  adopt(rest, address ?? at.href);
}

let looks = Promise.resolve();

/**
 * Fetches the newest part again, for a list that the node picks. Fetches run one after the other. Rows that do not fit into the
 * part any more stay below it, except for those of changed messages.
 */
export function look(gone = () => false, changed = new Set()) {
  looks = looks.then(async () => {
    const { chunk, older, total, filters, tally, empty } = await chunkAt(list.dataset.home);
    list.dataset.total = total.total ?? '';
    list.dataset.more = total.more ?? '';
    if (tally) document.getElementById('tally').replaceWith(document.adoptNode(tally));
    if (empty) document.getElementById('empty').replaceChildren(...empty.childNodes);
    const counts = list.querySelector('nav.filters');
    if (counts && !counts.contains(document.activeElement)) counts.replaceWith(document.adoptNode(filters));
    const least = Math.min(...[...chunk.querySelectorAll('.entry')].map((r) => Number(r.dataset.number)));
    change(() => {
      const stay = list.dataset.needs ? decided() : [];
      const drawn = new Set([...chunk.querySelectorAll('.entry')].flatMap(keysOf));
      for (const r of rows()) if (gone(r.dataset.key) || keysOf(r).some((k) => drawn.has(k))) r.remove();
      const first = stream.querySelector('.chunk');
      const own = older && !list.dataset.needs ? [...first.querySelectorAll('.entry')] : [];
      const rest = own.filter((r) => (isPast || Number(r.dataset.number) < least) && !changed.has(r.dataset.number));
      const later = isByAgent ? laterOf(first, new Set(rest)) : null;
      first.replaceWith(chunk);
      for (const put of stay) put(chunk);
      finish(chunk);
      if (later) {
        for (const c of [...stream.children].slice(1)) c.remove();
        stream.append(later);
        gather(later);
      } else if (rest.length > 0) below(chunk, rest, older);
    });
  }).catch(() => { /* the stream of events updates it once the node is back */ }).then(lookBehind);
  return looks;
}

let rests = 1000; // milliseconds until a list that lacks something is looked at again: longer each time

/** Looks again at a list that lacks what the node has not read yet. */
function lookBehind() {
  if (!document.querySelector('#tally[data-behind]')) rests = 1000;
  else if (!lookBehind.waits) lookBehind.waits = setTimeout(() => { lookBehind.waits = 0; look(); }, rests = Math.min(rests * 1.5, 20_000));
}

const lasts = 2000; // milliseconds for which a decided row stays

/** Returns functions that put the rows that were just decided into the next chunk, at their places, for a while. */
function decided() {
  return [...stream.querySelectorAll('.entry[data-decided]')].map((r) => {
    const above = r.previousElementSibling;
    const isFirst = !above?.previousElementSibling;
    return (chunk) => {
      if (rowOf(r.dataset.key)) return;
      r.dataset.left = ''; // it is not in the list of the node any more
      const at = above?.matches('.group') ? [...chunk.querySelectorAll('.group')].find((g) => g.textContent === above.textContent) : rowOf(above?.dataset.key);
      if (at?.parentElement === chunk) at.after(r);
      else chunk[isFirst ? 'prepend' : 'append'](...(above?.matches('.group') ? [above] : []), r); // with its heading, which has no other row
      r.leaves ??= setTimeout(() => change(() => leave(r)), lasts);
    };
  });
}

/** Removes a row, and the heading that has no other. */
function leave(row) {
  const above = row.previousElementSibling;
  row.remove();
  if (above?.matches('.group') && !above.nextElementSibling?.matches('.entry')) above.remove();
}

/** Returns a chunk with the rows of the later chunks and some of the first, under their agents. */
function laterOf(first, rest) {
  const later = document.createElement('ol');
  later.className = 'chunk';
  for (const chunk of stream.children) {
    let heading;
    for (const e of [...chunk.children]) {
      if (e.matches('.group')) heading = e;
      else if (chunk !== first || rest.has(e)) later.append(...(heading?.parentElement === later ? [] : [heading].filter(Boolean)), e);
    }
  }
  return later;
}
