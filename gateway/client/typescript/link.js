import { Lost, ParleyError, refusalOf } from "./error.js";
import { from, readFrames, to, writeFrame } from "./frame.js";
import { Malformed, Reader, Writer } from "./msgpack.js";

/** @typedef {{cursor: string, message: import("./operations.js").Envelope}} Item a message of a follow */
/** @typedef {"ended" | "unheard" | "malformed"} End how a link ended; unheard: it was lost before the node had sent anything */

/** The items that a node may send of a follow before they are taken. */
export const window = 32;

/** The bytes of a message of several frames. */
const joinedSize = 64 << 10;

/** The asks whose outcomes nobody waits for, before the oldest is given up: each has a place among the waits of its agent. */
const maxUnclaimed = 256;

/** The largest message of a node, in bytes. */
const maxMessage = 512 << 20;

/**
 * One WebSocket on which calls, waits and follows of several agents are under way. It ends itself when nobody waits for anything on it
 * for a moment: while a WebSocket is open, Node does not end a program.
 */
export class Link {
  #socket;
  #token;
  #times;
  #onEnd;
  /** the agents that are signed in, by their tokens @type {Map<string | undefined, Promise<number>>} */
  #agents = new Map();
  /** what is under way, by ID @type {Map<number, Task>} */
  #tasks = new Map();
  #lastId = 0;
  #out = new Writer();
  #isFlushing = false;
  #isGoing = false;
  #isEnded = false;
  /** asks that are accepted, and whose outcomes nobody waits for, the oldest first @type {Set<Task>} */
  #unclaimed = new Set();
  /** how many callers wait */
  #held = 0;
  /** ends the link when nobody waits @type {ReturnType<typeof setTimeout> | undefined} */
  #idle;
  /** looks whether the node is there while somebody waits @type {ReturnType<typeof setInterval> | undefined} */
  #beat;
  #hasHeard = false;
  #isQuiet = false;

  /**
   * Takes a WebSocket that is open.
   *
   * @param {any} socket
   * @param {string | undefined} token that opened it: its agent is number 0
   * @param {{close: number, beat: number}} times in milliseconds
   * @param {(end: End) => void} onEnd is called once
   */
  constructor(socket, token, times, onEnd) {
    this.#socket = socket;
    this.#token = token;
    this.#times = times;
    this.#onEnd = onEnd;
    socket.onmessage = (/** @type {{data: any}} */ { data }) => this.#receive(data);
    socket.onclose = socket.onerror = () => this.#end("the connection was lost", this.#hasHeard ? "ended" : "unheard");
    this.#hold()();
  }

  /** Reports whether calls may begin. */
  get isOpen() {
    return !this.#isGoing && !this.#isEnded;
  }

  /**
   * Calls an operation, once.
   *
   * @param {string | undefined} token
   * @param {string} operation
   * @param {string} body
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  async call(token, operation, body, signal) {
    const agent = await this.#signedIn(token, signal);
    return (await this.#perform(from.call, { agent, operation, body }, signal)).first.promise;
  }

  /**
   * Asks a form. If that is open then, its outcome is coming.
   *
   * @param {string | undefined} token
   * @param {string} body
   * @param {AbortSignal} [signal]
   * @returns {Promise<{asked: any, coming?: Coming}>}
   */
  async ask(token, body, signal) {
    const agent = await this.#signedIn(token, signal);
    const task = await this.#perform(from.ask, { agent, body }, signal);
    const asked = await task.first.promise;
    if (!task.isAsked) return { asked };
    this.#unclaim(task);
    return { asked, coming: new Coming(task.last.promise, () => this.#claim(task)) };
  }

  /**
   * Yields the messages of a follow as they come, until it is refused, lost, or wanted no more.
   *
   * @param {string | undefined} token
   * @param {string} body
   * @param {AbortSignal} [signal]
   * @returns {AsyncGenerator<Item, void, void>}
   */
  async *follow(token, body, signal) {
    const agent = await this.#signedIn(token, signal);
    const task = this.#begin(from.follow, { agent, body, credit: window });
    const release = this.#hold();
    try {
      for (let taken = 0; ; ) {
        for (let item; (item = task.items.shift()) !== undefined; ) {
          yield item;
          if (++taken < window / 2) continue;
          task.credit += taken;
          this.#write(from.credit, task.id, { credit: taken });
          taken = 0;
        }
        if (task.isOver) return void (await task.first.promise);
        await until(task.news.promise, signal);
        task.news = deferred();
      }
    } finally {
      this.#forget(task);
      release();
    }
  }

  /**
   * Returns the number of an agent, which it signs in if it is not.
   *
   * @param {string | undefined} token
   * @param {AbortSignal} [signal]
   * @returns {Promise<number>}
   */
  async #signedIn(token, signal) {
    if (token === this.#token) return 0;
    let agent = this.#agents.get(token);
    if (agent === undefined) {
      agent = this.#signIn(token);
      this.#agents.set(token, agent);
      agent.catch(() => this.#agents.delete(token));
    }
    return until(agent, signal);
  }

  /** @param {string | undefined} token */
  async #signIn(token) {
    try {
      const task = await this.#perform(from.signIn, { body: JSON.stringify({ token }) });
      const { agent } = /** @type {{agent: unknown}} */ (await task.first.promise);
      if (typeof agent === "number") return agent;
      throw new ParleyError("INTERNAL", "the node's answer to a sign-in cannot be read");
    } catch (e) {
      // The connection has too many agents, or they sign in too fast. The call is none of theirs, and was not made.
      if (e instanceof ParleyError && (e.code === "QUOTA_EXCEEDED" || e.code === "RATE_LIMITED")) throw new Lost(false, e);
      throw e;
    }
  }

  /**
   * Begins something, and resolves when there is its first answer.
   *
   * @param {number} kind
   * @param {Parameters<typeof writeFrame>[3]} rest
   * @param {AbortSignal} [signal]
   */
  async #perform(kind, rest, signal) {
    signal?.throwIfAborted();
    const task = this.#begin(kind, rest);
    const release = this.#hold();
    try {
      await until(task.first.promise, signal);
      return task;
    } catch (e) {
      this.#forget(task);
      throw e;
    } finally {
      release();
    }
  }

  /**
   * @param {number} kind
   * @param {Parameters<typeof writeFrame>[3]} rest
   */
  #begin(kind, rest) {
    if (!this.isOpen) throw new Lost(false, "the connection has ended");
    const task = new Task(++this.#lastId, kind);
    this.#tasks.set(task.id, task);
    this.#write(kind, task.id, rest);
    return task;
  }

  /**
   * Gives up what is under way, if it is.
   *
   * @param {Task} task
   */
  #forget(task) {
    if (this.#tasks.delete(task.id)) this.#write(from.cancel, task.id);
  }

  /**
   * Keeps the outcome of an ask coming, until what it returns is called.
   *
   * @param {Task} task
   */
  #claim(task) {
    const release = this.#hold();
    task.claims++;
    this.#unclaimed.delete(task);
    return () => {
      if (--task.claims === 0) this.#unclaim(task);
      release();
    };
  }

  /** @param {Task} task */
  #unclaim(task) {
    if (task.isOver) return;
    this.#unclaimed.add(task);
    if (this.#unclaimed.size <= maxUnclaimed) return;
    for (const oldest of this.#unclaimed) {
      this.#unclaimed.delete(oldest);
      this.#forget(oldest);
      return oldest.fail(new Lost(true, "nobody waited for the outcome"));
    }
  }

  /**
   * Writes a frame. Those of a moment go in one message.
   *
   * @param {number} kind
   * @param {number} id
   * @param {Parameters<typeof writeFrame>[3]} [rest]
   */
  #write(kind, id, rest) {
    if (this.#out.length + 3 * (rest?.body?.length ?? 0) > joinedSize) this.#flush();
    writeFrame(this.#out, kind, id, rest);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    queueMicrotask(() => {
      this.#isFlushing = false;
      this.#flush();
    });
  }

  #flush() {
    if (this.#out.length > 0 && !this.#isEnded) this.#socket.send(this.#out.take());
  }

  /** @param {any} data of a message */
  #receive(data) {
    try {
      const size = data?.byteLength; // a text has none
      if (!(size <= maxMessage)) throw new Malformed();
      readFrames(new Uint8Array(data), (kind, id, body) => this.#hear(kind, id, body));
    } catch (e) {
      if (!(e instanceof Malformed)) throw e;
      this.#end(e, "malformed");
    }
  }

  /**
   * @param {number} kind
   * @param {number} id
   * @param {Uint8Array} bytes
   */
  #hear(kind, id, bytes) {
    this.#hasHeard = true;
    this.#isQuiet = false;
    if (kind === to.going) {
      this.#isGoing = true;
      return;
    }
    const task = this.#tasks.get(id);
    if (task === undefined) return; // it was given up
    const body = new Reader(bytes).value();
    switch (kind) {
      case to.asked:
        return task.hearAsked(body);
      case to.item:
        return task.hearItem(body);
    }
    const said = /** @type {any} */ (body);
    if (kind === to.refusal && typeof said?.code !== "string") throw new Malformed();
    this.#tasks.delete(id);
    this.#unclaimed.delete(task);
    if (kind === to.result) task.end(body);
    else task.fail(refusalOf(said));
  }

  /** Keeps the link open until what it returns is called. */
  #hold() {
    this.#held++;
    clearTimeout(this.#idle);
    if (this.#beat === undefined && !this.#isEnded) this.#beat = setInterval(() => this.#look(), this.#times.beat);
    return () => {
      if (--this.#held > 0 || this.#isEnded) return;
      this.#idle = setTimeout(() => this.#end("nobody waits", "ended"), this.#times.close);
      clearInterval(this.#beat);
      this.#beat = undefined;
      this.#isQuiet = false;
    };
  }

  /** Asks something of a node that was not heard for a while, and ends the link if it is not heard then. */
  #look() {
    if (this.#isQuiet) return this.#end("the node is silent", "ended");
    this.#isQuiet = true;
    this.#write(from.call, ++this.#lastId, { agent: 0, operation: "locate", body: '{"name":"@self"}' });
  }

  /**
   * Ends the link. What is under way is lost.
   *
   * @param {unknown} why
   * @param {End} how
   */
  #end(why, how) {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#idle);
    clearInterval(this.#beat);
    this.#socket.onmessage = this.#socket.onclose = null;
    this.#socket.onerror = () => {}; // some throw what nobody hears
    this.#socket.close();
    for (const task of this.#tasks.values()) task.fail(new Lost(true, why));
    this.#tasks.clear();
    this.#unclaimed.clear();
    this.#onEnd(how);
  }
}

/** The outcome of a form, which comes on the link on which it was asked. */
export class Coming {
  #outcome;
  #claim;

  /**
   * @param {Promise<any>} outcome
   * @param {() => () => void} claim keeps it coming, until what it returns is called
   */
  constructor(outcome, claim) {
    this.#outcome = outcome;
    this.#claim = claim;
  }

  /**
   * Waits for the outcome. It throws Lost if the link ends before.
   *
   * @param {AbortSignal} [signal]
   * @returns {Promise<import("./operations.js").Outcome>}
   */
  async wait(signal) {
    const release = this.#claim();
    try {
      return await until(this.#outcome, signal);
    } finally {
      release();
    }
  }
}

/** What an ID is under way for. */
class Task {
  /** its answer; of an ask, that it is accepted @type {Deferred} */
  first = deferred();
  /** of an ask, its outcome @type {Deferred} */
  last = deferred();
  isAsked = false;
  /** how many wait for that */
  claims = 0;
  isOver = false;
  /** of a follow, what nobody has taken @type {Item[]} */
  items = [];
  /** that there are items, or the end @type {Deferred} */
  news = deferred();
  /** how many more items may come */
  credit = window;

  /**
   * @param {number} id
   * @param {number} kind
   */
  constructor(id, kind) {
    this.id = id;
    this.kind = kind;
  }

  /** @param {unknown} body */
  hearAsked(body) {
    if (this.kind !== from.ask || this.isAsked) throw new Malformed();
    this.isAsked = true;
    this.first.resolve(body);
  }

  /** @param {unknown} body */
  hearItem(body) {
    const item = /** @type {any} */ (body);
    if (this.kind !== from.follow || this.credit === 0 || typeof item?.cursor !== "string" || !item.message) throw new Malformed();
    this.credit--;
    this.items.push(item);
    this.news.resolve(undefined);
  }

  /** @param {unknown} body */
  end(body) {
    this.#over().resolve(body);
  }

  /** @param {Error} why */
  fail(why) {
    this.#over().reject(why);
  }

  /** Marks the end, and returns what it settles. */
  #over() {
    this.isOver = true;
    this.news.resolve(undefined);
    return this.isAsked ? this.last : this.first;
  }
}

/** @typedef {{promise: Promise<any>, resolve: (value: any) => void, reject: (why: unknown) => void}} Deferred */

/**
 * Makes a promise with its ends. It may be refused without anybody waiting for it.
 *
 * @returns {Deferred}
 */
function deferred() {
  /** @type {any} */
  const d = {};
  d.promise = new Promise((resolve, reject) => Object.assign(d, { resolve, reject }));
  d.promise.catch(() => {});
  return d;
}

/**
 * Waits for a promise, until the signal.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function until(promise, signal) {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  let forget = () => {};
  const aborted = new Promise((_, reject) => (forget = onAbort(signal, () => reject(signal.reason))));
  try {
    return await /** @type {Promise<T>} */ (Promise.race([promise, aborted]));
  } finally {
    forget();
  }
}

/** What each signal tells. Node warns of a signal with more than a few listeners, and many calls may share one. */
const listeners = /** @type {WeakMap<AbortSignal, {told: Set<() => void>, tell: () => void}>} */ (new WeakMap());

/**
 * Calls a function when a signal is aborted, until what it returns is called.
 *
 * @param {AbortSignal} signal
 * @param {() => void} aborted
 */
function onAbort(signal, aborted) {
  let listener = listeners.get(signal);
  if (listener === undefined) {
    const told = new Set();
    listener = { told, tell: () => told.forEach((each) => each()) };
    listeners.set(signal, listener);
    signal.addEventListener("abort", listener.tell);
  }
  const { told, tell } = listener;
  told.add(aborted);
  return () => {
    told.delete(aborted);
    if (told.size > 0 || listeners.get(signal)?.told !== told) return;
    listeners.delete(signal);
    signal.removeEventListener("abort", tell);
  };
}
