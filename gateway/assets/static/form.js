// <parley-form> makes the plain HTML form of an open form live: it checks before sending, keeps drafts, says what is
// wrong where it is wrong, and obeys the keyboard.

import { call } from './rpc.js';
import { forgetDraft, readDraft, saveDraft } from './draft.js';
import { Field } from './field.js';
import { readTexts, validateValues } from './validate.js';
import { announce, cardOf, refresh, removeCard } from './cards.js';
import { visible } from './visible.js';

const typed = 'input[type=text], input[type=password], input[type=date], input:not([type])';

/** What a button does, as a call: the operation and its body. */
function callOf(what, card, sent) {
  const about = { as: card.dataset.as, id: card.dataset.id };
  switch (what) {
    case 'decline': return ['decline_form', { ...about, reason: sent.get('reason') }];
    case 'cancel': return ['cancel_form', { ...about, reason: sent.get('reason') }];
    case 'forward': return ['forward_form', { ...about, recipient: sent.get('to') }];
    case 'adopt': return ['adopt', { ...about, edge: sent.get('edge'), name: sent.get('name') }];
    case 'reply': return ['reply', { ...about, text: sent.get('text') }];
  }
  return ['dismiss', about];
}

const said = {
  answer: 'Answered', decline: 'Declined', cancel: 'Cancelled', forward: 'Forwarded', adopt: 'Kept', reply: 'Sent', dismiss: 'Dismissed',
};

/** ParleyAct is a message with buttons: what they stand for is done by a call. */
export class ParleyAct extends HTMLElement {
  connectedCallback() {
    if (this.card) return;
    this.card = cardOf(this);
    this.addEventListener('submit', (e) => this.submitted(e));
  }

  submitted(event) {
    event.preventDefault();
    const what = event.submitter?.name === 'do' ? event.submitter.value : 'answer';
    if (this.busy) return;
    const sent = new FormData(event.target);
    this.perform(what, event.submitter, () => callOf(what, this.card, sent));
  }

  async perform(what, button, make) {
    this.setBusy(true);
    this.fail('');
    try {
      await call(...make());
    } catch (refused) {
      this.setBusy(false);
      await this.refused(refused, button);
      return;
    }
    await this.done(what);
    this.setBusy(false);
  }

  async done(what) {
    announce(said[what]);
    if (what === 'dismiss') removeCard(this.card);
    else await refresh(this.card);
  }

  async refused(refused, button) {
    this.fail(refused.code === 'UNAUTHENTICATED' ? 'The session has ended: run parley open for another.' : refused.message);
    if (refused.code.startsWith('ALREADY_')) await refresh(this.card);
    else button?.focus();
  }

  fail(why) { for (const p of this.querySelectorAll('.failure')) p.textContent = visible(why); }

  setBusy(busy) {
    this.busy = busy;
    this.setAttribute('aria-busy', String(busy));
    for (const b of this.querySelectorAll('button')) b.disabled = busy;
  }
}

/** ParleyForm is an open form. */
export class ParleyForm extends ParleyAct {
  connectedCallback() {
    if (this.card) return;
    super.connectedCallback();
    this.form = this.querySelector('form.ask');
    this.form.noValidate = true; // what is wrong is said at its field
    this.fields = [...this.form.querySelectorAll('.field')].map((e) => new Field(e));
    this.first = this.snapshot();
    this.addEventListener('input', (e) => this.changed(e));
    this.addEventListener('keydown', (e) => this.pressed(e));
    this.restore();
  }

  snapshot() { return JSON.stringify(this.fields.map((f) => f.texts())); }

  /** Whether something stands in it that did not at first. */
  get isTyped() { return this.snapshot() !== this.first; }

  restore() {
    const draft = readDraft(this.card);
    for (const f of this.fields) if (draft && Object.hasOwn(draft, f.spec.name)) f.put(draft[f.spec.name]);
  }

  changed(event) {
    const field = this.fields.find((f) => f.element.contains(event.target));
    if (!field) return;
    if (field.element.hasAttribute('data-wrong')) field.say(this.wrongs()[field.spec.name]);
    if (!this.querySelector('[data-wrong]')) this.fail('');
    this.keep();
  }

  keep() {
    if (!this.isTyped) return forgetDraft(this.card);
    const open = this.fields.filter((f) => !f.isSecret);
    saveDraft(this.card, Object.fromEntries(open.map((f) => [f.spec.name, f.texts()])));
  }

  discard() {
    forgetDraft(this.card);
    JSON.parse(this.first).forEach((texts, i) => this.fields[i].put(texts));
    for (const f of this.fields) f.say('');
    this.fail('');
  }

  wrongs(pressed) {
    const values = Object.fromEntries(this.fields.map((f) => [f.spec.name, readTexts(f.spec, f.texts(pressed))]));
    return validateValues(this.fields.map((f) => f.spec), values);
  }

  submitted(event) {
    if (event.target !== this.form) return super.submitted(event);
    event.preventDefault();
    if (this.busy) return;
    const pressed = event.submitter;
    if (this.show(this.wrongs(pressed))) return;
    const texts = this.fields.flatMap((f) => f.texts(pressed).map((text) => ({ name: f.spec.name, text })));
    this.perform('answer', pressed, () => ['respond_form', { as: this.card.dataset.as, id: this.card.dataset.id, texts }]);
  }

  /** Says what is wrong with each field and goes to the first. It reports whether any is. */
  show(wrongs) {
    for (const f of this.fields) f.say(wrongs[f.spec.name]);
    const first = this.fields.find((f) => wrongs[f.spec.name]);
    first?.focus();
    if (first) this.fail('Look at the marked fields.');
    return Boolean(first);
  }

  async done(what) {
    if (what !== 'forward') {
      forgetDraft(this.card);
      this.first = this.snapshot();
    }
    await super.done(what);
  }

  async refused(refused, button) {
    if (!this.show(refused.fields)) await super.refused(refused, button);
  }

  pressed(event) {
    if (event.isComposing) return;
    if (event.key === 'Escape') this.leave(event);
    if (event.key !== 'Enter' || !this.form.contains(event.target) || event.target.form !== this.form) return;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.form.requestSubmit(this.form.querySelector('button.primary[name=do]') ?? undefined);
    } else if (event.target.matches(typed) && this.fields.length > 1) {
      event.preventDefault(); // a form of several fields is not sent half-filled
      const at = this.fields.findIndex((f) => f.element.contains(event.target));
      (this.fields[at + 1] ?? { focus: () => this.form.querySelector('button.primary').focus() }).focus();
    }
  }

  async leave(event) {
    if (!this.contains(document.activeElement)) return;
    event.preventDefault();
    const choice = this.isTyped ? await askToLeave() : 'keep';
    if (choice === 'stay') return;
    if (choice === 'discard') this.discard();
    this.card.focus();
  }
}

/** Asks whether to leave what was typed. It gives stay, keep or discard. */
export function askToLeave() {
  const back = document.activeElement;
  const dialog = document.createElement('dialog');
  dialog.className = 'leave';
  dialog.setAttribute('aria-labelledby', 'leave-head');
  dialog.innerHTML = `<form method="dialog"><h2 id="leave-head">Leave this form?</h2><p>It has not been sent. What you typed can stay here as a draft.</p>
    <div class="acts"><button value="stay" class="primary" autofocus>Stay</button><button value="keep">Keep the draft</button><button value="discard" class="danger">Discard it</button></div></form>`;
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener('close', () => {
    const choice = dialog.returnValue || 'stay'; // Escape stays
    dialog.remove();
    if (choice === 'stay') back.focus();
    resolve(choice);
  }));
}
