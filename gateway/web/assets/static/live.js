// The base of the elements for other pages: the address of their node, and when they fetch from it.

import { shadowOf } from './appearance.js';
import { forgetOldDrafts } from './draft.js';
import { Feed } from './feed.js';
import { home } from './rpc.js';
import { visible } from './visible.js';

const Base = /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? class {}); // absent where there is no document

/** Returns a refusal's message and hint. */
export const said = (refused) => visible([refused.message, refused.hint].filter(Boolean).join(': '));

/** Live elements follow their node while they are in a page, and start again when their attributes change. */
export class Live extends Base {
  static names = ['base', 'token', 'as'];

  static get observedAttributes() { return [...this.names, 'no-draft']; }

  constructor() {
    super();
    this.shadow = shadowOf(this);
    this.news = document.createElement('p'); // for screen readers
    this.news.className = 'sr';
    this.news.role = 'status';
    this.failure = document.createElement('p');
    this.failure.className = 'failure';
    this.failure.part = 'failure';
    this.failure.role = 'alert';
    this.last = Promise.resolve();
    this.listener = (news) => this.changed(news);
  }

  get base() { return this.getAttribute('base') ?? ''; }

  set base(base) { this.setAttribute('base', base); }

  get as() { return this.getAttribute('as') ?? ''; }

  set as(name) { this.setAttribute('as', name); }

  get noDraft() { return this.hasAttribute('no-draft'); }

  set noDraft(none) { this.toggleAttribute('no-draft', none); }

  get token() { return this.secret ?? this.getAttribute('token') ?? ''; }

  set token(token) {
    this.secret = token;
    if (this.isConnected) this.begin();
  }

  connectedCallback() {
    for (const name of [...this.constructor.names, 'noDraft']) { // properties set before the element was defined
      if (!Object.hasOwn(this, name)) continue;
      const value = this[name];
      delete this[name];
      this[name] = value;
    }
    this.begin();
  }

  disconnectedCallback() {
    this.feed?.remove(this.listener);
    this.feed = this.turn = this.next = undefined;
  }

  attributeChangedCallback(_, was, is) { if (this.isConnected && was !== is) this.begin(); }

  begin() {
    this.disconnectedCallback();
    this.reset();
    const turn = {};
    this.turn = turn;
    queueMicrotask(() => { // after all attributes are set
      if (this.turn === turn && this.isConnected) this.start();
    });
  }

  start() {
    const at = URL.canParse(this.base, location.href) && new URL(this.base || home || '/', location.href);
    if (at.origin !== location.origin) {
      return this.fail(`The node takes nothing from pages of other origins, as this one is to ${visible(this.base)}: ` +
        'have a proxy pass a path of the page’s own origin on to the node, and name that path as base');
    }
    forgetOldDrafts();
    this.mailbox = { base: at.pathname.replace(/\/+$/, ''), token: this.token, as: this.as };
    this.feed = Feed.of(this.mailbox);
    this.feed.add(this.listener);
  }

  changed({ changed, refused }) {
    if (refused) this.fail(said(refused));
    else if (!changed || this.isAbout(changed)) this.look();
  }

  /** Fetches the present state and draws it. Fetches run one after the other. */
  look() {
    const { turn } = this;
    if (!this.feed) return Promise.resolve(); // not in a page
    this.next ??= this.last = this.last.then(async () => {
      if (this.turn !== turn) return;
      this.next = undefined;
      try {
        await this.draw(() => this.turn === turn);
        if (this.turn === turn) this.fail('');
      } catch (refused) {
        if (this.turn === turn) this.fail(said(refused));
      }
    });
    return this.next;
  }

  fail(why) { this.failure.textContent = why; }

  /** Dispatches an event, and reports false if the page prevented its default. */
  fire(name, detail, cancelable = false) { return this.dispatchEvent(new CustomEvent(name, { detail, cancelable })); }
}
