// Reads and writes the controls of a form's field, and shows its error.

import { visible } from './visible.js';

export class Field {
  constructor(element) {
    this.element = element;
    this.kind = element.dataset.kind;
    this.spec = JSON.parse(element.dataset.spec);
    this.controls = [...element.querySelectorAll('input, textarea, select')];
    this.why = element.querySelector(':scope > .wrong');
  }

  /** Reports whether the field asks for the same as that of another revision of its form. */
  isLike(other) { return this.spec.name === other.spec.name && this.kind === other.kind; }

  /** Returns all that the field says, to compare it with that of another revision. */
  get question() { return this.element.dataset.spec + [...this.element.querySelectorAll('label, legend, .help, option')].map((e) => e.textContent).join('\n'); }

  get isSecret() { return this.kind === 'secret'; }

  /** Returns the input as texts; pressed is the button that sends the form. */
  texts(pressed) {
    switch (this.kind) {
      case 'switch': return [String(this.controls[0].checked)];
      case 'checks': case 'radios': case 'buttons': {
        if (pressed && pressed.name === this.element.dataset.control) return [pressed.value];
        const chosen = this.controls.filter((c) => c.checked).map((c) => c.value);
        return chosen.length ? chosen : [''];
      }
    }
    return [this.controls[0].value];
  }

  put(texts) {
    for (const c of this.controls) {
      if (c.type === 'checkbox' || c.type === 'radio') c.checked = texts.includes(c.value);
      else c.value = texts[0] ?? '';
    }
  }

  say(why) {
    const text = visible(why ?? '');
    this.why.textContent = text && text[0].toUpperCase() + text.slice(1);
    this.element.toggleAttribute('data-wrong', Boolean(text));
    for (const c of this.controls) {
      if (text) c.setAttribute('aria-invalid', 'true');
      else c.removeAttribute('aria-invalid');
    }
  }

  focus() { (this.controls.find((c) => c.checked) ?? this.controls[0] ?? this.element.querySelector('button'))?.focus(); }
}
