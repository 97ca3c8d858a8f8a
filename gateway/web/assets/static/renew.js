// Parts of a page that are drawn anew as things happen. What has not changed stays as it is, with the focus and with
// all that is open in it.
//
// An element with data-parts has children that are known by their data-part, and is looked into; any other that has
// changed is replaced.

import { tellTimes } from './cards.js';

/** Makes an element like its next state, and gives the one that stands there then. */
export function renew(old, next) {
  tellTimes(next);
  return renewed(old, document.adoptNode(next));
}

function renewed(old, next) {
  if (bare(old).isEqualNode(bare(next))) return old;
  if (old.hasAttribute('data-parts') && next.hasAttribute('data-parts')) return renewParts(old, next);
  return replace(old, next);
}

/** An element apart from what a reader does to it. */
function bare(element) {
  const copy = element.cloneNode(true);
  for (const e of copy.querySelectorAll('[open], [disabled]')) {
    e.removeAttribute('open');
    e.removeAttribute('disabled');
  }
  return copy;
}

function renewParts(old, next) {
  const nexts = [...next.children];
  const stay = new Set(nexts.map((n) => n.dataset.part));
  for (const o of [...old.children]) if (!stay.has(o.dataset.part)) remove(o);
  const olds = new Map([...old.children].map((o) => [o.dataset.part, o]));
  let at = old.firstElementChild;
  for (const n of nexts) {
    const o = olds.get(n.dataset.part);
    const e = o ? renewed(o, n) : n;
    if (o && o === at) at = e;
    if (e === at) at = at.nextElementSibling;
    else old.insertBefore(e, at);
  }
  return old;
}

const controls = (element) => [...element.querySelectorAll('a, button, summary')];

function replace(old, next) {
  const at = controls(old).indexOf(document.activeElement);
  const wasOpen = [...old.querySelectorAll('details')].map((d) => d.open);
  [...next.querySelectorAll('details')].forEach((d, i) => { d.open = Boolean(wasOpen[i]); });
  old.replaceWith(next);
  if (at >= 0) (controls(next)[at] ?? document.getElementById('main')).focus({ preventScroll: true });
  return next;
}

function remove(element) {
  const had = element.contains(document.activeElement);
  element.remove();
  if (had) document.getElementById('main').focus({ preventScroll: true });
}
