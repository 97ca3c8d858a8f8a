// An open form that somebody fills in: what stands in it, what is wrong with it, and the draft of it. The page and the
// element for other pages have it from here, so that the same rules hold in both.

import { forgetDraft, readDraft, saveDraft } from './draft.js';
import { Field } from './field.js';
import { readTexts, validateValues } from './validate.js';
import { visible } from './visible.js';

const typed = 'input[type=text], input[type=password], input[type=date], input:not([type])';

export class Filling {
  /**
   * @param {HTMLFormElement} form as the node draws it
   * @param {string} draft under which name a draft is kept; '' keeps none
   */
  constructor(form, draft) {
    Object.assign(this, { form, draft });
    form.noValidate = true; // what is wrong is said at its field
    this.fields = [...form.querySelectorAll('.field')].map((e) => new Field(e));
    this.first = this.snapshot();
    form.addEventListener('input', (e) => this.changed(e.target));
    form.addEventListener('keydown', (e) => this.pressed(e));
    this.restore();
    this.repeat();
  }

  snapshot() { return JSON.stringify(this.fields.map((f) => f.texts())); }

  /** Whether something stands in it that did not at first. */
  get isTyped() { return this.snapshot() !== this.first; }

  restore() {
    const draft = this.draft && readDraft(this.draft);
    for (const f of this.fields) if (draft && Object.hasOwn(draft, f.spec.name)) f.put(draft[f.spec.name]);
  }

  /** Has what repeats the choice of a control say it: the buttons of an approval say which rule they make. */
  repeat() {
    for (const says of this.form.querySelectorAll('[data-says]')) {
      const control = this.form.elements.namedItem(says.dataset.says);
      if (control?.selectedOptions?.length) says.textContent = control.selectedOptions[0].textContent;
    }
  }

  keep() {
    if (!this.draft) return;
    if (!this.isTyped) return forgetDraft(this.draft);
    const open = this.fields.filter((f) => !f.isSecret);
    saveDraft(this.draft, Object.fromEntries(open.map((f) => [f.spec.name, f.texts()])));
  }

  /** Takes what stands in it for settled: it is no draft any more. */
  finish() {
    this.first = this.snapshot();
    if (this.draft) forgetDraft(this.draft);
  }

  discard() {
    JSON.parse(this.first).forEach((texts, i) => this.fields[i].put(texts));
    this.finish();
    for (const f of this.fields) f.say('');
    this.repeat();
    this.fail('');
  }

  changed(at) {
    const field = this.fields.find((f) => f.element.contains(at));
    if (!field) return;
    this.repeat();
    if (field.element.hasAttribute('data-wrong')) field.say(this.wrongs()[field.spec.name]);
    if (!this.form.querySelector('[data-wrong]')) this.fail('');
    this.keep();
  }

  /** What stands in it, by name; pressed is the button that sends it. */
  values(pressed) { return Object.fromEntries(this.fields.map((f) => [f.spec.name, readTexts(f.spec, f.texts(pressed))])); }

  /** The same as the node reads it. */
  texts(pressed) { return this.fields.flatMap((f) => f.texts(pressed).map((text) => ({ name: f.spec.name, text }))); }

  wrongs(pressed) { return validateValues(this.fields.map((f) => f.spec), this.values(pressed)); }

  /** Says what is wrong with each field and goes to the first. It reports whether any is. */
  show(wrongs) {
    const isWrong = (f) => Object.hasOwn(wrongs, f.spec.name); // a name may be that of what every object has
    for (const f of this.fields) f.say(isWrong(f) ? wrongs[f.spec.name] : '');
    const first = this.fields.find(isWrong);
    first?.focus();
    if (first) this.fail('Look at the marked fields.');
    return Boolean(first);
  }

  fail(why) { this.form.querySelector('.failure').textContent = visible(why); }

  pressed(event) {
    if (event.isComposing || event.key !== 'Enter' || event.target.form !== this.form) return;
    const button = this.form.querySelector('button.primary[name=do]');
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.form.requestSubmit(button ?? undefined);
    } else if (event.target.matches(typed) && this.fields.length > 1) {
      event.preventDefault(); // a form of several fields is not sent half-filled
      const at = this.fields.findIndex((f) => f.element.contains(event.target));
      (this.fields[at + 1] ?? button)?.focus();
    }
  }
}
