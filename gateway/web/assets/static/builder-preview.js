// The form that is being made up as its recipient will see it, to be tried out.

import { tellTimes } from './cards.js';
import { Field } from './field.js';
import { preview } from './rpc.js';
import { readTexts, validateValues } from './validate.js';
import { visible } from './visible.js';

const pause = 250; // a word is typed, then it is drawn

export class Preview {
  /** @param {(refused: object|null) => void} told hears what the node says of the fields */
  constructor(root, told) {
    Object.assign(this, { root, told, turn: 0 });
    root.innerHTML = '<ol class="stream"></ol><p class="hint" role="status"></p>';
    [this.list, this.hint] = root.children;
    root.addEventListener('submit', (e) => { e.preventDefault(); this.tried(e.submitter); });
  }

  /**
   * Draws the form soon, unless it changes again before. Fields that cannot be asked yet are left out.
   * @param {(wrongs: object) => string} body gives the form in JSON, without the fields that something is wrong with
   */
  draw(as, body) {
    this.stop();
    const { turn } = this;
    this.soon = setTimeout(async () => {
      const refused = await this.look(turn, as, body({}));
      if (turn !== this.turn) return;
      this.told(refused);
      const still = refused?.code === 'INVALID_FORM' ? await this.look(turn, as, body(refused.fields)) : refused;
      if (turn !== this.turn) return;
      if (still) this.list.replaceChildren();
      this.hint.textContent = still && still.code !== 'INVALID_FORM' ? visible(still.message) : refused ? 'What cannot be asked yet is left out.' : '';
    }, pause);
  }

  /** Draws the form now, or gives why there is none. */
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
    card.querySelector('parley-ask').replaceWith(form); // what it does is not for here
    for (const e of card.querySelectorAll('.head, .act')) e.remove();
    for (const e of [card, form]) e.removeAttribute('aria-labelledby');
    card.removeAttribute('tabindex');
    tellTimes(card);
    form.noValidate = true;
    this.list.replaceChildren(card);
  }

  tried(pressed) {
    const fields = [...this.list.querySelectorAll('.field')].map((e) => new Field(e));
    const values = Object.fromEntries(fields.map((f) => [f.spec.name, readTexts(f.spec, f.texts(pressed))]));
    const wrongs = validateValues(fields.map((f) => f.spec), values);
    for (const f of fields) f.say(wrongs[f.spec.name]);
    const first = fields.find((f) => wrongs[f.spec.name]);
    first?.focus();
    this.hint.textContent = first ? '' : 'So it can be answered. Nothing was sent; patterns are checked when it is.';
  }
}
