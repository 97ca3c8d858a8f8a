import { Lost, ParleyError, refusalOf } from "./error.js";
import { from, readFrames, to, writeFrame } from "./frame.js";
import { Malformed, Reader, Writer } from "./msgpack.js";

/** @typedef {{cursor: string, message: import("./operations.js").Envelope}} Item a message of a follow */
/** @typedef {{kind: "upsert" | "remove" | "told", agent?: any}} AgentItem an agent of a follow; told comes after the agents that there are at first */
/** @typedef {"ended" | "unheard" | "malformed"} End how a link ended; unheard: it was lost before the node had sent a frame */

/** The number of items of a follow that a node may send before the first is taken. */
export const window = 32;

/** The size of a message of several frames, in bytes. */
const joinedSize = 64 << 10;

/** The number of outcomes on their way that nobody waits for. The oldest is given up: each takes a place among its agent's waits. */
const maxUnclaimed = 256;

/** The largest message of a node, in bytes. */
const maxMessage = 512 << 20;

/**
 * One WebSocket with calls, waits and follows of several agents. It closes itself when nobody has waited for a moment: Node does not end
 * a program with an open WebSocket.
 */
export class Link {
  #socket;
  #token;
  #times;
  #onEnd;
  /** agents that are signed in, by token @type {Map<string | undefined, Promise<number>>} */
  #agents = new Map();
  /** tasks under way, by ID @type {Map<number, Task>} */
  #tasks = new Map();
  #lastId = 0;
  #out = new Writer();
  #isFlushing = false;
  #isGoing = false;
  #isEnded = false;
  /** accepted asks whose outcomes nobody waits for, the oldest first @type {Set<Task>} */
  #unclaimed = new Set();
  /** number of callers that wait */
  #held = 0;
  /** closes the link when nobody waits @type {ReturnType<typeof setTimeout> | undefined} */
  #idle;
  /** checks that the node is there while somebody waits @type {ReturnType<typeof setInterval> | undefined} */
  #beat;
  #hasReceived = false;
  #isQuiet = false;

  /**
   * Takes a WebSocket that is open.
   *
   * @param {any} socket
   * @param {string | undefined} token of agent 0, which opened it
   * @param {{close: number, beat: number}} times in milliseconds
   * @param {(end: End) => void} onEnd is called once
   */
  constructor(socket, token, times, onEnd) {
    this.#socket = socket;
    this.#token = token;
    this.#times = times;
    this.#onEnd = onEnd;
    socket.onmessage = (/** @type {{data: any}} */ { data }) => this.#receive(data);
    socket.onclose = socket.onerror = () => this.#end("the connection was lost", this.#hasReceived ? "ended" : "unheard");
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
   * Asks by form, request or approve. The outcome of what is open follows.
   *
   * @param {string | undefined} token
   * @param {string} operation
   * @param {string} body
   * @param {AbortSignal} [signal]
   * @returns {Promise<{asked: any, coming?: Coming}>}
   */
  async ask(token, operation, body, signal) {
    const agent = await this.#signedIn(token, signal);
    const asks = operation === "form" ? this.#perform(from.ask, { agent, body }, signal) : this.#perform(from.askBy, { agent, operation, body }, signal);
    const task = await asks;
    const asked = await task.first.promise;
    if (!task.isAsked) return { asked };
    this.#unclaim(task);
    return { asked, coming: new Coming(task.last.promise, () => this.#claim(task)) };
  }

  /**
   * Yields messages or agents as they change. It throws when the node refuses, or the link is lost.
   *
   * @param {number} kind from.follow or from.followAgents
   * @param {string | undefined} token
   * @param {string} body
   * @param {AbortSignal} [signal]
   * @returns {AsyncGenerator<any, void, void>} of Item or AgentItem
   */
  async *follow(kind, token, body, signal) {
    const agent = await this.#signedIn(token, signal);
    const task = this.#begin(kind, { agent, body, credit: window });
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
   * Returns the number of an agent, and signs it in if needed.
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
      if (typeof agent === "number" && Number.isSafeInteger(agent) && agent >= 0) return agent;
      throw new ParleyError("INTERNAL", "the node's answer to a sign-in cannot be read");
    } catch (e) {
      // The connection has too many agents, or they sign in too fast: the call itself was not sent.
      if (e instanceof ParleyError && (e.code === "QUOTA_EXCEEDED" || e.code === "RATE_LIMITED")) throw new Lost(false, e);
      throw e;
    }
  }

  /**
   * Begins a task, and resolves with it at its first answer.
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
   * Cancels a task that is under way.
   *
   * @param {Task} task
   */
  #forget(task) {
    if (this.#tasks.delete(task.id)) this.#write(from.cancel, task.id);
  }

  /**
   * Marks the outcome of an ask as awaited. The returned function ends that.
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
   * Writes a frame. Frames of the same moment share a message.
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
      readFrames(new Uint8Array(data), (kind, id, body) => this.#dispatch(kind, id, body));
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
  #dispatch(kind, id, bytes) {
    this.#hasReceived = true;
    this.#isQuiet = false;
    if (kind === to.going) {
      this.#isGoing = true;
      return;
    }
    const task = this.#tasks.get(id);
    if (task === undefined) return; // it was cancelled
    const body = new Reader(bytes).value();
    switch (kind) {
      case to.asked:
        return task.accept(body);
      case to.item:
        return task.add(body);
    }
    const refusal = /** @type {any} */ (body);
    if (kind === to.refusal && typeof refusal?.code !== "string") throw new Malformed();
    this.#tasks.delete(id);
    this.#unclaimed.delete(task);
    if (kind === to.result) task.end(body);
    else task.fail(refusalOf(refusal));
  }

  /** Keeps the link open until the returned function is called. */
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

  /** Sends a call to a node that has been silent for a beat. After another it ends the link. */
  #look() {
    if (this.#isQuiet) return this.#end("the node is silent", "ended");
    this.#isQuiet = true;
    this.#write(from.call, ++this.#lastId, { agent: 0, operation: "locate", body: '{"name":"@self"}' });
  }

  /**
   * Ends the link. Tasks under way are lost.
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
    this.#socket.onerror = () => {}; // some implementations throw errors without a listener
    this.#socket.close();
    for (const task of this.#tasks.values()) task.fail(new Lost(true, why));
    this.#tasks.clear();
    this.#unclaimed.clear();
    this.#onEnd(how);
  }
}

/** The outcome of a form, which arrives on the link that asked it. */
export class Coming {
  #outcome;
  #claim;

  /**
   * @param {Promise<any>} outcome
   * @param {() => () => void} claim marks it as awaited; the returned function ends that
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

/** A call, ask, follow or sign-in under way. */
class Task {
  /** the answer, for an ask the acceptance @type {Deferred} */
  first = deferred();
  /** the outcome of an ask @type {Deferred} */
  last = deferred();
  isAsked = false;
  /** number of callers that wait for the outcome */
  claims = 0;
  isOver = false;
  /** items of a follow that nobody has taken @type {(Item | AgentItem)[]} */
  items = [];
  /** resolves when there are items, or the end @type {Deferred} */
  news = deferred();
  /** number of items that may still arrive */
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
  accept(body) {
    if ((this.kind !== from.ask && this.kind !== from.askBy) || this.isAsked) throw new Malformed();
    this.isAsked = true;
    this.first.resolve(body);
  }

  /** @param {unknown} body */
  add(body) {
    const item = /** @type {any} */ (body);
    const fits = this.kind === from.follow ? typeof item?.cursor === "string" && item.message
      : this.kind === from.followAgents && (item?.kind === "told" || typeof item?.agent?.id === "string");
    if (!fits || this.credit === 0) throw new Malformed();
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

  /** Marks the end, and returns the promise to settle. */
  #over() {
    this.isOver = true;
    this.news.resolve(undefined);
    return this.isAsked ? this.last : this.first;
  }
}

/** @typedef {{promise: Promise<any>, resolve: (value: any) => void, reject: (why: unknown) => void}} Deferred */

/**
 * Makes a promise with its functions. A rejection that nobody awaits is ignored.
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
 * Waits for a promise until the signal.
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

/** One listener for each signal. Node warns of more than a few on one signal, and many calls may share it. */
const listeners = /** @type {WeakMap<AbortSignal, {callbacks: Set<() => void>, callAll: () => void}>} */ (new WeakMap());

/**
 * Calls a function when a signal is aborted. The returned function ends that.
 *
 * @param {AbortSignal} signal
 * @param {() => void} aborted
 */
function onAbort(signal, aborted) {
  let listener = listeners.get(signal);
  if (listener === undefined) {
    const callbacks = new Set();
    listener = { callbacks, callAll: () => callbacks.forEach((each) => each()) };
    listeners.set(signal, listener);
    signal.addEventListener("abort", listener.callAll);
  }
  const { callbacks, callAll } = listener;
  callbacks.add(aborted);
  return () => {
    callbacks.delete(aborted);
    if (callbacks.size > 0 || listeners.get(signal)?.callbacks !== callbacks) return;
    listeners.delete(signal);
    signal.removeEventListener("abort", callAll);
  };
}
