// The form builder: recipient, description and fields, with a preview. It keeps a draft until the form is sent.

import { Completion } from './completion.js';
import { draftOf, forgetDraft, readDraft, saveDraft } from './draft.js';
import { askToLeave } from './dialog.js';
import { errorKey, FieldBuilder, Raw } from './builder-field.js';
import { Preview } from './builder-preview.js';
import { composing } from './composing.js';
import { call } from './rpc.js';
import { element, Sequence } from './sequence.js';
import { visible } from './visible.js';

const markup = `<dialog class="builder" aria-labelledby="builder-head"><h2 id="builder-head">Build a form</h2>
  <div class="halves"><form id="builder-form" autocomplete="off" novalidate>
    <div class="about"><label for="builder-to">To whom</label><div class="combined"><input id="builder-to" name="recipient" spellcheck="false" placeholder="your name for an agent"></div></div>
    <label class="about">Title <input name="title"></label>
    <label class="about">Description <textarea name="description" rows="2"></textarea></label>
    <div class="pair"><label class="about">Deadline, if there is one <input name="deadline" type="datetime-local"></label>
      <label class="choice"><input name="noForward" type="checkbox"> Not to be forwarded</label></div>
    <h3>Fields</h3><div><ol class="parts"></ol><button type="button" name="add">Add a field</button></div>
  </form><section aria-labelledby="builder-preview"><h3 id="builder-preview">As they will see it</h3><div class="preview"></div></section></div>
  <p class="failure" role="alert" id="builder-failure"></p>
  <div class="acts"><button class="primary" form="builder-form">Send form</button><button type="button" name="leave">Close (Esc)</button><output class="sr" role="status"></output></div></dialog>`;

const texts = ['recipient', 'title', 'description', 'deadline'];
const signs = [[/^the deadline/, 'deadline'], [/description/, 'description'], [/^a title/, 'title']];
const addressed = ['UNKNOWN_RECIPIENT', 'UNKNOWN_NAME', 'INVALID_NAME'];

/** Returns JSON, with integers and patterns as they were typed. */
function json(v) {
  if (v instanceof Raw) return v.text;
  if (typeof v === 'bigint') return String(v);
  if (Array.isArray(v)) return `[${v.map(json).join()}]`;
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  return `{${Object.entries(v).filter(([, of]) => of !== undefined).map(([key, of]) => `${JSON.stringify(key)}:${json(of)}`).join()}}`;
}

class Builder {
  constructor(begun) {
    const { as } = document.body.dataset;
    Object.assign(this, { as, draftName: draftOf(as, 'new') });
    this.dialog = element(markup);
    const at = (selector) => this.dialog.querySelector(selector);
    [this.form, this.failure, this.status] = ['form', '.failure', 'output'].map(at);
    this.fields = new Sequence(at('.parts'), 'Field', (draft) => new FieldBuilder(draft, (done) => this.changed(done)), (done) => this.changed(done));
    this.preview = new Preview(at('.preview'), (refused) => this.checked(refused));
    new Completion(this.control('recipient'), (prefix) => this.names(prefix), ({ word }) => { this.control('recipient').value = word; this.changed(); });
    this.put({ fields: [{}], ...begun });
    this.first = JSON.stringify(this.draft);
    const kept = readDraft(this.draftName);
    if (Array.isArray(kept?.fields)) this.put({ ...kept, ...Object.fromEntries(Object.entries(begun).filter(([, v]) => v)) });
    this.listen();
  }

  listen() {
    this.form.addEventListener('input', () => this.changed());
    this.form.addEventListener('submit', (e) => { e.preventDefault(); this.send(); });
    this.dialog.querySelector('[name=leave]').addEventListener('click', () => this.leave());
    this.dialog.querySelector('.parts + [name=add]').addEventListener('click', () => this.fields.add({}));
    this.dialog.addEventListener('cancel', (e) => { e.preventDefault(); this.leave(); });
    this.dialog.addEventListener('keydown', (e) => this.pressed(e));
  }

  control(name) { return this.form.querySelector(`[name=${name}]`); } // the first match: the form's own controls precede those of its fields

  put(draft) {
    for (const name of texts) this.control(name).value = draft[name] ?? '';
    this.control('noForward').checked = Boolean(draft.noForward);
    this.fields.put(draft.fields);
  }

  get draft() {
    return { ...Object.fromEntries(texts.map((name) => [name, this.control(name).value])), noForward: this.control('noForward').checked, fields: this.fields.parts.map((p) => p.draft) };
  }

  /** Returns the form as it is sent, in JSON, without the fields that have errors. */
  body(errors = {}) {
    const { recipient, title, description, deadline, noForward } = this.draft;
    const due = deadline ? new Date(deadline).toISOString() : undefined;
    const fields = this.fields.parts.map((p) => p.field).filter(({ name }, i) => !errors[errorKey(name, i)]);
    return json({ as: this.as, recipient, title, description, deadline: due, noForward, fields });
  }

  show() { this.preview.draw(this.as, (errors) => this.body(errors)); }

  /** Opens the dialog. The promise resolves to the node's response, or to null if nothing was sent. */
  open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    const empty = texts.filter((name) => name === 'recipient' || name === 'description').find((name) => !this.control(name).value);
    (empty ? this.control(empty) : this.fields.parts[0] ?? this.control('title')).focus();
    this.show();
    return new Promise((resolve) => { this.resolve = resolve; });
  }

  close(answer) {
    this.preview.stop();
    this.dialog.close();
    this.dialog.remove();
    this.resolve(answer);
  }

  async names(prefix) {
    const { candidates } = await call('complete', { as: this.as, of: 'names', prefix });
    return candidates.filter((c) => c.word !== prefix);
  }

  changed(done) {
    if (typeof done === 'string') this.status.textContent = done;
    const isTyped = JSON.stringify(this.draft) !== this.first;
    if (isTyped) saveDraft(this.draftName, this.draft);
    else forgetDraft(this.draftName);
    this.show();
  }

  /** Updates the errors at the fields, once an attempt to send has shown them. */
  checked(refused) {
    if (this.isTried && (!refused || refused.code === 'INVALID_FORM')) this.showErrors(refused?.fields ?? {});
  }

  /** Shows the error of each field, and returns the first field that has one. */
  showErrors(errors) {
    let first;
    for (const [i, p] of this.fields.parts.entries()) {
      const { name } = p.draft;
      const why = p.wrong || errors[errorKey(name, i)];
      p.say(why);
      if (why) first ??= p;
    }
    return first;
  }

  async send() {
    if (this.isBusy) return;
    this.isTried = true;
    this.say('');
    const wrong = this.showErrors({});
    if (wrong) return wrong.focus();
    this.setBusy(true);
    try {
      const answer = await call('form', this.body());
      forgetDraft(this.draftName);
      this.close(answer);
    } catch (refused) {
      if (!refused.code) throw refused;
      this.setBusy(false);
      this.refused(refused);
    }
  }

  refused(refused) {
    const first = this.showErrors(refused.fields);
    if (first) {
      this.say('Look at the marked fields.');
      return first.focus();
    }
    const name = addressed.includes(refused.code) ? 'recipient' : signs.find(([sign]) => sign.test(refused.message))?.[1];
    this.say(refused.message + (refused.hint ? `\n${refused.hint}` : ''), name && this.control(name));
  }

  /** Shows an error, and focuses the control that it is about. */
  say(why, control) {
    this.failure.textContent = visible(why).replaceAll('\\u{a}', '\n');
    for (const name of texts) {
      const c = this.control(name);
      if (c === control) c.setAttribute('aria-invalid', 'true');
      else c.removeAttribute('aria-invalid');
      if (c === control) c.setAttribute('aria-describedby', this.failure.id);
      else c.removeAttribute('aria-describedby');
    }
    control?.focus();
  }

  setBusy(busy) {
    this.isBusy = busy;
    this.dialog.querySelector('[form=builder-form]').disabled = busy;
  }

  pressed(event) {
    if (composing(event)) return;
    if (event.key === 'Escape') {
      event.preventDefault();
      this.leave();
    } else if (event.key === 'Enter' && this.form.contains(event.target)) {
      if (event.ctrlKey || event.metaKey) this.form.requestSubmit();
      else if (event.target.matches('input')) event.preventDefault(); // Enter in one input does not send the form
    }
  }

  async leave() {
    if (this.isBusy || this.isLeaving) return;
    this.isLeaving = true;
    const choice = JSON.stringify(this.draft) === this.first ? 'keep' : await askToLeave();
    this.isLeaving = false;
    if (choice === 'discard') forgetDraft(this.draftName);
    if (choice !== 'stay') this.close(null);
  }
}

/**
 * Opens the builder. The given members replace those of the draft.
 * @param {{recipient: string, description: string}} begun
 * @returns {Promise<object|null>} the node's response, or null if nothing was sent
 */
export const buildForm = (begun) => new Builder(begun).open();
