// Another input for a call: what it would do is shown, by the node, before it may be allowed.

import { edited } from './rpc.js';
import { visible } from './visible.js';

const rest = 250; // milliseconds after the last input

/** Edit shows what is edited, and enables its button once that was in view. */
export class Edit {
  /**
   * @param {HTMLFormElement} form with an edit
   * @param {string} address of the form, for what is edited
   * @param {import('./rpc.js').Endpoint} [endpoint]
   */
  constructor(form, address, endpoint = {}) {
    const card = form.querySelector('.edit-card');
    Object.assign(this, { form, card, address, endpoint });
    this.button = form.querySelector('[data-edited]');
    this.drawn = card.querySelector('.edited');
    this.input = card.querySelector('.field textarea');
    this.text = card.querySelector('[data-edits]') ?? this.input;
    card.querySelector('[data-shows]')?.remove(); // with a script it is shown as it is typed
    this.text.addEventListener('input', () => this.changed());
    this.watch = new IntersectionObserver(() => this.look());
    this.watch.observe(card.querySelector('.edited-end'));
    document.addEventListener('scroll', this.scrolled = () => this.look(), { capture: true, passive: true });
    this.restore();
  }

  stop() {
    clearTimeout(this.timer);
    this.watch.disconnect();
    document.removeEventListener('scroll', this.scrolled, { capture: true });
  }

  /** Shows an input that was typed before. */
  restore() {
    this.hide();
    if (this.input.value === this.input.defaultValue) return;
    if (this.text !== this.input) {
      try {
        this.text.value = JSON.parse(this.input.value).command;
      } catch {
        return; // it is no input of this page
      }
    }
    this.show();
  }

  /** Drops what was typed. */
  reset() {
    this.text.value = this.text.defaultValue;
    this.drawn.replaceChildren();
    this.hide();
  }

  changed() {
    this.hide();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.show(), rest);
  }

  /** Has the node draw the call with what is typed. */
  async show() {
    const text = this.text.value;
    let doc;
    try {
      doc = await edited(this.address, { [this.text.name]: text }, this.endpoint);
    } catch (why) {
      if (this.text.value === text) this.drawn.textContent = visible(why.message);
      return;
    }
    if (this.text.value !== text) return; // another is under way
    const call = doc.querySelector('.edited-call');
    this.drawn.replaceChildren(document.adoptNode(call));
    this.isShown = !call.hasAttribute('data-wrong');
    if (this.text !== this.input && this.input.value !== call.dataset.input) {
      this.input.value = this.isShown ? call.dataset.input : this.input.defaultValue;
      this.input.dispatchEvent(new Event('input', { bubbles: true })); // the draft keeps it
    }
    this.look();
  }

  /** Enables the button once all that is edited is shown and its end was in view, above the bar. */
  look() {
    const end = this.card.querySelector('.edited-end').getBoundingClientRect();
    const bar = this.button.closest('.bar').getBoundingClientRect();
    if (this.isShown && end.width > 0 && end.top >= 0 && end.bottom <= Math.min(bar.top, innerHeight) + 1) this.isSeen = true;
    this.button.disabled = !this.isSeen;
    this.button.toggleAttribute('data-unseen', !this.isSeen);
  }

  /** Has what is typed be shown anew. */
  hide() {
    this.isShown = this.isSeen = false;
    this.look();
  }
}

/** Returns when a rule that ends after a number of hours ends, in words. */
export function ending(text) {
  const hours = /^(\d+)h$/.exec(text)?.[1];
  if (!hours) return text ? `until ${text}` : '';
  const at = new Date(Date.now() + hours * 3_600_000);
  const isToday = at.toDateString() === new Date().toDateString();
  return `until ${at.toLocaleString([], isToday ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' })}`;
}
