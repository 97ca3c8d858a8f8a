// A mandate that is given with an allowed call: which later calls, and within which limits. The sentence that says all of that is the node's.

import { Refused, edited } from './rpc.js';
import { visible } from './visible.js';
import { enable } from './whole.js';

const rest = 250; // milliseconds after the last input

export class Leave {
  /**
   * @param {HTMLFieldSetElement} part of a form
   * @param {string} address of the form, for what is given
   * @param {import('./rpc.js').Endpoint} [endpoint]
   */
  constructor(part, address, endpoint = {}) {
    Object.assign(this, { part, address, endpoint });
    this.says = part.querySelector('.says');
    this.button = part.form.querySelector('[data-leaves]');
    part.querySelector('[data-gives]')?.remove(); // with a script it is shown as it is chosen; a form that is drawn again may have none
    part.addEventListener('input', () => this.changed());
    this.fit(false);
  }

  /** Enables the button once it is said what it gives, and the whole call was shown. */
  fit(isSaid) {
    this.isSaid = isSaid;
    this.button.toggleAttribute('data-unsaid', !isSaid);
    enable(this.button);
  }

  changed() {
    this.fit(false);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.show(), rest);
  }

  stop() { clearTimeout(this.timer); }

  typed() {
    return [...this.part.elements].filter((e) => e.name.startsWith('leave-') && (e.type !== 'checkbox' || e.checked)).map((e) => [e.name, e.value]);
  }

  /** Has the node say what would be given. */
  async show() {
    const typed = this.typed();
    let said = document.createElement('p');
    try {
      said = document.adoptNode((await edited(this.address, typed, this.endpoint)).querySelector('.given'));
    } catch (why) {
      said.className = 'given';
      said.dataset.wrong = '';
      said.textContent = visible(why.message);
    }
    if (String(this.typed()) !== String(typed)) return; // another is under way
    this.says.replaceChildren(said);
    this.fit(!said.hasAttribute('data-wrong'));
  }

  /** Returns the terms that the sentence says. It throws if there are none. */
  terms() {
    const said = this.says.querySelector('[name=terms]');
    if (!said || !this.isSaid) throw new Refused({ code: 'INVALID_ANSWER', message: 'It is not known what would be given.', fields: {} }, 0);
    return JSON.parse(said.value);
  }
}
