// Holds back rows that come while the person is at the list, so that nothing moves under a hand. They are counted above it.

const rest = 10_000; // milliseconds without a key or the pointer in the list, after which it is sorted again
let touched = -Infinity;
let show; // shows what was held back; undefined if nothing is

const list = document.getElementById('list');
const button = document.getElementById('arrived');

/** Reports whether the person is at the list. */
export const isAtList = () => performance.now() - touched < rest;

/** Counts rows that have come, and shows them by a function: when the person asks for it, or has left the list. */
export function holdBack(count, look) {
  if (!button) return look();
  show = look;
  const before = Number(button.dataset.count ?? 0);
  button.dataset.count = before + count;
  button.textContent = `${before + count} new`;
  button.hidden = false;
  return undefined;
}

/** Shows what was held back, if anything. */
export function release() {
  const look = show;
  show = undefined;
  if (!button) return;
  button.hidden = true;
  delete button.dataset.count;
  look?.();
}

export function startArrivals() {
  if (!list || !button) return;
  const touch = () => { touched = performance.now(); };
  for (const name of ['pointermove', 'pointerdown', 'wheel']) list.addEventListener(name, touch, { passive: true });
  document.addEventListener('keydown', (e) => { if (!e.target.closest?.('input, textarea, select, dialog')) touch(); }, true);
  button.addEventListener('click', release);
  setInterval(() => { if (show && !isAtList()) release(); }, 1000);
}
