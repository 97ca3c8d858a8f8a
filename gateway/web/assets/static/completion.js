// Completes the text of an input: a list beside it, for keyboard and pointer.

import { composing } from './composing.js';
import { visible } from './visible.js';

const most = 50;
let made = 0;

export class Completion {
  /**
   * @param {HTMLInputElement} input
   * @param {(text: string) => Promise<Array<{word: string, description?: string, act?: Function}>>} find returns the
   *   candidates for a text; a candidate with act is an action instead of a word
   * @param {(candidate: object) => void} take inserts a candidate
   */
  constructor(input, find, take) {
    Object.assign(this, { input, find, take, found: [], chosen: -1, asked: 0, id: `suggestions-${++made}` });
    this.list = document.createElement('ul');
    this.list.className = 'suggestions';
    this.list.id = this.id;
    this.list.hidden = true;
    this.list.setAttribute('role', 'listbox');
    this.list.setAttribute('aria-label', 'Suggestions');
    input.after(this.list);
    input.setAttribute('aria-autocomplete', 'list');
    input.setAttribute('aria-controls', this.id);
    if (input.matches('textarea')) input.setAttribute('aria-haspopup', 'listbox'); // it can be no combobox
    else input.setAttribute('role', 'combobox');
    this.show([]);
    input.addEventListener('input', () => this.suggest());
    input.addEventListener('keydown', (e) => this.pressed(e));
    input.addEventListener('blur', () => this.close());
    this.list.addEventListener('mousedown', (e) => { e.preventDefault(); this.choose([...this.list.children].indexOf(e.target.closest('li'))); this.takeChosen(); });
  }

  async suggest() {
    const turn = ++this.asked;
    let found = [];
    try {
      found = await this.find(this.input.value);
    } catch (e) {
      if (!e.code) throw e; // without candidates the person types the whole word
    }
    if (turn === this.asked) this.show(found.slice(0, most));
  }

  show(found) {
    this.found = found;
    this.list.replaceChildren(...found.map((c, i) => {
      const li = document.createElement('li');
      li.id = `${this.id}-${i}`;
      li.setAttribute('role', 'option');
      const [b, span] = [document.createElement('b'), document.createElement('span')];
      b.textContent = visible(c.word);
      span.textContent = visible(c.description ?? '');
      li.append(b, span);
      return li;
    }));
    this.list.hidden = found.length === 0;
    if (this.input.getAttribute('role') === 'combobox') this.input.setAttribute('aria-expanded', String(found.length > 0));
    this.choose(-1);
  }

  close() { this.asked++; this.show([]); }

  choose(i) {
    this.chosen = i;
    for (const [n, li] of [...this.list.children].entries()) li.setAttribute('aria-selected', String(n === i));
    this.list.children[i]?.scrollIntoView({ block: 'nearest' });
    if (i < 0) this.input.removeAttribute('aria-activedescendant');
    else this.input.setAttribute('aria-activedescendant', `${this.id}-${i}`);
  }

  takeChosen() {
    const c = this.found[this.chosen];
    if (!c) return;
    this.close();
    if (c.act) c.act();
    else this.take(c);
  }

  pressed(event) {
    if (composing(event) || this.list.hidden) return;
    const n = this.found.length;
    switch (event.key) {
      case 'ArrowDown': this.choose((this.chosen + 1) % n); break;
      case 'ArrowUp': this.choose(this.chosen > 0 ? this.chosen - 1 : n - 1); break;
      case 'Escape': this.close(); break;
      case 'Tab': case 'Enter':
        if (this.chosen < 0 && event.key === 'Tab' && !event.shiftKey) this.choose(this.found.findIndex((c) => !c.act)); // the first word
        if (this.chosen < 0) return;
        this.takeChosen();
        break;
      default: return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
