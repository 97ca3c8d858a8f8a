// Edits the options of a field in the form builder.

import { composing } from './composing.js';
import { element, Sequence, tools } from './sequence.js';

const keys = ['value', 'label', 'description'];

const isGiven = (o) => Boolean(o.value || o.label || o.description);

class Choice {
  constructor(draft) {
    this.element = element(`<li><fieldset class="option"><legend class="which"></legend>
      <label>Value <input name="value" spellcheck="false"></label><label>Label <input name="label"></label><label>Description <input name="description"></label>${tools}</fieldset></li>`);
    this.inputs = keys.map((k) => this.element.querySelector(`[name=${k}]`));
    keys.forEach((k, i) => { this.inputs[i].value = draft[k] ?? ''; });
  }

  get draft() { return Object.fromEntries(keys.map((k, i) => [k, this.inputs[i].value]).filter(([k, v]) => v || k === 'value')); }

  focus() { this.inputs[0].focus(); }
}

export class Options {
  constructor(root, changed) {
    this.element = root;
    root.innerHTML = '<ol></ol><button type="button" name="add">Add an option</button>';
    this.sequence = new Sequence(root.firstElementChild, 'Option', (draft) => new Choice(draft), changed);
    root.lastElementChild.addEventListener('click', () => this.sequence.add({}));
    root.addEventListener('keydown', (e) => {
      if (e.key !== 'Enter' || composing(e) || e.ctrlKey || e.metaKey || !e.target.matches('input')) return;
      e.preventDefault(); // continues with a new option
      e.stopPropagation();
      this.sequence.add({}, this.sequence.indexOf(e.target));
    });
  }

  get drafts() { return this.sequence.parts.map((p) => p.draft); }

  /** Returns the options as they are sent, without empty rows. */
  get given() { return this.drafts.filter(isGiven); }

  /** Returns the input of the i-th given option's value, or of the first row. */
  control(i) {
    const { parts } = this.sequence;
    return (parts.filter((p) => isGiven(p.draft))[i] ?? parts[0])?.inputs[0] ?? this.element.lastElementChild;
  }

  put(drafts) { this.sequence.put(drafts); }
}
