// Elements for other pages: <parley-form form="ID"> shows one form, <parley-questions> all that wait for an agent.
//
//   <script type="module" src="/elements.js"></script>
//   <parley-questions></parley-questions>
//
// Attributes, which are properties too: form, a message's ID or number; base, the path under which a proxy has the node
// ("" if it has none); as, the name of an agent that the host holds; no-draft (noDraft), to keep nothing of what is
// typed over a reload; token, a bearer token in place of the browser's session, which as a property is in no document.
//
// Events, which do not bubble: "submit" before an answer is sent and "cancel" before a form is declined (the page may
// prevent both, and do something else), and "settled" once it has ended, by whomever. The types are in /elements.d.ts.
//
// The node draws the form: its Markdown is clean, and its text is text. The parts and custom properties by which a page
// has it look its own way are in dress.js. Under a Content-Security-Policy it takes script-src and connect-src 'self'.
//
// The node refuses what comes from other origins, whatever token comes with it. So the page that shows these elements
// and the node have one origin: a proxy in front of both passes a path on to the node, which base names and which the
// node does not see, and gives the node's own address as Host. The browser's session, or a header that the proxy
// adds, opens the module too; the token is for calls.
//
// Who wants no element imports validateValues alone: it needs no document.

import { draftOf, forgetDraft } from './draft.js';
import { dress, exported } from './dress.js';
import { Filling } from './filling.js';
import { Live, said } from './live.js';
import { Refused, call, page } from './rpc.js';
import { readTexts, validateValues } from './validate.js';

export { Refused, readTexts, validateValues };

const open = ['open', 'answering'];
const mostQuestions = 100;

/** Reads JSON. An integer that a script's number cannot tell is a bigint. */
const read = (text) => JSON.parse(text, (_, v, at) =>
  (typeof v === 'number' && /^-?\d{16,}$/.test(at?.source ?? '') && !Number.isSafeInteger(v) ? BigInt(at.source) : v));

const plain = (v) => (typeof v === 'bigint' && Number.isSafeInteger(Number(v)) ? Number(v) : v);

/** ParleyFormElement shows one form: open, to be answered, and afterwards what became of it. */
export class ParleyFormElement extends Live {
  static names = ['form', 'base', 'token', 'as'];

  constructor() {
    super();
    this.shadow.addEventListener('submit', (e) => this.submitted(e));
  }

  get form() { return this.getAttribute('form') ?? ''; }

  set form(form) { this.setAttribute('form', form); }

  /** Goes to where the form is answered, but to no button: a key that was meant for something else must not answer. */
  focus(options) { (this.shadow.querySelector('.field :is(input, textarea, select)') ?? this.article)?.focus(options); }

  reset() {
    this.article = this.filling = this.formId = undefined;
    this.isOver = this.busy = false;
    this.fail('');
    this.shadow.replaceChildren(this.failure, this.news);
  }

  isAbout(changed) { return !this.formId || changed.some((m) => m.messageId === this.formId); }

  async draw(isStill) {
    if (this.isOver || !this.form) return;
    const query = this.as && `?as=${encodeURIComponent(this.as)}`;
    const doc = await page(`/forms/${encodeURIComponent(this.form)}${query}`, this.box);
    const card = doc.querySelector('li.message');
    const status = card?.dataset.status;
    if (!status) throw new Refused({ code: 'NOT_A_FORM', message: `${this.form} is not a form` }, 0);
    const ended = !open.includes(status) && await call('get_message', { as: this.as, id: card.dataset.id }, this.box, read);
    if (isStill()) this.show(card, doc.getElementById('names'), ended);
  }

  show(card, names, ended) {
    const waits = card.hasAttribute('data-waits');
    const had = this.filling;
    const article = dress(card);
    this.formId = card.dataset.id;
    if (had && waits) { // what is typed stays
      for (const part of ['.head', '.notes']) this.article.querySelector(part).replaceWith(article.querySelector(part));
      return;
    }
    const focused = this.shadow.activeElement;
    const isLost = had?.isTyped && !this.busy;
    this.article?.remove();
    this.article = article;
    this.shadow.prepend(article);
    if (waits) article.append(document.adoptNode(names)); // what there is to pick from
    this.filling = waits ? new Filling(article.querySelector('form.ask'), this.noDraft ? '' : draftOf(this.as, this.formId)) : undefined;
    if (!waits) forgetDraft(draftOf(this.as, this.formId));
    if (had) this.tellEnd(isLost);
    if (focused) article.focus({ preventScroll: true });
    if (!ended) return;
    this.isOver = true;
    this.fire('settled', { form: this.formId, outcome: ended.outcome });
  }

  /** Says what became of a form that was open before their eyes. */
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
    if (filling.show(filling.wrongs(pressed))) return;
    const values = Object.fromEntries(Object.entries(filling.values(pressed)).map(([name, v]) => [name, plain(v)]));
    if (this.fire('submit', { form: this.formId, values }, true)) await this.perform('respond_form', { texts: filling.texts(pressed) });
  }

  async decline(reason) {
    if (this.fire('cancel', { form: this.formId, reason }, true)) await this.perform('decline_form', { reason });
  }

  async perform(operation, body, done = '') {
    const { turn } = this;
    this.setBusy(true);
    this.filling.fail('');
    let refused;
    try {
      await call(operation, { as: this.as, id: this.formId, ...body }, this.box);
    } catch (why) {
      refused = why;
    }
    if (this.turn !== turn) return;
    if (!refused || refused.code?.startsWith('ALREADY_')) await this.look();
    if (this.turn !== turn) return;
    this.setBusy(false);
    if (!refused) this.news.textContent ||= done;
    else if (this.filling && !this.filling.show(refused.fields ?? {})) this.filling.fail(said(refused));
  }

  setBusy(busy) {
    this.busy = busy;
    this.article.ariaBusy = String(busy);
    for (const b of this.article.querySelectorAll('button')) b.disabled = busy;
  }
}

/** ParleyQuestionsElement shows what waits for an agent's answer, oldest first. What has ended leaves it. */
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
    const { messages, next } = await call('list_messages', { as: this.as, pending: true, limit: mostQuestions }, this.box);
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

  /** Lets a question say what became of it before it leaves. */
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
