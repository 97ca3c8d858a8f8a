// Follows mailboxes for the elements in other pages. Elements of one mailbox share a request: a browser has few
// connections.

import { call } from './rpc.js';

const pause = 1000;
const feeds = new Map();

/** Returns the key of a mailbox {base, token, as}. */
const keyOf = ({ base, token, as }) => JSON.stringify([base, token, as]);

export class Feed {
  /** Returns the feed of a mailbox. */
  static of(mailbox) {
    const key = keyOf(mailbox);
    if (!feeds.has(key)) feeds.set(key, new Feed(mailbox));
    return feeds.get(key);
  }

  constructor(mailbox) { Object.assign(this, { mailbox, listeners: new Set(), end: new AbortController() }); }

  forget() { if (feeds.get(keyOf(this.mailbox)) === this) feeds.delete(keyOf(this.mailbox)); }

  /**
   * Adds a listener. It is called at once, and after each change or refusal.
   * @param {(news: {changed?: Array<any>, refused?: Error}) => void} listener
   */
  add(listener) {
    this.listeners.add(listener);
    if (this.listeners.size === 1) this.run();
    else if (this.cursor !== undefined) listener({});
  }

  remove(listener) {
    if (!this.listeners.delete(listener) || this.listeners.size > 0) return;
    this.end.abort();
    this.forget();
  }

  tell(news) { for (const l of [...this.listeners]) l(news); }

  async run() {
    const { signal } = this.end;
    while (!signal.aborted) {
      try {
        await this.step(signal);
      } catch (refused) {
        if (signal.aborted) return;
        this.tell({ refused });
        if (refused.status >= 400 && refused.status < 500 && refused.code !== 'RATE_LIMITED') return this.forget(); // a retry would be refused too
        this.isBack = true;
        await new Promise((resolve) => { setTimeout(resolve, pause); });
      }
    }
  }

  async step(signal) {
    const { as } = this.mailbox;
    const endpoint = { ...this.mailbox, signal };
    if (this.cursor === undefined) {
      this.cursor = (await call('list_messages', { as, all: true, limit: 1 }, endpoint)).cursor;
      return this.tell({});
    }
    // After an interruption the first request does not wait, so that listeners learn at once that it is over.
    const waitMs = this.isBack ? 0 : undefined;
    const { messages, cursor } = await call('follow_messages', { as, all: true, cursor: this.cursor, waitMs }, endpoint);
    Object.assign(this, { cursor, isBack: false });
    if (waitMs === 0) this.tell({});
    else if (messages.length > 0) this.tell({ changed: messages });
  }
}
