// Keeps the input of forms that were not sent yet, without secrets. The node keeps drafts of answers and messages, so that what is
// begun in one browser is finished in another. The browser keeps what has not reached the node, and forms that are being
// built, for 30 days.

import { call } from './rpc.js';

const prefix = 'parley.draft.';
const longest = 30 * 24 * 3600 * 1000; // ms for which a draft is kept
const rest = 800; // ms after the last input
const again = 2000; // ms until the node is tried again
const settles = 60_000; // ms for which a page may still come that was drawn before the node had the draft

function store(fn) {
  try {
    return fn(localStorage);
  } catch {
    return null; // storage is off or full: drafts end with the page
  }
}

/** Returns the name of the draft of an agent's form. */
export const draftOf = (as, id) => `${as}/${id}`;

const keep = (name, draft) => store((s) => s.setItem(prefix + name, JSON.stringify(draft)));
const kept = (name) => store((s) => JSON.parse(s.getItem(prefix + name)));
export const saveDraft = (name, fields) => keep(name, { at: Date.now(), fields });
export const forgetDraft = (name) => store((s) => s.removeItem(prefix + name));
export const readDraft = (name) => kept(name)?.fields ?? null;

/** Reports whether a draft is kept. That one arrived is kept for a while: the next page may have been drawn without it, and asks. */
const isKept = (draft) => draft?.at > Date.now() - (draft?.arrived ? settles : longest);

/** Deletes old drafts. */
export function forgetOldDrafts() {
  store((s) => {
    for (const k of Object.keys(s)) {
      if (k.startsWith(prefix) && !isKept(JSON.parse(s.getItem(k)))) s.removeItem(k);
    }
  });
}

/** Draft is the unfinished answer to a form: the texts of each field, by name. */
export class Draft {
  /** @param {{as: string, id: string, at?: string, endpoint?: import('./rpc.js').Endpoint}} of at is the time of the node's draft; '' if it has none */
  constructor({ as, id, at = '', endpoint = {} }) {
    Object.assign(this, { about: { as, id }, at, endpoint, name: draftOf(as, id) });
    addEventListener('pagehide', this.left = () => this.leave());
  }

  /** What the draft is fetched by. */
  get place() { return this.about; }

  /** Returns the input in a draft of the node, or null. */
  fieldsOf({ texts }) {
    const fields = Object.create(null); // a field may be called "constructor"
    for (const { name, text } of texts) (fields[name] ??= []).push(text);
    return texts.length ? fields : null;
  }

  /** Returns the input as the node takes it. */
  bodyOf(fields) { return { texts: Object.entries(fields).flatMap(([name, list]) => list.map((text) => ({ name, text }))) }; }

  /** Returns the last input, or null. What has not reached the node is sent there. */
  async read() {
    const last = kept(this.name);
    const here = isKept(last) ? last : null;
    if (here?.arrived || (this.at && !(here?.at > Date.parse(this.at)))) {
      try {
        const fetched = await call('fetch_draft', this.place, this.endpoint);
        forgetDraft(this.name);
        return this.fieldsOf(fetched);
      } catch {
        return here?.fields ?? null;
      }
    }
    if (here) this.save(here.fields);
    return here?.fields ?? null;
  }

  /** Has the node keep the fields once the person rests. No fields remove the draft. */
  save(fields) {
    this.next = fields;
    this.wait(rest);
  }

  wait(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), ms);
  }

  async send(keepalive = false) {
    const fields = this.next;
    if (fields === undefined || this.isOver) return;
    this.next = undefined;
    this.underWay = fields;
    try {
      await call('save_draft', { ...this.about, ...this.bodyOf(fields) }, { ...this.endpoint, keepalive });
      this.arrived(fields);
      if (this.next === undefined && !this.isOver) keep(this.name, { at: Date.now(), arrived: true }); // without the input
    } catch (refused) {
      this.arrived(fields);
      if (this.isOver || this.next !== undefined) return;
      if (refused.code.startsWith('ALREADY_')) return forgetDraft(this.name);
      saveDraft(this.name, fields);
      if (refused.status !== 0) return;
      this.next = fields;
      this.wait(again);
    }
  }

  arrived(fields) {
    if (this.underWay === fields) this.underWay = undefined;
  }

  /**
   * Sends the last input as the page goes, also what is under way: the browser ends that call with the page. The browser
   * keeps it too, since nobody will know whether it arrived.
   */
  leave() {
    this.next ??= this.underWay;
    if (this.next === undefined || this.isOver) return;
    saveDraft(this.name, this.next);
    this.send(true);
  }

  /** Leaves the draft to another Draft of the same form. */
  retire() {
    this.isOver = true;
    clearTimeout(this.timer);
    removeEventListener('pagehide', this.left);
  }

  /** Ends the draft with its form. */
  end() {
    this.retire();
    forgetDraft(this.name);
  }
}

/** TextDraft is the unfinished text of a message to an agent, or of a reply to a message. */
export class TextDraft extends Draft {
  /** @param {{as?: string, to?: string, id?: string, at?: string}} of to is the agent's ID, id that of the message replied to */
  constructor({ as = '', to, id, at }) {
    super({ as, id: to ? `to/${to}` : `reply/${id}`, at });
    this.about = to ? { as, to } : { as, id };
    this.last = Promise.resolve();
  }

  get place() { return { ...this.about, ...(this.about.id && { reply: true }) }; }

  fieldsOf({ text }) { return text || null; }

  bodyOf(text) { return { text }; }

  /** Sends one text after the other, but as the page goes. */
  async send(keepalive = false) {
    if (keepalive) return super.send(true);
    this.last = this.last.then(() => super.send());
    return this.last;
  }

  /** Drops what is to be sent later, and returns when nothing is under way. */
  async stop() {
    clearTimeout(this.timer);
    this.next = undefined;
    await this.last;
  }

  /** Removes the draft: its text was sent. */
  clear() {
    this.save('');
    clearTimeout(this.timer);
    return this.send();
  }

  /** Follows an input: shows the draft in it, unless something was typed meanwhile, and keeps what is typed. */
  async follow(input) {
    const { value } = input;
    input.addEventListener('input', () => this.save(input.value));
    const text = await this.read();
    if (text !== null && input.value === value) input.value = text;
    return text;
  }
}
