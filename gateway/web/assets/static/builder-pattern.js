// Edits a field's pattern in the form builder: a JSON Schema, and controls for its common rules.

import { element } from './sequence.js';

const count = { type: 'number', min: 0, step: 1 };
const rules = {
  text: [['minLength', 'At least so many characters', count], ['maxLength', 'At most so many characters', count], ['pattern', 'Regular expression (RE2), such as ^[a-z]+$', { type: 'text', spellcheck: false }]],
  number: [['minimum', 'Not less than', { type: 'number', step: 'any' }], ['maximum', 'Not more than', { type: 'number', step: 'any' }], ['integer', 'Whole numbers only', { type: 'checkbox' }]],
  list: [['minItems', 'At least so many choices', count], ['maxItems', 'At most so many choices', count]],
};

/** Returns the schema in a text, {} for an empty text, or null if the text is no JSON object. */
function read(text) {
  try {
    const doc = JSON.parse(text.trim() || '{}');
    return doc && typeof doc === 'object' && !Array.isArray(doc) ? doc : null;
  } catch {
    return null;
  }
}

export class Pattern {
  constructor(root) {
    this.element = root;
    root.innerHTML = '<div class="pair"></div><label>Pattern, a JSON Schema <textarea name="pattern" rows="2" spellcheck="false"></textarea></label>';
    [this.controls, this.text] = [root.firstElementChild, root.querySelector('textarea')];
    this.text.addEventListener('input', () => this.show());
    this.controls.addEventListener('input', (e) => this.write(e.target));
  }

  /** Returns the text of the schema. */
  get draft() { return this.text.value.trim(); }

  get isWrong() {
    try {
      return this.draft !== '' && JSON.parse(this.draft) === undefined;
    } catch {
      return true;
    }
  }

  put(text, kind) {
    this.text.value = text;
    this.offer(kind);
  }

  /** Shows the rules for a kind of value, and removes those of the former kind. */
  offer(kind) {
    if (this.kind !== undefined && this.kind !== kind) this.drop(this.kind);
    this.kind = kind;
    this.controls.replaceChildren(...(rules[kind] ?? []).map(([key, says, attributes]) => {
      const label = element('<label><span></span> <input></label>');
      const [words, input] = label.children;
      words.textContent = says;
      for (const [name, value] of Object.entries({ ...attributes, 'data-rule': key })) input.setAttribute(name, value);
      if (attributes.type === 'checkbox') {
        label.className = 'choice';
        label.prepend(input);
      }
      return label;
    }));
    this.show();
  }

  show() {
    const doc = read(this.text.value);
    for (const input of this.controls.querySelectorAll('input')) {
      input.disabled = doc === null;
      const { rule } = input.dataset;
      if (input.type === 'checkbox') input.checked = doc?.type === 'integer';
      else input.value = doc?.[rule] ?? '';
    }
  }

  write(input) {
    const doc = read(this.text.value);
    if (!doc) return;
    if (input.type === 'checkbox') set(doc, 'type', input.checked ? 'integer' : '');
    else set(doc, input.dataset.rule, input.type === 'number' && input.value !== '' ? Number(input.value) : input.value);
    this.keep(doc);
  }

  drop(kind) {
    const doc = read(this.text.value);
    if (!doc) return;
    for (const [key] of rules[kind] ?? []) delete doc[key];
    if (doc.type === 'integer') delete doc.type;
    this.keep(doc);
  }

  keep(doc) { this.text.value = Object.keys(doc).length ? JSON.stringify(doc, null, 2) : ''; }
}

function set(doc, key, value) {
  if (value === '') delete doc[key];
  else doc[key] = value;
}
