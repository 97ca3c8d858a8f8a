// Edits one field in the form builder.

import { Field } from './field.js';
import { Options } from './builder-options.js';
import { Pattern } from './builder-pattern.js';
import { element, tools } from './sequence.js';
import { types } from './types.js';
import { readTexts } from './validate.js';
import { visible } from './visible.js';

/** The controls of defaults, and the kinds of rules that a pattern may have, by the kinds of controls that ask for a field. */
const drawn = { line: 'text', lines: 'textarea', number: 'number', yesno: 'switch', choice: 'select', choices: 'checks', date: 'date', any: 'text' };
const ruled = { line: 'text', lines: 'text', secret: 'text', number: 'number', choices: 'list' };

/** Raw is JSON text that is sent unchanged. */
export class Raw { constructor(text) { this.text = text; } }

/** Returns the key under which the node reports a field's error. */
export const errorKey = (name, i) => visible(name).replace(/\\u\{(\w+)\}/g, (_, hex) => '\\u' + hex.padStart(4, '0')) || `field ${i + 1}`;

const words = ['name', 'label', 'placeholder', 'help', 'example'];
const culprits = [[/^default/, 'default'], [/^example/, 'example'], [/^placeholder/, 'placeholder'], [/^help/, 'help'], [/^label/, 'label'], [/pattern|number in/, 'pattern'], [/option/, 'options'], [/type/, 'type']];
let made = 0;

export class FieldBuilder {
  constructor(draft, changed) {
    const id = `part-${++made}`;
    this.element = element(`<li><fieldset class="part" data-part="${id}"><legend><span class="which"></span> <bdi class="muted"></bdi></legend>${tools}
      <p class="wrong" id="${id}-wrong"></p>
      <div class="pair"><label>Name <input name="name" spellcheck="false"></label><label>Label <input name="label"></label></div>
      <div class="pair"><label>Type <select name="type"></select></label><label class="choice"><input type="checkbox" name="required"> Required</label></div>
      <fieldset class="options"><legend>Options</legend><div></div></fieldset>
      <details><summary>Default, help and rules</summary><div class="rest">
        <div class="default"></div>
        <label class="hinted">Placeholder <input name="placeholder"></label>
        <label>Help <textarea name="help" rows="1"></textarea></label><label>Example <input name="example"></label><div class="rules"></div>
      </div></details></fieldset></li>`);
    this.why = this.control('.wrong');
    this.type = this.control('[name=type]');
    this.type.append(...Object.entries(types).map(([t, { says }]) => new Option(t ? `${t} — ${says}` : says, t)));
    this.options = new Options(this.control('.options > div'), (done) => { this.drawDefault(); changed(done); });
    this.pattern = new Pattern(this.control('.rules'));
    this.put(draft);
    this.type.addEventListener('input', () => this.typeChanged());
    this.element.addEventListener('input', (e) => this.typed(e.target));
  }

  control(selector) { return this.element.querySelector(selector); }

  named(name) { return this.control(`[name=${name}]`); }

  get kind() { return types[this.type.value]; }

  get takesOptions() { return this.kind.takes !== 'no'; }

  put(draft) {
    for (const name of words) this.named(name).value = draft[name] ?? '';
    this.type.value = Object.hasOwn(types, draft.type) ? draft.type : 'text';
    this.named('required').checked = Boolean(draft.required);
    this.options.put(draft.options ?? []);
    this.showType();
    this.pattern.put(draft.pattern ?? '', this.rules);
    this.drawDefault(draft.default);
    this.control('details').open = ['placeholder', 'help', 'example', 'pattern'].some((k) => draft[k]) || Boolean(draft.default?.[0]);
    this.showTitle();
  }

  /** Returns the state of the controls, for put. */
  get draft() {
    return {
      ...Object.fromEntries(words.map((name) => [name, this.named(name).value])), type: this.type.value, required: this.named('required').checked,
      options: this.options.drafts, default: this.default?.texts() ?? [], pattern: this.pattern.draft,
    };
  }

  /** Returns the field as it is sent, without empty members. */
  get field() {
    const { name, label, type, required, placeholder, help, example, pattern, ...rest } = this.draft;
    const given = (text) => text || undefined;
    const options = this.options.given;
    return {
      name, label: given(label), type: given(type), required: required || undefined, help: given(help), placeholder: this.kind.hint && given(placeholder),
      options: this.takesOptions && options.length > 0 ? options : undefined, default: this.value(rest.default), example: this.value([example], true),
      pattern: pattern && !this.pattern.isWrong ? new Raw(pattern) : undefined,
    };
  }

  get wrong() { return this.pattern.isWrong ? 'the pattern is not JSON' : ''; }

  get asks() { return this.kind.ticks && this.options.drafts.length > 0 ? this.kind.ticks : this.kind.asks; }

  get rules() { return ruled[this.asks]; }

  /** Returns the value for the texts of a default or an example. */
  value(texts, isExample) {
    const [text = ''] = texts;
    if (this.asks === 'any' && text) return isJSON(text) ? new Raw(text) : text;
    if (isExample && this.asks !== 'number') return text || undefined;
    const value = readTexts({ type: this.type.value, options: this.options.drafts }, texts);
    return value === '' || value === false || value.length === 0 ? undefined : value;
  }

  typed(at) {
    if (at.closest('.options')) this.drawDefault();
    if (at.name === 'name' || at.name === 'label') this.showTitle();
  }

  typeChanged() {
    if (this.kind.takes === 'needs' && this.options.drafts.length === 0) this.options.put([{ value: '' }, { value: '' }]);
    this.showType();
    this.pattern.offer(this.rules);
    this.drawDefault();
  }

  showTitle() { this.control('legend bdi').textContent = visible(this.named('label').value || this.named('name').value); }

  showType() {
    this.control('.options').hidden = !this.takesOptions;
    this.control('.hinted').hidden = !this.kind.hint;
  }

  /** Draws the control of the default, and keeps its texts where they fit. */
  drawDefault(texts = this.default?.texts() ?? []) {
    const options = this.options.drafts.filter((o) => o.value);
    const by = drawn[this.asks];
    if (by !== this.by && this.rules !== this.pattern.kind) this.pattern.offer(this.rules);
    this.by = by;
    const root = this.control('.default');
    if (root.contains(this.why)) this.say(''); // the message belongs to the removed control
    root.replaceChildren();
    this.default = undefined;
    if (!by) return;
    const e = draw[by](options.length > 0 ? options : this.kind.given ?? []);
    e.dataset.kind = by;
    e.dataset.spec = '{}';
    root.append(e);
    this.default = new Field(e);
    this.default.put(texts);
    if (e.querySelector('select')?.selectedIndex === -1) this.default.put(['']);
  }

  /** Shows an error at the control that it is about. */
  say(why) {
    const text = visible(why ?? '');
    this.why.textContent = text && text[0].toUpperCase() + text.slice(1);
    this.culprit?.removeAttribute('aria-invalid');
    this.culprit?.removeAttribute('aria-describedby');
    this.culprit = undefined;
    const name = text && (culprits.find(([sign]) => sign.test(why))?.[1] ?? 'name');
    if (name === 'options' && this.takesOptions) this.blame(this.options.control(/option (\d+)/.exec(why)?.[1] - 1));
    else if (name) this.blame((name === 'default' ? this.default?.controls[0] : this.named(name)) ?? this.named('name'));
  }

  blame(control) {
    this.culprit = control;
    (control.closest('label') ?? control).after(this.why);
    if (!control.matches('button')) control.setAttribute('aria-invalid', 'true');
    control.setAttribute('aria-describedby', this.why.id);
    if (this.control('details').contains(control)) this.control('details').open = true;
  }

  focus() { (this.culprit ?? this.named('name')).focus(); }
}

function isJSON(text) {
  try {
    return JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}

const inLabel = (control) => () => element(`<label>Default ${control}</label>`);

const draw = {
  text: inLabel('<input name="default">'),
  number: inLabel('<input name="default" inputmode="decimal">'),
  date: inLabel('<input name="default" type="date">'),
  textarea: inLabel('<textarea name="default" rows="2"></textarea>'),
  switch: () => element('<label class="choice"><input name="default" type="checkbox" value="true"> Ticked at first</label>'),
  select: (options) => {
    const e = element('<label>Default <select name="default"><option value="">None</option></select></label>');
    e.lastElementChild.append(...options.map((o) => new Option(visible(o.label || o.value), o.value)));
    return e;
  },
  checks: (options) => {
    const e = element('<fieldset><legend>Default</legend></fieldset>');
    e.append(...options.map((o) => {
      const label = element('<label class="choice"><input name="default" type="checkbox"> <span></span></label>');
      label.firstElementChild.value = o.value;
      label.lastElementChild.textContent = visible(o.label || o.value);
      return label;
    }));
    return e;
  },
};
