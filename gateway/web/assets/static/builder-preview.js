// Shows the form in the builder as its recipient will see it. It can be filled in but not sent.

import { tellTimes } from './cards.js';
import { Field } from './field.js';
import { preview } from './rpc.js';
import { readTexts, validateValues } from './validate.js';
import { visible } from './visible.js';

const pause = 250; // between the last key press and drawing

export class Preview {
  /** @param {(refused: object|null) => void} checked receives the node's refusal of the fields, or null */
  constructor(root, checked) {
    Object.assign(this, { root, checked, turn: 0 });
    root.innerHTML = '<ol class="stream"></ol><p class="hint" role="status"></p>';
    [this.list, this.hint] = root.children;
    root.addEventListener('submit', (e) => { e.preventDefault(); this.check(e.submitter); });
  }

  /**
   * Draws the form after a pause without changes. It leaves out fields that the node refuses.
   * @param {(errors: object) => string} body returns the form in JSON, without the fields that have errors
   */
  draw(as, body) {
    this.stop();
    const { turn } = this;
    this.soon = setTimeout(async () => {
      const refused = await this.look(turn, as, body({}));
      if (turn !== this.turn) return;
      this.checked(refused);
      const still = refused?.code === 'INVALID_FORM' ? await this.look(turn, as, body(refused.fields)) : refused;
      if (turn !== this.turn) return;
      if (still) this.list.replaceChildren();
      this.hint.textContent = still && still.code !== 'INVALID_FORM' ? visible(still.message) : refused ? 'What cannot be asked yet is left out.' : '';
    }, pause);
  }

  /** Draws the form now, and returns the node's refusal or null. */
  async look(turn, as, body) {
    try {
      const html = await preview(as, body);
      if (turn === this.turn) this.show(html);
      return null;
    } catch (refused) {
      if (!refused.code) throw refused;
      return refused;
    }
  }

  stop() {
    this.turn++;
    clearTimeout(this.soon);
  }

  show(html) {
    const card = document.adoptNode(new DOMParser().parseFromString(html, 'text/html').querySelector('li.message'));
    const form = card.querySelector('form.ask');
    card.querySelector('parley-ask').replaceWith(form); // without its behaviour
    for (const e of card.querySelectorAll('.head, .act')) e.remove();
    for (const e of [card, form]) e.removeAttribute('aria-labelledby');
    card.removeAttribute('tabindex');
    tellTimes(card);
    form.noValidate = true;
    this.list.replaceChildren(card);
  }

  check(pressed) {
    const fields = [...this.list.querySelectorAll('.field')].map((e) => new Field(e));
    const values = Object.fromEntries(fields.map((f) => [f.spec.name, readTexts(f.spec, f.texts(pressed))]));
    const errors = validateValues(fields.map((f) => f.spec), values);
    for (const f of fields) f.say(errors[f.spec.name]);
    const first = fields.find((f) => errors[f.spec.name]);
    first?.focus();
    this.hint.textContent = first ? '' : 'So it can be answered. Nothing was sent; patterns are checked when it is.';
  }
}
