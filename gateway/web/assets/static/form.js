// <parley-ask> enhances the plain HTML form of an open form: it validates before sending, keeps drafts, shows errors at
// their fields and handles keys. It is for the node's own page; <parley-form> is for other pages.

import { away, call, home, Refused } from './rpc.js';
import { askToLeave } from './dialog.js';
import { Draft, TextDraft } from './draft.js';
import { Filling } from './filling.js';
import { announce, cardOf, refresh } from './cards.js';
import { commentsIn, countComments, countFromList, forgetComments, mayDrop, reasonFromList, withComments } from './comments.js';
import { composing } from './composing.js';
import { Group } from './group.js';
import { close, isOpening, open, openCard, openNext } from './item.js';
import { dropMeant, hold, isHeld } from './keys.js';
import { markDecided } from './list.js';
import { deed, placeToasts, toast, undoable, warn } from './toast.js';
import { visible } from './visible.js';
import { disable, Whole } from './whole.js';

/** Returns the call of a button: the operation and its body. */
function callOf(what, card, sent) {
  const about = { as: card.dataset.as, id: card.dataset.id };
  if (what.startsWith('snooze-')) return ['snooze', { ...about, until: new Date(Date.now() + Number(what.slice(7)) * 3_600_000).toISOString() }];
  switch (what) {
    case 'wake': return ['snooze', about];
    case 'restore': return ['restore_message', about];
    case 'decline': return ['decline_form', { ...about, revision: Number(card.dataset.revision), reason: sent.get('reason') }];
    case 'withdraw': return ['withdraw_vote', about];
    case 'claim': case 'release': case 'take-over': return ['claim_form', { ...about, release: what === 'release', takeOver: what === 'take-over' }];
    case 'cancel': return ['cancel_form', { ...about, reason: sent.get('reason') }];
    case 'amend': return ['amend_form', { ...about, ...amendmentOf(sent) }];
    case 'forward': return ['forward_form', { ...about, recipient: sent.get('to') }];
    case 'rule': return ['make_rule', { as: about.as, agent: sent.get('agent'), form: sent.get('form'), offer: sent.get('offer'), ...(sent.has('never') && { never: true }), ...(sent.get('until') && { until: new Date(Date.now() + parseInt(sent.get('until'), 10) * 3_600_000).toISOString() }) }];
    case 'adopt': return ['adopt', { ...about, edge: sent.get('edge'), name: sent.get('name') }];
    case 'together': return ['decide_many', { as: card.dataset.as, decisions: decisionsOf(sent).map((d) => ({ ...d, reason: reasonFromList(openCard(), d.form, '') })), key: crypto.randomUUID?.() ?? '' }];
    case 'asked': return ['reply', { ...about, text: sent.get('question') }];
    case 'reply': return ['reply', { ...about, text: sent.get('text'), ...(sent.has('all') && { all: true }), ...(sent.has('files') && { files: sent.getAll('files').map((f) => JSON.parse(f)) }) }];
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

/** Returns the decision on a call for the others of its form too, as the node takes it: only one makes a rule. Each has the comments on it. */
function decisionsLike(card, sent, texts) {
  const text = (name) => texts.find((t) => t.name === name)?.text;
  const decision = text('decision');
  const reasonFor = (form) => (denies(decision) ? withComments(card, form, text('reason')) : text('reason'));
  const others = { always: 'once', never: 'deny' }[decision];
  const all = decisionsOf(sent);
  const maker = all.find((d) => d.form === card.dataset.id) ?? all[0];
  const decisions = all.map((one) => {
    const { form, digest } = one;
    const reason = reasonFor(form);
    if (!others || one !== maker) return { form, digest, decision: others ?? decision, reason };
    return { form, digest, decision, reason, rule: text('rule'), until: text('until') };
  });
  return ['decide_many', { as: card.dataset.as, decisions, key: crypto.randomUUID?.() ?? '' }];
}

const denies = (decision) => ['deny', 'never'].includes(decision);
const shortly = (decision) => (denies(decision) ? '✕ Denied' : '✓ Allowed once');

/** Returns the texts of a denial with the comments on its call. */
function textsWith(card, texts) {
  const reason = withComments(card, card.dataset.id, texts.find((t) => t.name === 'reason')?.text);
  return [...texts.filter((t) => t.name !== 'reason'), { name: 'reason', text: reason }];
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
  together: 'Decided', answer: 'Answered', decline: 'Declined', cancel: 'Cancelled', withdraw: 'Vote withdrawn', amend: 'Changed', forward: 'Forwarded', adopt: 'Kept', reply: 'Sent', asked: 'Asked', rule: 'The rule is made', dismiss: 'Done',
  wake: 'Brought back', restore: 'Not done', claim: 'You are on it', release: 'You are not on it any more', 'take-over': 'Taken over: you are on it',
};

const ends = (what) => ['answer', 'decline'].includes(what); // how a form ends for its person, which is said once it is known
const isClaim = (what) => ['claim', 'release', 'take-over'].includes(what);

/** Returns the element with the inputs of a part of the bar: those of an edit are above it. */
const inputOf = (part) => (part.matches('.edit') ? part.closest('form').querySelector('.edit-card') : part);

/** Focuses the first input of a part that is about to open: what is typed next is for it, and no key of the page. */
function focusOpened(pressed) {
  const part = pressed.closest('details.act > summary')?.parentElement;
  const input = part && inputOf(part)?.querySelector('textarea:not([hidden] *), select, input:not([type=hidden], [type=radio], [type=checkbox])');
  if (input && !part.open) part.addEventListener('toggle', () => input.focus(), { once: true });
}

/** ParleyAct is a message whose buttons make calls. */
export class ParleyAct extends HTMLElement {
  connectedCallback() {
    if (this.card) return;
    this.card = cardOf(this);
    this.about = this.closest('[data-id]'); // the card, or one message of its thread
    this.addEventListener('submit', (e) => this.submitted(e));
    this.addEventListener('click', (e) => focusOpened(e.target));
    const reply = this.querySelector('button[value=reply]')?.form.elements.namedItem('text');
    if (reply) this.followReply(reply);
  }

  /** Keeps the reply that is typed, and shows it where it was begun before. */
  async followReply(input) {
    const { as, id, draft: at } = this.about.dataset;
    this.reply = new TextDraft({ as, id, at });
    await this.reply.follow(input);
  }

  /** Saves what was typed last when the message leaves the page. */
  disconnectedCallback() { this.reply?.send(); }

  submitted(event) {
    event.preventDefault();
    const what = event.submitter?.name === 'do' ? event.submitter.value : 'answer';
    if (this.busy) return;
    const sent = new FormData(event.target);
    if (what === 'together' && this.dropsOthers(event.submitter, sent)) return;
    this.perform(what, event.submitter, () => callOf(what, this.about, sent));
  }

  /** Reports whether a denial of all of an agent's calls drops comments on those that are not open: the first press says so. */
  dropsOthers(button, sent) {
    const { unsent } = countFromList(openCard(), sent.getAll('of').map((named) => named.split(' ')[0]));
    return unsent > 0 && !mayDrop(button, () => this.fail(`${commentsIn(unsent)} on calls that are not open ${unsent === 1 ? 'is' : 'are'} not sent. Press again to deny, or open them.`));
  }

  async perform(what, button, make) {
    this.setBusy(true);
    this.fail('');
    try {
      if (what === 'reply') await this.reply.stop(); // a draft that arrives after the reply would come back
      const [operation, body] = await make();
      const { results = [] } = await call(operation, body);
      this.decided(results);
      if (ends(what) && !results.length) markDecided([this.about.dataset.id], this.about.querySelector('.votes') ? '' : what === 'decline' ? '✕ Declined' : '✓ Answered'); // before the list is drawn again
    } catch (refused) {
      this.setBusy(false);
      await this.refused(refused, button);
      dropMeant(openCard(), warn);
      return;
    }
    await this.done(what);
    this.setBusy(false);
  }

  /** Marks the calls that were decided, and tells of those that were not. It throws if this one was not. */
  decided(results) {
    this.many = results.length;
    const wrong = results.filter((r) => r.error);
    this.settled = results.length - wrong.length;
    const own = this.group && this.settled ? undefined : wrong.find((r) => this.group || r.form === this.card.dataset.id);
    if (wrong.length > 0 && (wrong.length > 1 || !own)) warn(`${wrong.length} of ${results.length} calls were not decided: ${wrong[0].error.message}`);
    const ended = results.filter((r) => !r.error).map((r) => r.form);
    if (results.length) this.ended = ended;
    markDecided(ended, this.decision && shortly(this.decision));
    if (own) throw new Refused(own.error, 0);
  }

  async done(what) {
    const text = said[what] ?? 'Snoozed';
    if (what === 'reply') {
      this.querySelector('textarea').value = '';
      this.querySelector('.clips').replaceChildren();
      await this.reply.clear();
    }
    if (!this.filling || !ends(what)) announce(text);
    if (what === 'rule' || isClaim(what)) toast(deed(text, isClaim(what) ? this.card.dataset.brief : ''));
    const back = { dismiss: 'restore', Snoozed: 'wake' }[said[what] ? what : text];
    if (!back) return refresh(this.card);
    const { card } = this;
    undoable(deed(text, card.dataset.brief), async () => {
      await call(...callOf(back, card));
      open(`${home}/forms/${encodeURIComponent(card.dataset.id)}?` + new URLSearchParams({ as: card.dataset.as }));
    });
    if (!isOpening() && !openNext()) {
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
    } else if (refused.code.startsWith('ALREADY_') || refused.fields.secondVote) await refresh(this.card);
    else button?.focus();
  }

  fail(why) { for (const p of this.querySelectorAll('.failure')) p.textContent = visible(why); }

  setBusy(busy) {
    this.busy = busy;
    this.setAttribute('aria-busy', String(busy));
    disable(this, busy);
  }
}

/** ParleyForm is an open form. */
export class ParleyForm extends ParleyAct {
  connectedCallback() {
    if (this.card) return;
    super.connectedCallback();
    if (this.card.hasAttribute('data-group')) this.group = new Group(this.card);
    this.countSame();
    const places = new ResizeObserver(placeToasts);
    for (const e of [this, this.querySelector('.bar')]) places.observe(e); // the bar also moves where what is above it grows
    const { as, id, draft } = this.card.dataset;
    this.filling = new Filling(this.querySelector('form.ask'), new Draft({ as, id, at: draft }), { address: `/forms/${encodeURIComponent(id)}?` + new URLSearchParams({ as, do: 'show', pane: 'edit' }) });
    if (this.card.matches('[data-type=approval]')) {
      this.whole = new Whole(this.card, this.card.dataset.digest || this.card.dataset.id, () => hold(this.card));
      for (const part of this.querySelectorAll('.bar .act')) part.addEventListener('toggle', () => this.toggled(part));
      for (const name of ['remarked', 'change']) this.card.addEventListener(name, () => this.countComments());
    }
    if (!this.group) this.addEventListener('change', (e) => { if (e.target.name === 'of') this.countSame(); });
    this.addEventListener('keydown', (e) => { if (e.key === 'Escape' && !composing(e)) this.leave(e); });
  }

  /** Forgets what was begun in a part of the bar, from which the person has gone back. Only one part is open. */
  toggled(part) {
    if (part.open) {
      for (const other of this.querySelectorAll('.bar .act[open]')) if (other !== part) other.open = false;
      return;
    }
    if (this.busy) return;
    if (part.matches('.edit')) this.filling.editing.reset();
    const text = part.matches('.edit') ? this.filling.edit : part.querySelector('textarea');
    if (!text || text.value === text.defaultValue) return;
    text.value = text.defaultValue;
    text.dispatchEvent(new Event('input', { bubbles: true }));
  }

  /** Shows at the buttons how many identical calls they decide. */
  countSame() {
    if (this.group) return;
    const many = this.querySelectorAll('.same [name=of]:is([type=hidden], :checked)').length;
    for (const n of this.querySelectorAll('[data-many]')) n.textContent = many;
    const same = this.querySelector('.same');
    if (same) same.hidden = !same.querySelector('[type=checkbox]');
  }

  /** Saves what was typed last when the form leaves the page. */
  disconnectedCallback() {
    super.disconnectedCallback();
    this.whole?.stop?.();
    this.filling?.editing?.stop();
    this.filling?.leave?.stop();
    this.filling?.draft?.send();
  }

  /** Reports whether the input differs from the initial one. */
  get isTyped() { return this.filling.isTyped; }

  submitted(event) {
    if (event.target !== this.filling.form) return super.submitted(event);
    event.preventDefault();
    const pressed = event.submitter;
    if (this.busy || this.isRefused(pressed)) return;
    if (this.filling.show(this.filling.errors(pressed)) || !this.filling.mayAllow(pressed)) return;
    const texts = this.filling.texts(pressed);
    const isDecision = this.card.matches('[data-type=approval]') && Boolean(pressed?.value);
    const { as, id, revision } = this.card.dataset;
    const sent = new FormData(event.target);
    const leaves = pressed?.matches('[data-leaves]');
    const same = isDecision && !leaves && !texts.some((t) => t.name === 'input') ? sent.getAll('of').map((named) => named.split(' ')[0]) : [];
    if (this.group && !same.length) {
      this.fail('No call is selected.');
      return;
    }
    this.decision = texts.find((t) => t.name === 'decision')?.text;
    const comments = isDecision ? countComments(this.card) : 0;
    if (comments && !denies(this.decision) && !this.dropsComments(comments)) return;
    const made = same.length > 1 || this.group ? decisionsLike(this.card, sent, texts) : ['respond_form', { as, id, texts: comments && denies(this.decision) ? textsWith(this.card, texts) : texts, ...(revision && { revision: Number(revision) }) }];
    this.perform('answer', pressed, async () => [made[0], { ...made[1], ...(made[0] === 'respond_form' && await this.filling.narrow()), ...(leaves && { mandate: this.filling.leave.terms() }) }]);
  }

  /** Reports whether the person allows although comments were made, which are never sent with that: the first press says so. */
  dropsComments(many) {
    return mayDrop(this, () => this.fail(`${many === 1 ? 'Your comment is' : `Your ${many} comments are`} not sent when you allow. Press again to allow, or deny.`));
  }

  /** Shows at the buttons that deny how many comments go with that. */
  countComments() {
    const many = countComments(this.card);
    for (const n of this.querySelectorAll('[data-comments]')) n.textContent = many ? ` with ${commentsIn(many)}` : '';
  }

  /** Refuses a press that is not for this item as it is shown, and says why where that is not plain. */
  isRefused(pressed) {
    if (!this.card.matches('[data-type=approval]')) return false;
    if (isHeld(this.card)) return true; // such as the second click of a double click, which is for the item before
    if (document.documentElement.hasAttribute('data-offline')) {
      this.fail(away[1]);
      return true;
    }
    return false;
  }

  async done(what) {
    if (what === 'asked' && this.querySelector('.asks[data-stays]')) return this.doneAsking();
    if (isClaim(what)) return super.done(what); // what was typed stays
    if (what !== 'forward') this.filling.finish();
    if (['answer', 'together'].includes(what)) forgetComments(this.ended ?? [this.card.dataset.id]);
    if (this.group) return this.doneAll();
    const settled = await super.done(what);
    if (settled === null) { // it cannot be drawn now, nor what is next
      const words = deed(said[what], this.card.dataset.brief);
      announce(words.textContent);
      toast(words);
      return dropMeant(openCard(), warn);
    }
    if (!document.getElementById('list')?.dataset.needs || !settled?.dataset.ended) {
      if (settled && ends(what)) announce(settled.querySelector('.state')?.innerText.trim() || said[what]);
      return;
    }
    markDecided([this.card.dataset.id], settled.dataset.ended);
    const words = deed(settled.dataset.ended + (this.many > 1 ? `, ${this.many} ×` : ''), settled.dataset.brief);
    announce(words.textContent);
    if (openCard()?.id !== this.card.id || isOpening() || openNext()) toast(words);
  }

  /** Tells that the question was asked. What it is about stays open, with what was typed into it. */
  async doneAsking() {
    const part = this.querySelector('.asks');
    part.querySelector('textarea').value = '';
    part.open = false;
    announce(said.asked);
    toast(Object.assign(document.createElement('p'), { textContent: said.asked }));
    await refresh(this.card);
    this.card.querySelector('.discussion .post:last-child')?.scrollIntoView({ block: 'nearest' });
  }

  /** Tells which of similar calls were decided, and opens what is next. */
  async doneAll() {
    const words = deed(`${this.decision === 'always' ? '✓ Allowed, with a rule' : shortly(this.decision)}, ${this.settled} ${this.settled === 1 ? 'call' : 'calls'}`, ...this.group.namesOf(this.ended));
    announce(words.textContent);
    toast(words);
    if (openCard()?.id === this.card.id && !isOpening() && !openNext()) await refresh(this.card);
  }

  async refused(refused, button) {
    if (!this.filling.show(refused.fields)) await super.refused(refused, button);
  }

  async leave(event) {
    if (!this.contains(document.activeElement)) return;
    const part = this.querySelector('.bar .act[open]');
    if (part && this.card.matches('[data-type=approval]')) { // back to the buttons
      event.preventDefault();
      event.stopPropagation();
      part.open = false;
      this.card.focus();
      return;
    }
    event.preventDefault();
    const choice = this.isTyped ? await askToLeave() : 'keep';
    if (choice === 'stay') return;
    if (choice === 'discard') this.filling.discard();
    this.card.focus();
  }
}
