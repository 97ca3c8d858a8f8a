// Keeps the input of forms that were not sent yet, without secrets. The node keeps drafts of answers, so that a form that is
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

  /** Returns the last input, or null. What has not reached the node is sent there. */
  async read() {
    const last = kept(this.name);
    const here = isKept(last) ? last : null;
    if (here?.arrived || (this.at && !(here?.at > Date.parse(this.at)))) {
      try {
        const { texts } = await call('fetch_draft', this.about, this.endpoint);
        forgetDraft(this.name);
        const fields = Object.create(null); // a field may be called "constructor"
        for (const { name, text } of texts) (fields[name] ??= []).push(text);
        return texts.length ? fields : null;
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
    const texts = Object.entries(fields).flatMap(([name, list]) => list.map((text) => ({ name, text })));
    try {
      await call('save_draft', { ...this.about, texts }, { ...this.endpoint, keepalive });
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
