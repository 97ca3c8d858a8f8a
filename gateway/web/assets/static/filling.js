// Handles the input of an open form: its values, errors and draft, both in the page and in the element for other pages.

import { composing } from './composing.js';
import { Edit, ending } from './edit.js';
import { Field } from './field.js';
import { Give } from './give.js';
import { Leave } from './leave.js';
import { isSure } from './sure.js';
import { readTexts, validateValues } from './validate.js';
import { visible } from './visible.js';

const typed = 'input:not([type=checkbox], [type=radio])';

export class Filling {
  /**
   * @param {HTMLFormElement} form as the node draws it
   * @param {import('./draft.js').Draft} [draft] none keeps none
   * @param {{address?: string, endpoint?: import('./rpc.js').Endpoint}} [of] address is that of the message
   */
  constructor(form, draft, { address = '', endpoint = {} } = {}) {
    Object.assign(this, { form, draft });
    form.noValidate = true; // errors are shown at their fields
    this.fields = [...form.querySelectorAll('.field')].map((e) => new Field(e));
    this.first = this.snapshot();
    form.addEventListener('input', (e) => this.changed(e.target));
    form.addEventListener('keydown', (e) => this.pressed(e));
    if (form.querySelector('.edit-card')) this.editing = new Edit(form, address, endpoint);
    this.gives = [...form.querySelectorAll('[data-give]')].map((e) => new Give(e, address.replace('do=show&pane=edit', 'do=give&pane=give'), endpoint));
    const leave = form.querySelector('.leave-part');
    if (leave) this.leave = new Leave(leave, address.replace('do=show&pane=edit', 'do=leave&pane=leave'), endpoint);
    this.restore();
    this.repeat();
  }

  snapshot() { return JSON.stringify(this.fields.map((f) => f.texts())); }

  /** Reports whether the input differs from the initial one. */
  get isTyped() { return this.snapshot() !== this.first; }

  restore() {
    this.unfold();
    this.draft?.read().then((fields) => {
      if (!fields || this.isTyped) return;
      for (const f of this.fields) if (Object.hasOwn(fields, f.spec.name)) f.put(fields[f.spec.name]);
      this.unfold();
      this.repeat();
      this.editing?.restore();
      for (const g of this.gives) g.changed(0);
    });
  }

  unfold() {
    for (const e of this.form.querySelectorAll('details textarea')) if (e.value !== e.defaultValue) e.closest('details').open = true;
    if (this.edit && this.edit.value !== this.edit.defaultValue) this.form.querySelector('details.edit').open = true;
  }

  /** Updates texts that repeat a choice: the buttons of an approval name the rule that they add. */
  repeat() {
    for (const says of this.form.querySelectorAll('[data-says]')) {
      const chosen = this.form.querySelector(`[name="${says.dataset.says}"]:checked`);
      if (chosen) says.textContent = chosen.dataset.words;
    }
    for (const ends of this.form.querySelectorAll('[data-ends]')) ends.textContent = ending(this.form.elements.namedItem(ends.dataset.ends)?.value ?? '');
  }

  /** Takes over the input of the same fields of an earlier question, and marks the others. The draft of that one ends here. */
  take(earlier) {
    earlier.draft?.retire();
    const begun = JSON.parse(earlier.first);
    for (const f of this.fields) {
      const was = earlier.fields.find((w) => w.isLike(f));
      if (was && String(was.texts()) !== String(begun[earlier.fields.indexOf(was)])) f.put(was.texts());
      f.element.toggleAttribute('data-changed', was?.question !== f.question);
    }
    this.unfold();
    this.repeat();
    for (const g of this.gives) g.changed(0);
    if (this.isTyped) this.keep();
  }

  /** Returns the control that stands for one of an earlier question, with its selection. */
  controlLike(control, earlier) {
    const was = earlier.fields.find((f) => f.controls.includes(control));
    const now = was && this.fields.find((f) => f.isLike(was));
    const at = now?.controls[was.controls.indexOf(control)];
    if (at?.matches(typed) || at?.matches('textarea')) at.setSelectionRange?.(control.selectionStart, control.selectionEnd);
    return at;
  }

  keep() {
    const open = this.isTyped ? this.fields.filter((f) => !f.isSecret) : [];
    this.draft?.save(Object.fromEntries(open.map((f) => [f.spec.name, f.texts()])));
  }

  /** Makes the present input the initial one. The form has ended, and its draft with it. */
  finish() {
    this.first = this.snapshot();
    this.draft?.end();
  }

  discard() {
    JSON.parse(this.first).forEach((texts, i) => this.fields[i].put(texts));
    this.draft?.save({});
    for (const f of this.fields) f.say('');
    this.repeat();
    for (const g of this.gives) g.changed(0);
    this.fail('');
  }

  changed(at) {
    if (at.closest('.give')) return;
    const field = this.fields.find((f) => f.element.contains(at));
    if (!field) return;
    this.repeat();
    if (field.element.hasAttribute('data-wrong')) field.say(this.errors()[field.spec.name]);
    if (!this.form.querySelector('[data-wrong]')) this.fail('');
    this.keep();
  }

  /**
   * Returns the fields that a button sends. Of an approval, a reason is for a denial and never goes with what is allowed, and an
   * edit is sent by its own button alone, if it changes something.
   */
  sent(pressed) {
    if (!this.isApproval) return this.fields;
    const allows = ['once', 'always'].includes(pressed?.value);
    const isEdited = pressed?.matches('[data-edited]') && this.edit.value !== this.edit.defaultValue;
    return this.fields.filter((f) => !(allows && f.spec.name === 'reason') && !(!isEdited && f.spec.name === 'input'));
  }

  get isApproval() { return Boolean(this.form.querySelector('.bar .why')); }

  get edit() { return this.form.querySelector('.edit-card .field textarea'); }

  /** Returns the values by field name; pressed is the button that sends them. */
  values(pressed) { return Object.fromEntries(this.sent(pressed).map((f) => [f.spec.name, readTexts(f.spec, f.texts(pressed))])); }

  /** Returns the input as texts, for the node to parse. */
  texts(pressed) {
    return this.sent(pressed).flatMap((f) => f.texts(pressed).map((text) => ({ name: f.spec.name, text })));
  }

  /** Returns what the references of the answer are narrowed to, as the sentences say it. It throws if one cannot be given. */
  async narrow() {
    const all = {};
    for (const g of this.gives) {
      const facet = await g.facet();
      if (facet) all[g.field] = facet;
    }
    return this.gives.length ? { narrow: all } : {};
  }

  /** Returns the errors by field name. An emptied edit is none of the call that was asked. */
  errors(pressed) {
    const errors = validateValues(this.fields.map((f) => f.spec), this.values(pressed));
    if (pressed?.matches('[data-edited]') && !this.edit.value.trim()) errors.input = 'Write what to allow instead, or go back';
    return errors;
  }

  /** Reports whether a press may allow the call now: not while a denial or an edit is begun, nor by the first press at a high risk. */
  mayAllow(pressed) {
    if (!this.isApproval || !['once', 'always'].includes(pressed?.value)) return true;
    const isOther = !pressed.matches('[data-edited], [data-leaves]') && this.form.querySelector('.bar .act[open]');
    return !isOther && isSure(pressed.matches('[data-edited]') ? this.form.querySelector('.edited') : this.form, pressed);
  }

  /** Shows the error of each field, focuses the first, and reports whether there is one. */
  show(errors) {
    const isWrong = (f) => Object.hasOwn(errors, f.spec.name); // a field may be called "constructor"
    for (const f of this.fields) f.say(isWrong(f) ? errors[f.spec.name] : '');
    const first = this.fields.find(isWrong);
    first?.element.closest('details')?.setAttribute('open', '');
    first?.focus();
    if (first) this.fail('Look at the marked fields.');
    return Boolean(first);
  }

  fail(why) { this.form.querySelector('.failure').textContent = visible(why); }

  pressed(event) {
    if (composing(event) || event.key !== 'Enter' || event.target.form !== this.form) return;
    if (event.repeat && !event.target.matches('textarea')) {
      event.preventDefault(); // a key that is held was pressed for what had the focus before
      return;
    }
    const button = this.form.querySelector('button.primary[name=do]:not([form])');
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      if (!this.isApproval) this.form.requestSubmit(button ?? undefined);
      else if (event.target.matches('textarea')) this.form.querySelector(event.target.closest('.edit-card') ? '[data-edited]' : event.target.closest('.leave') ? '[data-leaves]' : '.choices button[value=deny]').click();
    } else if (event.target.matches(typed) && this.fields.length > 1) {
      event.preventDefault(); // Enter does not send a form of several fields
      const at = this.fields.findIndex((f) => f.element.contains(event.target));
      (this.fields[at + 1] ?? button)?.focus();
    }
  }
}
