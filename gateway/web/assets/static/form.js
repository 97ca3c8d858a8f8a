// <parley-ask> enhances the plain HTML form of an open form: it validates before sending, keeps drafts, shows errors at
// their fields and handles keys. It is for the node's own page; <parley-form> is for other pages.

import { call, home } from './rpc.js';
import { askToLeave } from './dialog.js';
import { Draft, TextDraft } from './draft.js';
import { Filling } from './filling.js';
import { announce, cardOf, refresh } from './cards.js';
import { close, open, openCard, openNext } from './item.js';
import { toast, undoable } from './toast.js';
import { decideLater, mayWait } from './undo.js';
import { visible } from './visible.js';

/** Returns the call of a button: the operation and its body. */
function callOf(what, card, sent) {
  const about = { as: card.dataset.as, id: card.dataset.id };
  if (what.startsWith('snooze-')) return ['snooze', { ...about, until: new Date(Date.now() + Number(what.slice(7)) * 3_600_000).toISOString() }];
  switch (what) {
    case 'wake': return ['snooze', about];
    case 'restore': return ['restore_message', about];
    case 'decline': return ['decline_form', { ...about, revision: Number(card.dataset.revision), reason: sent.get('reason') }];
    case 'withdraw': return ['withdraw_vote', about];
    case 'cancel': return ['cancel_form', { ...about, reason: sent.get('reason') }];
    case 'amend': return ['amend_form', { ...about, ...amendmentOf(sent) }];
    case 'forward': return ['forward_form', { ...about, recipient: sent.get('to') }];
    case 'adopt': return ['adopt', { ...about, edge: sent.get('edge'), name: sent.get('name') }];
    case 'together': return ['decide_many', { as: card.dataset.as, decisions: decisionsOf(sent), key: crypto.randomUUID?.() ?? '' }];
    case 'reply': return ['reply', { ...about, text: sent.get('text') }];
  }
  return ['dismiss', about];
}

/** Returns the changed question of a form as the node takes it: fields only if a label has changed. */
function amendmentOf(sent) {
  const fields = JSON.parse(sent.get('fields') || '[]');
  const labels = sent.getAll('label');
  const isOther = (f, i) => labels[i] !== undefined && labels[i] !== (f.label || f.name);
  return {
    title: sent.get('title'), description: sent.get('description').replaceAll('\r\n', '\n'), note: sent.get('note'),
    ...(fields.some(isOther) && { fields: fields.map((f, i) => (isOther(f, i) ? { ...f, label: labels[i] } : f)) }),
  };
}

/** Returns the decisions on the calls that a form names, each by the digest of the call that was shown. */
function decisionsOf(sent) {
  return sent.getAll('of').map((named) => {
    const [form, digest] = named.split(' ');
    return { form, digest, decision: sent.get('decision') };
  });
}

/** Returns the decision on a call for the identical ones too, as the node takes it: only the first makes a rule. */
function decisionsLike(card, sent, texts) {
  const text = (name) => texts.find((t) => t.name === name)?.text;
  const [decision, reason] = [text('decision'), text('reason')];
  const others = { always: 'once', never: 'deny' }[decision];
  const decisions = decisionsOf(sent).map(({ form, digest }) => {
    if (!others || form !== card.dataset.id) return { form, digest, decision: others ?? decision, reason };
    return { form, digest, decision, reason, rule: text('rule'), until: text('until') };
  });
  return ['decide_many', { as: card.dataset.as, decisions, key: crypto.randomUUID?.() ?? '' }];
}

/** Returns a decision in the words in which it is shown afterwards. */
function wordsOf(button, texts, many) {
  const text = (name) => texts.find((t) => t.name === name)?.text ?? '';
  const rule = [...button.querySelectorAll('.describe')].map((d) => d.textContent).filter(Boolean).join(', ');
  const reason = (many > 1 ? ` ×${many}` : '') + (text('reason') && ` · ${text('reason')}`);
  switch (button.value) {
    case 'once': return `✓ Allowed once${text('input') ? ', with another input' : ''}${reason}`;
    case 'always': return `✓ Always: ${rule}${reason}`;
    case 'never': return `✕ Never: ${rule}${reason}`;
  }
  return `✕ Denied${reason}`;
}

/** Returns a refusal in plain words. */
function wordsFor(refused) {
  switch (refused.code) {
    case 'UNAUTHENTICATED': return 'The session has ended: run parley open for another.';
    case 'AMENDED': return 'Not sent: the question was changed while you answered. Look at what it asks now, and answer again.';
  }
  return refused.message;
}

const said = {
  together: 'Decided', answer: 'Answered', decline: 'Declined', cancel: 'Cancelled', withdraw: 'Taken back', amend: 'Changed', forward: 'Forwarded', adopt: 'Kept', reply: 'Sent', dismiss: 'Done',
  wake: 'Brought back', restore: 'Not done',
};

/** ParleyAct is a message whose buttons make calls. */
export class ParleyAct extends HTMLElement {
  connectedCallback() {
    if (this.card) return;
    this.card = cardOf(this);
    this.addEventListener('submit', (e) => this.submitted(e));
    const reply = this.querySelector('button[value=reply]')?.form.elements.namedItem('text');
    if (reply) this.followReply(reply);
  }

  /** Keeps the reply that is typed, and shows it where it was begun before. */
  async followReply(input) {
    const { as, id, draft: at } = this.card.dataset;
    this.reply = new TextDraft({ as, id, at });
    if (await this.reply.follow(input)) input.closest('details').open = true;
  }

  /** Saves what was typed last when the message leaves the page. */
  disconnectedCallback() { this.reply?.send(); }

  submitted(event) {
    event.preventDefault();
    const what = event.submitter?.name === 'do' ? event.submitter.value : 'answer';
    if (this.busy) return;
    const sent = new FormData(event.target);
    if (what === 'together') {
      const [operation, body] = callOf(what, this.card, sent);
      const ids = body.decisions.map((d) => d.form);
      const words = `${sent.get('decision') === 'once' ? '✓ Allowed' : '✕ Denied'} ${ids.length} calls`;
      decideLater({ calls: [[operation, body]], ids, said: words, card: this.card, ended: () => {} });
      return;
    }
    this.perform(what, event.submitter, () => callOf(what, this.card, sent));
  }

  async perform(what, button, make) {
    this.setBusy(true);
    this.fail('');
    try {
      if (what === 'reply') await this.reply.stop(); // a draft that arrives after the reply would come back
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
    const text = said[what] ?? 'Snoozed';
    if (what === 'reply') await this.reply.clear();
    announce(text);
    const back = { dismiss: 'restore', Snoozed: 'wake' }[said[what] ? what : text];
    if (!back) return refresh(this.card);
    const { card } = this;
    undoable(text, async () => {
      await call(...callOf(back, card));
      open(`${home}/forms/${encodeURIComponent(card.dataset.id)}?` + new URLSearchParams({ as: card.dataset.as }));
    });
    if (!openNext()) {
      close();
      await refresh(card);
    }
    return undefined;
  }

  async refused(refused, button) {
    this.fail(wordsFor(refused));
    if (refused.code === 'AMENDED') {
      const { id } = this.card;
      await refresh(this.card);
      const now = document.getElementById(id)?.querySelector('parley-ask');
      if (now !== this) now?.fail(wordsFor(refused));
    } else if (refused.code.startsWith('ALREADY_')) await refresh(this.card);
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
    const deciding = `${document.body.dataset.deciding} ${this.card.dataset.decided}`; // they are not decided twice
    for (const box of this.querySelectorAll('.same [type=checkbox]')) if (deciding.includes(box.value.split(' ')[0])) box.closest('label').remove();
    this.countSame();
    const { as, id, draft } = this.card.dataset;
    this.filling = new Filling(this.querySelector('form.ask'), new Draft({ as, id, at: draft }));
    this.addEventListener('change', (e) => { if (e.target.name === 'of') this.countSame(); });
    this.addEventListener('keydown', (e) => { if (e.key === 'Escape' && !e.isComposing) this.leave(e); });
  }

  /** Shows at the buttons how many identical calls they decide. */
  countSame() {
    const many = this.querySelectorAll('.same [name=of]:is([type=hidden], :checked)').length;
    for (const n of this.querySelectorAll('[data-many]')) n.textContent = many > 1 ? `×${many}` : '';
    const same = this.querySelector('.same');
    if (same) same.hidden = !same.querySelector('[type=checkbox]');
  }

  /** Saves what was typed last when the form leaves the page. */
  disconnectedCallback() {
    super.disconnectedCallback();
    this.filling?.draft?.send();
  }

  /** Reports whether the input differs from the initial one. */
  get isTyped() { return this.filling.isTyped; }

  submitted(event) {
    if (event.target !== this.filling.form) return super.submitted(event);
    event.preventDefault();
    if (this.busy) return;
    const pressed = event.submitter;
    if (this.filling.show(this.filling.errors(pressed))) return;
    let texts = this.filling.texts(pressed);
    const isDecision = this.card.matches('[data-type=approval]') && Boolean(pressed?.value);
    if (isDecision) texts = texts.filter((t) => t.name !== 'input' || ['once', 'always'].includes(pressed.value) && this.isEdited);
    const { as, id, revision } = this.card.dataset;
    const sent = new FormData(event.target);
    const same = isDecision && !texts.some((t) => t.name === 'input') ? sent.getAll('of').map((named) => named.split(' ')[0]) : [];
    const made = same.length > 1 ? decisionsLike(this.card, sent, texts) : ['respond_form', { as, id, texts, ...(revision && { revision: Number(revision) }) }];
    if (same.length > 1 || isDecision && mayWait([made])) {
      decideLater({ calls: [made], ids: same.length > 1 ? same : [id], said: wordsOf(pressed, texts, same.length), card: this.card, ended: () => this.filling.finish() });
      return;
    }
    this.perform('answer', pressed, () => made);
  }

  /** Reports whether the input of the call was changed. */
  get isEdited() {
    const control = this.filling.form.querySelector('.edit textarea');
    return Boolean(control?.value) && control.value !== control.defaultValue;
  }

  async done(what) {
    if (what !== 'forward') this.filling.finish();
    const settled = await super.done(what);
    if (!document.getElementById('list')?.dataset.needs) return;
    const state = settled?.querySelector('.state')?.cloneNode(true);
    const hasGone = openCard()?.id !== this.card.id || openNext();
    if (hasGone && state) toast(state);
  }

  async refused(refused, button) {
    if (!this.filling.show(refused.fields)) await super.refused(refused, button);
  }

  async leave(event) {
    if (!this.contains(document.activeElement)) return;
    event.preventDefault();
    const choice = this.isTyped ? await askToLeave() : 'keep';
    if (choice === 'stay') return;
    if (choice === 'discard') this.filling.discard();
    this.card.focus();
  }
}
