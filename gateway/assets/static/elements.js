// Elements for other pages: <parley-form form="ID"> shows one form, <parley-questions> all that wait for an agent.
//
//   <script type="module" src="/elements.js"></script>
//   <parley-questions></parley-questions>
//
// Attributes: form, a message's ID or number; base, the path under which a proxy has the node ("" if it has none);
// token, a bearer token in place of the browser's session; as, the name of an agent that the host holds.
//
// Events, which do not bubble: "submit" before an answer is sent and "cancel" before a form is declined (the page may
// prevent both, and do something else), and "settled" once it has ended, by whomever. The types are in /elements.d.ts.
//
// Style: parts are form, title, description, field, label, help, control, choices, choice, wrong, failure, actions,
// answer, decline, state and outcome, and of questions list, question and empty. --parley-font, -text, -muted, -accent, -on-accent, -wrong, -border, -surface,
// -gap and -radius are custom properties. Under a Content-Security-Policy it takes script-src and connect-src 'self'.
//
// The node refuses what comes from other origins, whatever token comes with it. So the page that shows these elements
// and the node have one origin: a proxy in front of both passes a path on to the node, which base names and which the
// node does not see, and gives the node's own address as Host. The browser's session, or a header that the proxy
// adds, opens the module too; the token attribute is for calls. The node's own pages have an element <parley-form> of
// their own, and there this module leaves that name alone.
//
// Who wants no element imports validateValues alone: it needs no document.

import { Field } from './field.js';
import { Refused } from './rpc.js';
import { readTexts, validateValues } from './validate.js';
import { visible } from './visible.js';

export { Refused, readTexts, validateValues };

const Base = globalThis.HTMLElement ?? class {}; // there is none where there is no document
const pause = 1000;
const isOver = (outcome) => Boolean(outcome) && outcome.status !== 'open' && outcome.status !== 'answering';
const lines = (text) => String(text ?? '').split(/\r?\n/).map((l) => l.split('\t').map(visible).join('\t')).join('\n');

/** Makes an element. Nothing that others wrote becomes anything but text. */
function make(tag, attributes = {}, ...within) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) e.setAttribute(name, '');
    else if (value !== undefined && value !== false) e.setAttribute(name, value);
  }
  e.append(...within.filter((w) => w !== undefined && w !== ''));
  return e;
}

// The node

/** Reads JSON. An integer that a script's number cannot tell is a bigint. */
const read = (text) => JSON.parse(text, (_, v, at) =>
  (typeof v === 'number' && /^-?\d{16,}$/.test(at?.source ?? '') && !Number.isSafeInteger(v) ? BigInt(at.source) : v));

async function ask({ base, token, as }, operation, body, signal) {
  const headers = { 'Content-Type': 'application/json', ...(token && { Authorization: 'Bearer ' + token }) };
  const sent = JSON.stringify({ ...(as && { as }), ...body });
  let response;
  let answer;
  try {
    response = await fetch(`${base}/rpc/${operation}`, { method: 'POST', headers, body: sent, signal, credentials: token ? 'omit' : 'same-origin' });
    answer = read(await response.text());
  } catch (why) {
    if (signal?.aborted) throw why;
    throw new Refused({ code: 'NOT_RUNNING', message: 'The node cannot be reached. What you typed is kept: try again in a moment.' }, 0);
  }
  if (response.ok) return answer;
  throw new Refused(answer.error ?? { code: 'INTERNAL', message: `The node answered with ${response.status}.` }, response.status);
}

// One mailbox is followed once, however many elements show something of it: a browser has few connections.
const feeds = new Map();

class Feed {
  static of(node) {
    const key = JSON.stringify([node.base, node.token, node.as]);
    if (!feeds.has(key)) feeds.set(key, new Feed(node, key));
    return feeds.get(key);
  }

  constructor(node, key) { Object.assign(this, { node, key, listeners: new Set(), end: new AbortController() }); }

  forget() { if (feeds.get(this.key) === this) feeds.delete(this.key); }

  /** Tells a listener to look, whenever there is a reason: now, and when messages changed, which it is given. */
  add(listener) {
    this.listeners.add(listener);
    if (this.listeners.size === 1) this.run();
    else if (this.cursor !== undefined) listener();
  }

  remove(listener) {
    if (!this.listeners.delete(listener) || this.listeners.size > 0) return;
    this.end.abort();
    this.forget();
  }

  tell(messages, refused) { for (const l of [...this.listeners]) l(messages, refused); }

  async run() {
    const { signal } = this.end;
    while (!signal.aborted) {
      try {
        await this.step(signal);
      } catch (refused) {
        if (signal.aborted) return;
        this.tell(undefined, refused);
        if (refused.status >= 400 && refused.status < 500 && refused.code !== 'RATE_LIMITED') return this.forget();
        await new Promise((resolve) => { setTimeout(resolve, pause); });
      }
    }
  }

  async step(signal) {
    if (this.cursor === undefined) {
      this.cursor = (await ask(this.node, 'list_messages', { all: true, limit: 1 }, signal)).cursor;
      return this.tell();
    }
    const { messages, cursor } = await ask(this.node, 'follow_messages', { all: true, cursor: this.cursor }, signal);
    this.cursor = cursor;
    if (messages.length > 0) this.tell(messages);
  }
}

// How it looks

const style = `
:host { display: block; color: var(--parley-text, CanvasText); font: var(--parley-font, inherit); }
:host([hidden]), [hidden] { display: none; }
* { box-sizing: border-box; }
form, ol { display: grid; gap: var(--parley-gap, .9rem); margin: 0; padding: 0; list-style: none; }
h2, p, dl, dd, fieldset { margin: 0; padding: 0; border: 0; min-width: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1em; }
p, dd { white-space: pre-wrap; }
p:empty { display: none; }
.field { display: grid; gap: .3rem; }
.choices, .acts { display: flex; flex-wrap: wrap; gap: .5rem; }
legend, label { padding: 0; font-weight: 600; }
.choice, .help, dt { font-weight: 400; color: var(--parley-muted, inherit); }
input:not([type=checkbox], [type=radio]), textarea, select, button { width: 100%; padding: .5rem .7rem; font: inherit; color: inherit; background: var(--parley-surface, Canvas); border: 1px solid var(--parley-border, GrayText); border-radius: var(--parley-radius, 6px); }
button { width: auto; cursor: pointer; }
button.primary { color: var(--parley-on-accent, HighlightText); background: var(--parley-accent, Highlight); border-color: transparent; }
button:disabled { opacity: .6; cursor: default; }
.wrong, .failure { color: var(--parley-wrong, #a8201c); }
[aria-invalid] { border-color: var(--parley-wrong, #a8201c); }
:focus-visible { outline: 3px solid var(--parley-accent, Highlight); outline-offset: 2px; }
dl { display: grid; gap: .4rem; }
`;

let sheet;

function root(element) {
  if (!sheet) {
    sheet = new CSSStyleSheet(); // no policy against inline styles is about it
    sheet.replaceSync(style);
  }
  const shadow = element.attachShadow({ mode: 'open', delegatesFocus: true });
  shadow.adoptedStyleSheets = [sheet];
  return shadow;
}

const parts = ['form', 'title', 'description', 'field', 'label', 'help', 'control', 'choices', 'choice', 'wrong', 'failure', 'actions', 'answer', 'decline',
  'state', 'outcome'].join(', ');

const grouped = { radio: 'radios', buttons: 'buttons', confirm: 'buttons', multiselect: 'checks' };
const inputs = { secret: 'password', date: 'date' };

function kindOf(field) {
  if (field.type === 'checkbox') return field.options?.length ? 'checks' : 'switch';
  return grouped[field.type] ?? field.type ?? 'text';
}

function optionsOf(field) {
  if (field.type === 'confirm' && !field.options?.length) return [{ value: 'Yes' }, { value: 'No' }];
  return field.options ?? [];
}

const nameOf = (option) => visible(option.label || option.value);

/** Draws a field, for Field to read. */
function draw(field, i, isLone) {
  const kind = kindOf(field);
  const id = 'f' + i;
  const isGroup = ['radios', 'buttons', 'checks'].includes(kind);
  const says = `${id}-help ${id}-wrong`;
  const named = visible(field.label || field.name) + (field.required && !isLone ? ' *' : '');
  const wrong = make('p', { class: 'wrong', part: 'wrong', id: `${id}-wrong` });
  const help = make('p', { class: 'help', part: 'help', id: `${id}-help` }, lines(field.help));
  const attributes = { class: 'field', part: 'field', 'data-kind': kind, 'data-spec': '{}', 'data-name': field.name };
  if (isGroup) return make('fieldset', { ...attributes, 'aria-describedby': says }, make('legend', { part: 'label' }, named), help, choices(field, kind, id, isLone), wrong);
  const common = { id, name: id, part: 'control', 'aria-describedby': says, 'aria-required': field.required ? 'true' : undefined };
  if (kind === 'switch') {
    return make('div', attributes, make('label', { part: 'label' }, make('input', { ...common, type: 'checkbox', value: 'true' }), ' ' + named), help, wrong);
  }
  return make('div', attributes, make('label', { for: id, part: 'label' }, named), help, control(field, common), wrong);
}

function control(field, common) {
  const placeholder = field.placeholder && visible(field.placeholder);
  if (field.type === 'textarea') return make('textarea', { ...common, rows: 4, placeholder });
  if (field.type !== 'select') return make('input', { ...common, placeholder, type: inputs[field.type] ?? 'text', inputmode: field.type === 'number' ? 'decimal' : undefined });
  const none = make('option', {}, placeholder || '—');
  none.value = '';
  return make('select', common, none, ...optionsOf(field).map((o) => make('option', { value: o.value }, nameOf(o))));
}

function choices(field, kind, id, isLone) {
  const all = [...optionsOf(field), ...(kind !== 'checks' && !field.required && !isLone ? [{ value: '', label: 'No answer' }] : [])];
  return make('div', { class: 'choices', part: 'choices' }, ...all.map((o) => {
    const about = o.description ? ' — ' + visible(o.description) : '';
    if (isLone) return make('button', { name: 'do', value: o.value, part: 'choice answer' }, nameOf(o) + about);
    const input = make('input', { type: kind === 'checks' ? 'checkbox' : 'radio', name: id, part: 'control' });
    input.value = o.value;
    return make('label', { class: 'choice', part: 'choice' }, input, ' ' + nameOf(o) + about);
  }));
}

function defaults(field) {
  const v = field.default;
  if (v === undefined || v === null) return ['']; // which is also the choice of no answer
  return (Array.isArray(v) ? v : [v]).map((one) => (typeof one === 'object' ? one.$cap ?? '' : String(one)));
}

/** What an answer says, for people. */
function told(field, value) {
  if (value === undefined) return 'no answer';
  if (field.type === 'secret') return '••••••';
  const one = (v) => (typeof v === 'object' && v !== null ? v.$cap ?? '…' : nameOf(optionsOf(field).find((o) => o.value === v) ?? { value: v }));
  return Array.isArray(value) ? value.map(one).join(', ') : lines(one(value));
}

const ends = { answered: 'Answered', declined: 'Declined', expired: 'Expired without an answer', superseded: 'Replaced by another form' };

// The elements

/** What both have: they live while they are in a page, and begin anew when their attributes change. */
class Live extends Base {
  constructor() {
    super();
    this.shadow = root(this);
    this.look = this.look.bind(this);
  }

  connectedCallback() { this.begin(); }

  disconnectedCallback() {
    this.feed?.remove(this.look);
    this.feed = undefined;
    this.turn = undefined;
  }

  attributeChangedCallback(_, was, is) { if (this.isConnected && was !== is) this.begin(); }

  get node() {
    const [base, token, as] = ['base', 'token', 'as'].map((name) => this.getAttribute(name) ?? '');
    return { base: base.replace(/\/+$/, ''), token, as };
  }

  begin() {
    this.disconnectedCallback();
    this.reset();
    const turn = {};
    this.turn = turn;
    queueMicrotask(() => { // when all attributes are set
      if (this.turn !== turn || !this.isConnected) return;
      this.feed = Feed.of(this.node);
      this.feed.add(this.look);
    });
  }

  /** Fires an event. It reports false if the page prevented what it announces. */
  fire(name, detail, cancelable = false) { return this.dispatchEvent(new CustomEvent(name, { detail, cancelable })); }
}

/** ParleyFormElement shows one form: open, to be answered, and afterwards what became of it. */
export class ParleyFormElement extends Live {
  static observedAttributes = ['form', 'base', 'token', 'as'];

  reset() {
    this.message = undefined;
    this.isTold = false;
    this.shadow.replaceChildren();
  }

  get subject() {
    const form = this.getAttribute('form') ?? '';
    return /^\d+$/.test(form) ? { number: form } : { id: form };
  }

  /** Looks at the form as it is now, unless what changed is something else. */
  async look(changed, refused) {
    if (changed && this.message && !changed.some((m) => m.messageId === this.message.messageId)) return;
    const { feed } = this;
    try {
      if (refused) throw refused;
      const message = await ask(this.node, 'get_message', this.subject);
      if (this.feed === feed) this.show(message);
    } catch (why) {
      if (this.feed === feed) this.fail(why.message);
    }
  }

  show(message) {
    const stays = this.message?.answerNeeded && message.answerNeeded; // what is typed stays
    this.message = message;
    if (stays) return this.fail('');
    const { title, description } = message;
    this.failure = make('p', { class: 'failure', part: 'failure', role: 'alert' });
    this.fields = [];
    const head = [title && make('h2', { part: 'title' }, lines(title)), description && make('p', { part: 'description' }, lines(description))].filter(Boolean);
    this.shadow.replaceChildren(message.answerNeeded ? this.open(head) : this.ended(head));
    if (isOver(message.outcome)) this.settle(message.outcome);
  }

  open(head) {
    const specs = this.message.fields ?? [];
    const isLone = specs.length === 1 && kindOf(specs[0]) === 'buttons';
    const drawn = specs.map((f, i) => draw(f, i, isLone));
    this.fields = drawn.map((e, i) => Object.assign(new Field(e), { spec: specs[i] }));
    this.fields.forEach((f, i) => f.put(defaults(specs[i])));
    const decline = make('button', { type: 'button', part: 'decline' }, 'Decline');
    decline.addEventListener('click', () => this.decline());
    const acts = make('div', { class: 'acts', part: 'actions' });
    if (!isLone) acts.append(make('button', { class: 'primary', part: 'answer' }, this.message.type === 'request' ? 'Give it' : 'Answer'));
    if (this.message.type !== 'approval') acts.append(decline);
    const form = make('form', { part: 'form', novalidate: true, autocomplete: 'off' }, ...head, ...drawn, this.failure, acts);
    form.addEventListener('submit', (e) => { e.preventDefault(); this.submit(e.submitter); });
    form.addEventListener('keydown', (e) => this.pressed(e, form));
    form.addEventListener('input', (e) => this.typed(e.target));
    return form;
  }

  ended(head) {
    const { outcome, answering, fields = [] } = this.message;
    const by = outcome?.byName ? ' by ' + visible(outcome.byName) : '';
    const how = isOver(outcome) ? (ends[outcome.status] ?? 'Cancelled') + by : answering ? 'The answer is on its way' : 'Waits for an answer';
    const note = outcome?.note && make('p', { part: 'description' }, lines(outcome.note));
    const answers = outcome?.values && make('dl', {}, ...fields.map((f) =>
      make('div', {}, make('dt', { part: 'label' }, visible(f.label || f.name)), make('dd', {}, told(f, outcome.values[f.name])))));
    return make('div', { part: 'outcome', 'data-status': outcome?.status ?? 'open' }, ...head, make('p', { part: 'state', role: 'status' }, how),
      ...[note, answers].filter(Boolean), this.failure);
  }

  /** What stands in the form, by name. */
  values(pressed) { return Object.fromEntries(this.fields.map((f) => [f.spec.name, readTexts(f.spec, f.texts(pressed))])); }

  wrongs(pressed) { return validateValues(this.fields.map((f) => f.spec), this.values(pressed)); }

  typed(at) {
    const field = this.fields.find((f) => f.element.contains(at));
    if (field?.element.hasAttribute('data-wrong')) field.say(this.wrongs()[field.spec.name]);
  }

  pressed(event, form) {
    if (event.key !== 'Enter' || event.isComposing) return;
    const isAsked = event.ctrlKey || event.metaKey;
    if (isAsked || (this.fields.length > 1 && event.target.matches('input'))) event.preventDefault(); // none is sent half-filled
    if (isAsked && form.querySelector('button.primary')) form.requestSubmit(form.querySelector('button.primary'));
  }

  mark(wrongs) {
    for (const f of this.fields) f.say(wrongs[f.spec.name]);
    const first = this.fields.find((f) => wrongs[f.spec.name]);
    first?.focus();
    return Boolean(first);
  }

  async submit(pressed) {
    if (this.busy || this.mark(this.wrongs(pressed))) return;
    const values = this.values(pressed);
    const plain = Object.entries(values).map(([k, v]) => [k, typeof v === 'bigint' && Number.isSafeInteger(Number(v)) ? Number(v) : v]);
    if (!this.fire('submit', { form: this.message.messageId, values: Object.fromEntries(plain) }, true)) return;
    const texts = this.fields.flatMap((f) => f.texts(pressed).map((text) => ({ name: f.spec.name, text })));
    await this.end('respond_form', { texts });
  }

  async decline() {
    if (!this.busy && this.fire('cancel', { form: this.message.messageId }, true)) await this.end('decline_form', {});
  }

  async end(operation, body) {
    this.setBusy(true);
    try {
      await ask(this.node, operation, { id: this.message.messageId, ...body });
    } catch (refused) {
      this.setBusy(false);
      if (refused.code?.startsWith('ALREADY_')) await this.look();
      else if (!this.mark(refused.fields ?? {})) this.fail(refused.message);
      return;
    }
    await this.look();
    this.setBusy(false);
  }

  settle(outcome) {
    if (this.isTold) return;
    this.isTold = true;
    this.fire('settled', { form: this.message.messageId, outcome });
  }

  fail(why) {
    if (!this.failure?.isConnected && !why) return;
    if (!this.failure?.isConnected) {
      this.failure = make('p', { class: 'failure', part: 'failure', role: 'alert' });
      this.shadow.replaceChildren(this.failure);
    }
    this.failure.textContent = visible(why);
  }

  setBusy(busy) {
    this.busy = busy;
    this.setAttribute('aria-busy', String(busy));
    for (const b of this.shadow.querySelectorAll('button')) b.disabled = busy;
  }
}

/** ParleyQuestionsElement shows what waits for an agent's answer, oldest first. What has ended leaves it. */
export class ParleyQuestionsElement extends Live {
  static observedAttributes = ['base', 'token', 'as'];

  reset() {
    this.items = new Map();
    this.list = make('ol', { part: 'list' });
    this.state = make('p', { part: 'empty', role: 'status' });
    this.shadow.replaceChildren(this.list, this.state);
  }

  async look(_, refused) {
    const { feed } = this;
    try {
      if (refused) throw refused;
      const { messages } = await ask(this.node, 'list_messages', { pending: true });
      if (this.feed === feed) this.show(messages.map((m) => m.messageId));
    } catch (why) {
      if (this.feed === feed) this.state.textContent = visible(why.message);
    }
  }

  show(ids) {
    for (const id of ids) if (!this.items.has(id)) this.add(id);
    for (const id of this.items.keys()) if (!ids.includes(id)) this.drop(id);
    this.count();
  }

  add(id) {
    const form = new FormElement();
    for (const name of ['base', 'token', 'as']) if (this.hasAttribute(name)) form.setAttribute(name, this.getAttribute(name));
    form.setAttribute('form', id);
    form.setAttribute('exportparts', parts);
    for (const name of ['submit', 'cancel', 'settled']) {
      form.addEventListener(name, (e) => { if (!this.fire(name, e.detail, e.cancelable)) e.preventDefault(); });
    }
    const item = make('li', { part: 'question' }, form);
    this.items.set(id, { item, form });
    this.list.append(item);
  }

  /** Lets a question say what became of it before it leaves. */
  async drop(id) {
    const { item, form } = this.items.get(id);
    this.items.delete(id);
    await form.look();
    item.remove();
  }

  count() { this.state.textContent = this.items.size === 0 ? 'No questions right now.' : ''; }
}

// Within questions a form is the one of this module, whatever the page calls parley-form.
class FormElement extends ParleyFormElement {}

if (globalThis.customElements && !customElements.get('parley-questions')) {
  if (!customElements.get('parley-form')) customElements.define('parley-form', ParleyFormElement);
  customElements.define('parley-question', FormElement);
  customElements.define('parley-questions', ParleyQuestionsElement);
}
