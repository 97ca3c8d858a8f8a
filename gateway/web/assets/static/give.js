// What an answer gives of something that the reader holds: how much of it, and the sentence that says all of that, which the node writes.

import { Refused, edited } from './rpc.js';
import { visible } from './visible.js';

const rest = 250; // milliseconds after the last input

export class Give {
  /**
   * @param {HTMLFieldSetElement} part of a form
   * @param {string} address of the form, for what is given
   * @param {import('./rpc.js').Endpoint} [endpoint]
   */
  constructor(part, address, endpoint = {}) {
    Object.assign(this, { part, address, endpoint });
    this.control = part.form.elements.namedItem(part.dataset.give);
    this.says = part.querySelector('.says');
    this.field = JSON.parse(this.control.closest('.field').dataset.spec).name;
    part.querySelector('[data-gives]')?.remove(); // with a script it is shown as it is typed; a form that is drawn again may have none
    const make = part.querySelector('.makes button');
    make.type = 'button'; // else a return in any control of the form presses it
    make.addEventListener('click', () => { this.make(); });
    this.fit('');
    for (const e of [part, this.control]) e.addEventListener('input', () => this.changed());
    this.changed(0);
  }

  changed(after = rest) {
    clearTimeout(this.timer);
    this.shown = new Promise((done) => { this.timer = setTimeout(() => done(this.show()), after); });
  }

  /** Returns what is typed, by the names of the controls. Those that are hidden are not for this kind. */
  typed() {
    const all = [...this.part.elements].filter((e) => e.name && !e.closest('[hidden]') && (e.type !== 'checkbox' || e.checked));
    return [[this.control.name, this.control.value], ...all.map((e) => [e.name, e.value])];
  }

  /** Has the node make what is named, and say what would be given. */
  make() {
    clearTimeout(this.timer);
    this.shown = this.show('make');
  }

  /**
   * Has the node say what would be given.
   * @param {'give'|'make'} act
   */
  async show(act = 'give') {
    const typed = this.typed();
    let said = document.createElement('p');
    try {
      said = document.adoptNode((await edited(this.address.replace('do=give', 'do=' + act), typed, this.endpoint)).querySelector('.given'));
    } catch (why) {
      said.className = 'given';
      said.dataset.wrong = '';
      said.textContent = visible(why.message);
    }
    if (String(this.typed()) !== String(typed)) return; // another is under way
    this.says.replaceChildren(said);
    this.said = String(typed);
    this.fit(said.dataset.kind ?? '');
    if (String(this.typed()) !== String(typed)) this.changed(0); // what was hidden or shown says something else
  }

  /** Shows the controls that a kind has. */
  fit(kind) {
    for (const e of this.part.querySelectorAll('[data-for]')) e.hidden = !e.dataset.for.split(' ').includes(kind);
    this.part.hidden = this.control.value.trim() === '';
  }

  /** Returns the narrowing that the sentence says, when that is shown; it throws if it cannot be given. */
  async facet() {
    for (let i = 0; i < 3; i++) { // such as a draft that has come back is not said yet
      await this.shown;
      if (this.said === String(this.typed())) break;
      this.changed(0);
    }
    const said = this.said === String(this.typed()) && this.says.querySelector('.given');
    if (this.control.value.trim() === '') return undefined;
    if (!said || said.hasAttribute('data-wrong')) {
      const message = (said && said.textContent) || 'It is not known what would be given.';
      throw new Refused({ code: 'INVALID_ANSWER', message, fields: { [this.field]: message } }, 0);
    }
    return said.dataset.facet ? JSON.parse(said.dataset.facet) : undefined;
  }
}
