import { Connection } from "./connection.js";
import { Lost, ParleyError, lostTo, refusalIn } from "./error.js";
import { from } from "./frame.js";
import { parse, stringify } from "./json.js";
import { looks } from "./operations.js";

/**
 * @typedef {object} Options
 * @property {string} url where the node listens, as http://127.0.0.1:7420
 * @property {string} [token] as parley token create makes them; in a page of the node's own, its session will do
 * @property {string} [as] name under which the node's host holds the agent to act for
 * @property {number} [patience] for how many milliseconds a node is waited for that was there and is not; default: until the
 *   signal of the call
 * @property {AbortSignal} [signal] ends connecting
 * @property {typeof globalThis.fetch} [fetch] in place of the global one; without the option WebSocket it makes all calls
 * @property {any} [WebSocket] in place of the global one, which Node has from 22 on
 */

/** @typedef {{signal?: AbortSignal}} Ending what ends a call: it rejects with the signal's reason, and what was asked may still happen */

// The pauses between attempts, in milliseconds: each is up to twice as long as the one before.
const firstPause = 50;
const lastPause = 2000;

/** The largest request, in bytes. A node refuses a larger one by HTTP, and ends a connection for it. */
const maxBody = 1 << 20;

/** The number of links that a call may lose before it goes by HTTP: its answer may be what ends them. */
const maxLosses = 2;

/** The way to a node for one agent. */
export class Wire {
  /** when the node was last there @type {number | undefined} */
  #seen;

  /**
   * @param {Options} options
   * @param {Wire} [beside] the Wire of another agent, to share its connection
   */
  constructor(options, beside) {
    let url;
    try {
      url = new URL(options.url);
    } catch {
      url = undefined;
    }
    if (url?.protocol !== "http:" && url?.protocol !== "https:") {
      throw new ParleyError("INVALID_ARGUMENT", `${JSON.stringify(options.url)} is not a node's URL: want http://host:port`);
    }
    this.base = url.origin + url.pathname.replace(/\/$/, "");
    this.options = options;
    // A custom fetch may reach the node where WebSocket does not: through a proxy, or by a Unix socket.
    if (beside !== undefined) this.#seen = beside.#seen;
    this.connection = beside?.connection ?? new Connection(this.base, options.WebSocket ?? (options.fetch ? undefined : globalThis.WebSocket));
  }

  /**
   * Calls an operation, again and again where that does nothing twice and the node may come back.
   *
   * @param {string} operation
   * @param {Record<string, unknown>} request
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  call(operation, request, signal) {
    const waits = Boolean(request.waitMs || request.timeoutMs);
    return this.#perform(operation, request, waits, (link, body) => link.call(this.options.token, operation, body, signal), signal);
  }

  /**
   * Asks by form, request or approve as call does. Over a link, the outcome of what is open follows.
   *
   * @param {string} operation
   * @param {Record<string, unknown>} request
   * @param {AbortSignal} [signal]
   * @returns {Promise<{asked: any, coming?: import("./link.js").Coming}>}
   */
  async ask(operation, request, signal) {
    /** @type {import("./link.js").Coming | undefined} */
    let coming;
    const asked = await this.#perform(operation, request, true, async (link, body) => {
      const got = await link.ask(this.options.token, operation, body, signal);
      coming = got.coming;
      return got.asked;
    }, signal);
    return { asked, ...(coming && { coming }) };
  }

  /**
   * Yields messages as they change, each with the cursor behind it. It returns without a link, when that is lost, and when the agent has
   * too many follows.
   *
   * @param {Record<string, unknown>} request a filter, and a cursor
   * @param {AbortSignal} [signal]
   * @returns {AsyncGenerator<import("./link.js").Item, void, void>}
   */
  async *follow(request, signal) {
    const link = await this.connection.open(this.options.token, true, signal);
    if (link === undefined) return;
    try {
      yield* this.#items(link, from.follow, request, signal);
    } catch (e) {
      const isFull = e instanceof ParleyError && (e.code === "QUOTA_EXCEEDED" || e.code === "RATE_LIMITED");
      if (!isFull) throw e;
    }
  }

  /**
   * Returns the agents as they change, until the link is lost; undefined without a link.
   *
   * @param {Record<string, unknown>} filter
   * @param {AbortSignal} [signal]
   * @returns {Promise<AsyncGenerator<import("./link.js").AgentItem, void, void> | undefined>}
   */
  async followAgents(filter, signal) {
    const link = await this.connection.open(this.options.token, true, signal);
    return link && this.#items(link, from.followAgents, filter, signal);
  }

  /**
   * @param {import("./link.js").Link} link
   * @param {number} kind
   * @param {Record<string, unknown>} request
   * @param {AbortSignal} [signal]
   */
  async *#items(link, kind, request, signal) {
    try {
      for await (const item of link.follow(kind, this.options.token, stringify(this.#named("", request)), signal)) {
        this.saw();
        yield item;
      }
    } catch (e) {
      if (!(e instanceof Lost)) throw e;
    }
  }

  /**
   * Performs an operation over the link, or by HTTP if there is none. It repeats a lost call as call does.
   *
   * @param {string} operation
   * @param {Record<string, unknown>} request
   * @param {boolean} waits
   * @param {(link: import("./link.js").Link, body: string) => Promise<any>} overLink
   * @param {AbortSignal} [signal]
   */
  async #perform(operation, request, waits, overLink, signal) {
    const body = stringify(this.#named(operation, request));
    const fits = 3 * body.length <= maxBody || new TextEncoder().encode(body).length <= maxBody;
    for (let pause = firstPause, losses = 0; ; pause = Math.min(2 * pause, lastPause)) {
      const link = fits && losses < maxLosses ? await this.connection.open(this.options.token, waits, signal) : undefined;
      try {
        if (link === undefined) return await this.connection.plainly(() => this.#once(operation, body, signal));
        const answer = await overLink(link, body);
        this.saw();
        return answer;
      } catch (e) {
        if (e instanceof ParleyError) this.saw();
        if (!(e instanceof Lost)) throw e;
        if (link !== undefined && !e.sent) { // the link has just ended, or has no place for the agent
          losses = maxLosses;
          continue;
        }
        if (link === undefined) this.connection.lost();
        else losses++;
        this.#check(e, operation, looks.has(operation) || keyOf.has(operation));
      }
      await rest(pause / 2 + (Math.random() * pause) / 2, signal); // so that not all come at once
    }
  }

  /**
   * Returns a request with the agent that it is for, and with an idempotency key if it takes one, so that it can be repeated.
   *
   * @param {string} operation
   * @param {Record<string, unknown>} request
   */
  #named(operation, request) {
    const named = this.options.as === undefined ? request : { as: this.options.as, ...request };
    const key = keyOf.get(operation);
    return key === undefined ? named : { ...named, [key]: named[key] || newKey() };
  }

  /**
   * Finds out whether the node is there, and will have the token.
   *
   * @param {AbortSignal} [signal]
   */
  async look(signal) {
    try {
      await this.call("locate", { name: "@self" }, signal);
    } catch (e) {
      // A token may be good for other things than looking, and then this is refused by a node that is there.
      if (!(e instanceof ParleyError) || e.code !== "NOT_PERMITTED") throw e;
    }
  }

  /** Notes that the node is there. */
  saw() {
    this.#seen = Date.now();
  }

  /**
   * Throws what the caller is told of a lost call, unless it is to be made again.
   *
   * @param {Lost} lost
   * @param {string} operation
   * @param {boolean} harmless to do it twice is to do it once
   */
  #check(lost, operation, harmless) {
    if (lost.sent) this.saw();
    const { patience = Infinity } = this.options;
    const away = this.#seen === undefined ? Infinity : Date.now() - this.#seen;
    if ((harmless || !lost.sent) && this.#seen !== undefined && away <= patience) return;
    if (lost.cause instanceof ParleyError) throw lost.cause;
    if (!lost.sent || this.#seen === undefined) {
      throw new ParleyError("NOT_RUNNING", `no node answers at ${this.base}`, { hint: "start one with: parley start", cause: lost.cause });
    }
    throw new ParleyError(
      "NOT_RUNNING",
      harmless ? `the node went away before it answered ${operation}` : `the node went away before it answered; whether ${operation} was done is not known`,
      { hint: "parley status --wait 15s says when it is back", cause: lost.cause },
    );
  }

  /**
   * @param {string} operation
   * @param {string} body
   * @param {AbortSignal} [signal]
   */
  async #once(operation, body, signal) {
    /** @type {Record<string, string>} */
    const headers = { "Content-Type": "application/json" };
    if (this.options.token !== undefined) headers.Authorization = `Bearer ${this.options.token}`;
    const fetch = this.options.fetch ?? globalThis.fetch;
    let response, text;
    try {
      response = await fetch(`${this.base}/rpc/${operation}`, { method: "POST", headers, body, redirect: "error", ...(signal && { signal }) });
      text = await response.text();
    } catch (e) {
      if (signal?.aborted) throw signal.reason;
      throw lostTo(e);
    }
    if (!response.ok) throw refusalIn(response.status, text);
    this.saw();
    try {
      return parse(text);
    } catch (e) {
      throw new ParleyError("INTERNAL", `the node's answer to ${operation} cannot be read`, { cause: e });
    }
  }
}

/** The members with the idempotency keys of requests. */
const keyOf = new Map([
  ...["form", "request", "approve", "send", "reply", "post", "decide_many"].map((operation) => /** @type {const} */ ([operation, "key"])),
  ["send_agent_message", "messageId"],
]);

/**
 * @param {number} ms
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function rest(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const over = () => {
      signal?.removeEventListener("abort", ended);
      resolve();
    };
    const timer = setTimeout(over, ms);
    const ended = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", ended, { once: true });
  });
}

const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Makes an idempotency key that is like no other: a ULID. */
function newKey() {
  let key = "";
  for (let time = Date.now(), i = 0; i < 10; i++, time = Math.floor(time / 32)) key = letters.charAt(time % 32) + key;
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) key += letters.charAt(byte % 32);
  return key;
}
