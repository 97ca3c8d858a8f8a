// Elements for other pages: <parley-form form="ID"> shows one form, <parley-questions> all open questions to an agent.
//
//   <script type="module" src="/elements.js"></script>
//   <parley-questions></parley-questions>
//
// Attributes, each also a property: form is a message's ID or number. base is the path under which a proxy serves the
// node, "" without a proxy. as is the name of an agent that the host holds. no-draft (noDraft) keeps no input over a
// reload. token is a bearer token in place of the browser's session; set as a property it appears in no document.
//
// Events, which do not bubble: "submit" before an answer is sent, "cancel" before a form is declined, and "settled" once
// it has ended. The page may prevent the first two. The types are in /elements.d.ts.
//
// The node draws the form, with Markdown and text escaped. Parts and custom properties for styles are in appearance.js. A
// Content-Security-Policy needs script-src and connect-src 'self'.
//
// The node refuses requests from other origins, even with a token. So the page and the node need one origin: a proxy in
// front of both passes the path in base to the node, strips it, and sets Host to the node's own address. Fetching the
// module needs the browser's session, or a header that the proxy adds. The token is for calls only.
//
// validateValues can be imported without the elements. It needs no document.

import { exported, prepare } from './appearance.js';
import { Draft, draftOf, forgetDraft } from './draft.js';
import { Filling } from './filling.js';
import { Live, said } from './live.js';
import { Refused, call, page } from './rpc.js';
import { readTexts, validateValues } from './validate.js';
import { disable, Whole } from './whole.js';

export { Refused, readTexts, validateValues };

const open = ['open', 'answering'];
const mostQuestions = 100;

/** Parses JSON. An integer beyond the exact range of numbers becomes a bigint. */
const read = (text) => JSON.parse(text, (_, v, at) =>
  (typeof v === 'number' && /^-?\d{16,}$/.test(at?.source ?? '') && !Number.isSafeInteger(v) ? BigInt(at.source) : v));

const plain = (v) => (typeof v === 'bigint' && Number.isSafeInteger(Number(v)) ? Number(v) : v);

/** ParleyFormElement shows one form: first to be answered, then with its outcome. */
export class ParleyFormElement extends Live {
  static names = ['form', 'base', 'token', 'as'];

  constructor() {
    super();
    this.shadow.addEventListener('submit', (e) => this.submitted(e));
  }

  get form() { return this.getAttribute('form') ?? ''; }

  set form(form) { this.setAttribute('form', form); }

  /** Focuses the first input, never a button: a key press meant for something else must not answer. */
  focus(options) { (this.shadow.querySelector('.field :is(input, textarea, select)') ?? this.article)?.focus(options); }

  reset() {
    this.whole?.stop?.();
    this.filling?.editing?.stop();
    this.article = this.filling = this.formId = this.whole = undefined;
    this.isOver = this.busy = false;
    this.fail('');
    this.shadow.replaceChildren(this.failure, this.news);
  }

  isAbout(changed) { return !this.formId || changed.some((m) => m.messageId === this.formId); }

  async draw(isStill) {
    if (this.isOver || !this.form) return;
    const query = new URLSearchParams({ pane: 'item', ...(this.as && { as: this.as }) });
    const doc = await page(`/forms/${encodeURIComponent(this.form)}?${query}`, this.mailbox);
    const card = doc.querySelector('li.message');
    const status = card?.dataset.status;
    if (!status) throw new Refused({ code: 'NOT_A_FORM', message: `${this.form} is not a form` }, 0);
    const ended = !open.includes(status) && await call('get_message', { as: this.as, id: card.dataset.id }, this.mailbox, read);
    if (isStill()) this.show(card, doc.getElementById('names'), ended);
  }

  show(card, names, ended) {
    const waits = card.hasAttribute('data-waits');
    const had = this.filling;
    const article = prepare(card);
    this.formId = card.dataset.id;
    if (had && waits && card.dataset.revision === this.article.dataset.revision) { // keeps the input
      for (const part of ['.head', '.notes']) this.article.querySelector(part).replaceWith(article.querySelector(part));
      return;
    }
    const focused = this.shadow.activeElement;
    const isLost = had?.isTyped && !this.busy && !waits;
    this.article?.remove();
    this.article = article;
    this.shadow.prepend(article);
    if (waits) article.append(document.adoptNode(names)); // the names to choose from
    const draft = () => (this.noDraft ? undefined : new Draft({ as: this.as, id: this.formId, at: card.dataset.draft, endpoint: this.mailbox }));
    this.filling = waits ? new Filling(article.querySelector('form.ask'), draft(), { address: `/forms/${encodeURIComponent(this.formId)}?` + new URLSearchParams({ ...(this.as && { as: this.as }), do: 'show', pane: 'edit' }), endpoint: this.mailbox }) : undefined;
    this.whole?.stop?.();
    had?.editing?.stop();
    this.whole = waits && card.dataset.type === 'approval' ? new Whole(article, card.dataset.digest || card.dataset.id) : undefined;
    if (!waits) forgetDraft(draftOf(this.as, this.formId));
    else if (had) this.filling.take(had);
    if (had && waits) this.news.textContent = 'The question has changed. What you typed stays where the fields are the same.';
    else if (had) this.tellEnd(isLost);
    if (focused) article.focus({ preventScroll: true });
    if (!ended) return;
    this.isOver = true;
    this.fire('settled', { form: this.formId, outcome: ended.outcome });
  }

  /** Announces the outcome of a form that was shown open. */
  tellEnd(isLost) {
    this.news.textContent = this.article.querySelector('.state')?.innerText.trim() ?? '';
    if (!isLost) return;
    const note = document.createElement('p');
    note.className = 'hint';
    note.part = 'unsent';
    note.textContent = 'What you typed here was not sent.';
    this.article.append(note);
  }

  submitted(event) {
    event.preventDefault();
    if (this.busy) return;
    if (event.target === this.filling?.form) return this.answer(event.submitter);
    const sent = new FormData(event.target);
    if (event.submitter?.value === 'decline') this.decline(sent.get('reason') ?? '');
    if (event.submitter?.value === 'forward') this.perform('forward_form', { recipient: sent.get('to') }, 'Forwarded');
  }

  async answer(pressed) {
    const { filling } = this;
    if (filling.show(filling.errors(pressed)) || !filling.mayAllow(pressed)) return;
    const values = Object.fromEntries(Object.entries(filling.values(pressed)).map(([name, v]) => [name, plain(v)]));
    if (this.fire('submit', { form: this.formId, values }, true)) await this.perform('respond_form', async () => ({ texts: filling.texts(pressed), ...await filling.narrow(), revision: Number(this.article.dataset.revision) }));
  }

  async decline(reason) {
    if (this.fire('cancel', { form: this.formId, reason }, true)) await this.perform('decline_form', { reason, revision: Number(this.article.dataset.revision) });
  }

  async perform(operation, body, done = '') {
    const { turn } = this;
    this.setBusy(true);
    this.filling.fail('');
    let refused;
    try {
      await call(operation, { as: this.as, id: this.formId, ...(typeof body === 'function' ? await body() : body) }, this.mailbox);
    } catch (why) {
      refused = why;
    }
    if (this.turn !== turn) return;
    if (!refused || refused.code === 'AMENDED' || refused.code?.startsWith('ALREADY_') || refused.fields?.secondVote) await this.look();
    if (this.turn !== turn) return;
    this.setBusy(false);
    if (!refused) this.news.textContent ||= done;
    else if (this.filling && !this.filling.show(refused.fields ?? {})) this.filling.fail(said(refused));
  }

  setBusy(busy) {
    this.busy = busy;
    this.article.ariaBusy = String(busy);
    disable(this.article, busy);
  }
}

/** ParleyQuestionsElement shows the open forms to an agent, oldest first. It removes those that end. */
export class ParleyQuestionsElement extends Live {
  focus(options) { (this.shadow.querySelector('parley-form') ?? this.list).focus(options); }

  reset() {
    this.forms = new Map();
    this.list = document.createElement('ol');
    this.list.className = 'questions';
    this.list.part = 'list';
    this.list.tabIndex = -1;
    this.state = document.createElement('p');
    this.state.part = 'empty';
    this.state.role = 'status';
    this.fail('');
    this.shadow.replaceChildren(this.list, this.state, this.failure);
  }

  isAbout() { return true; }

  async draw(isStill) {
    const { messages, next } = await call('list_messages', { as: this.as, pending: true, limit: mostQuestions }, this.mailbox);
    if (!isStill()) return;
    const ids = messages.map((m) => m.messageId);
    for (const id of ids) if (!this.forms.has(id)) this.add(id);
    for (const id of this.forms.keys()) if (!ids.includes(id)) this.drop(id);
    this.state.textContent = ids.length === 0 ? 'No questions right now.' : next ? 'There are more: answer some of these first.' : '';
  }

  add(id) {
    const form = document.createElement('parley-form');
    for (const name of ['base', 'as', 'no-draft']) if (this.hasAttribute(name)) form.setAttribute(name, this.getAttribute(name));
    form.token = this.token;
    form.setAttribute('form', id);
    form.setAttribute('exportparts', exported);
    for (const name of ['submit', 'cancel', 'settled']) {
      form.addEventListener(name, (e) => { if (!this.fire(name, e.detail, e.cancelable)) e.preventDefault(); });
    }
    const item = document.createElement('li');
    item.part = 'question';
    item.append(form);
    this.forms.set(id, form);
    this.list.append(item);
  }

  /** Announces a question's outcome and removes it. */
  async drop(id) {
    const form = this.forms.get(id);
    this.forms.delete(id);
    await form.look();
    const item = form.parentElement;
    const had = this.shadow.activeElement === form;
    const near = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    if (had) (near?.firstElementChild ?? this.list).focus();
  }
}

if (globalThis.customElements && !customElements.get('parley-form')) {
  customElements.define('parley-form', ParleyFormElement);
  customElements.define('parley-questions', ParleyQuestionsElement);
}
