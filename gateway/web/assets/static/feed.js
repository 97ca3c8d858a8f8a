// What changes in a mailbox, for elements of other pages. One mailbox is followed once, however many elements show
// something of it: a browser has few connections.

import { call } from './rpc.js';

const pause = 1000;
const feeds = new Map();

/** A node's mailbox: {base, token, as}. */
const keyOf = ({ base, token, as }) => JSON.stringify([base, token, as]);

export class Feed {
  /** Gives the feed of a mailbox. */
  static of(box) {
    const key = keyOf(box);
    if (!feeds.has(key)) feeds.set(key, new Feed(box));
    return feeds.get(key);
  }

  constructor(box) { Object.assign(this, { box, listeners: new Set(), end: new AbortController() }); }

  forget() { if (feeds.get(keyOf(this.box)) === this) feeds.delete(keyOf(this.box)); }

  /**
   * Tells a listener to look, now and whenever there is a reason to.
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
        if (refused.status >= 400 && refused.status < 500 && refused.code !== 'RATE_LIMITED') return this.forget(); // it would be the same again
        this.isBack = true;
        await new Promise((resolve) => { setTimeout(resolve, pause); });
      }
    }
  }

  async step(signal) {
    const { as } = this.box;
    const place = { ...this.box, signal };
    if (this.cursor === undefined) {
      this.cursor = (await call('list_messages', { as, all: true, limit: 1 }, place)).cursor;
      return this.tell({});
    }
    // After an interruption the first answer is to come at once, to say that it is over.
    const waitMs = this.isBack ? 0 : undefined;
    const { messages, cursor } = await call('follow_messages', { as, all: true, cursor: this.cursor, waitMs }, place);
    Object.assign(this, { cursor, isBack: false });
    if (waitMs === 0) this.tell({});
    else if (messages.length > 0) this.tell({ changed: messages });
  }
}
