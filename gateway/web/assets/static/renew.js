// Updates parts of a page. Unchanged elements stay in place, with focus and open details.
//
// The children of an element with data-parts are matched by their data-part. Other changed elements are replaced whole.

import { tellTimes } from './cards.js';

/** Updates an element to its next state, and returns the element that is in the document then. */
export function renew(old, next) {
  tellTimes(next);
  return renewed(old, document.adoptNode(next));
}

function renewed(old, next) {
  if (bare(old).isEqualNode(bare(next))) return old;
  if (old.hasAttribute('data-parts') && next.hasAttribute('data-parts')) return renewParts(old, next);
  return replace(old, next);
}

/** Returns a copy without the state that a reader changes. */
function bare(element) {
  const copy = element.cloneNode(true);
  for (const e of copy.querySelectorAll('[open], [disabled]')) {
    e.removeAttribute('open');
    e.removeAttribute('disabled');
  }
  for (const t of copy.querySelectorAll('time:is(.lasts, .age)')) t.textContent = ''; // it is told from time to time
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
