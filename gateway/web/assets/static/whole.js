// Keeps a call from being allowed before the end of it was in view.

const shown = new Set(); // the calls whose end was in view, by digest

/** Reports whether the end of the call with a digest was in view, on any card of this page; of several calls, all of them. */
export const wasShown = (digests) => digests.split(' ').every((d) => shown.has(d));

const waiting = '[data-unseen], [data-unsaid]'; // buttons of what was not shown whole, or of a mandate that no sentence says yet

/** Enables a button, unless what it does was not shown. */
export function enable(button) { button.disabled = button.matches(waiting); }

const allowing = 'button:is([value=once], [value=always]):not([data-edited])'; // what is edited is shown by itself

/** Whole enables the buttons of a card that allow its call once the end of the call was in view. */
export class Whole {
  /**
   * @param {Element} card of an approval that waits
   * @param {string} digest of its call; those of similar calls, separated by spaces
   * @param {() => void} [changed] called once the end was in view, unless it was before
   */
  constructor(card, digest, changed) {
    this.end = card.querySelector('.whole-end');
    this.form = card.querySelector('form.ask');
    this.bar = this.form.querySelector('.bar');
    this.buttons = [...this.form.querySelectorAll(allowing)];
    Object.assign(this, { digest, changed, isNear: false });
    if (wasShown(digest)) return;
    if (!this.end) { // a part of it alone is shown
      this.say(false);
      return;
    }
    if (window === top && isClear(this.end)) { // at once, so that the buttons of a short call do not move
      this.isNear = true;
      if (this.isShown()) {
        this.remember();
        return;
      }
    }
    this.say(false);
    const look = () => this.look();
    this.watch = new IntersectionObserver((seen) => { this.isNear = seen.at(-1).isIntersecting; this.look(); });
    this.watch.observe(this.end);
    this.size = new ResizeObserver(look);
    this.size.observe(this.bar);
    for (const name of ['scroll', 'visibilitychange', 'toggle']) document.addEventListener(name, look, { capture: true, passive: true });
    this.stop = () => {
      this.watch.disconnect();
      this.size.disconnect();
      for (const name of ['scroll', 'visibilitychange', 'toggle']) document.removeEventListener(name, look, { capture: true });
      this.stop = undefined;
    };
  }

  /** Looks whether the end is in view now: on the screen, and not below the bar with the buttons. */
  look() {
    if (!this.stop || !this.isShown()) return;
    this.stop();
    this.say(true);
    this.remember();
    this.changed?.();
  }

  isShown() {
    if (this.form.closest('article').querySelector('details.long:not([open])')) return false; // lines of it are folded
    return wasShown(this.digest) || !document.hidden && this.isNear && this.end.getBoundingClientRect().bottom <= this.bar.getBoundingClientRect().top + 1;
  }

  remember() {
    if (wasShown(this.digest)) return;
    for (const d of this.digest.split(' ')) shown.add(d);
    document.dispatchEvent(new Event('parley-shown'));
  }

  /** Enables the buttons, or has them say what is missing. */
  say(isShown) {
    for (const b of this.buttons) {
      b.toggleAttribute('data-unseen', !isShown);
      enable(b);
      const missing = b.querySelector('.unseen');
      if (missing) for (const part of b.children) part.hidden = (part === missing) === isShown;
    }
  }
}

/** Reports whether an element is within the window and within all that scrolls around it. */
function isClear(element) {
  const { top, bottom, height } = element.getBoundingClientRect();
  if (height === 0 || top < 0 || bottom > innerHeight) return false;
  for (let e = element.parentElement; e; e = e.parentElement) {
    const box = e.getBoundingClientRect();
    if (/auto|scroll|hidden/.test(getComputedStyle(e).overflowY) && (top < box.top || bottom > box.bottom)) return false;
  }
  return true;
}

/** Disables the buttons of an element while something is under way. Those of what was not shown stay so. */
export function disable(element, busy) {
  for (const b of element.querySelectorAll('button')) b.disabled = busy || b.matches(waiting);
}

/** Scrolls what shows a card's call on by what is in view, less a little. Lines that are folded are shown first. */
export function scrollOn(card) {
  const folded = card.querySelector('details.long:not([open])');
  if (folded) {
    folded.open = true;
    folded.scrollIntoView({ block: 'start' });
    return;
  }
  let box = card.querySelector('.whole-end');
  while (box && !(box.scrollHeight > box.clientHeight && /auto|scroll/.test(getComputedStyle(box).overflowY))) box = box.parentElement;
  box ??= document.scrollingElement;
  const { top, bottom } = box.getBoundingClientRect();
  const bar = card.querySelector('form.ask .bar').getBoundingClientRect().top;
  box.scrollBy({ top: 0.9 * (Math.min(bar, bottom, innerHeight) - Math.max(top, 0)) });
}
