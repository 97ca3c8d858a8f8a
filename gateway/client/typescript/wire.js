import { Lost, ParleyError, lostTo, refusalIn } from "./error.js";
import { looks } from "./operations.js";

/**
 * @typedef {object} Options
 * @property {string} url where the node listens, as http://127.0.0.1:7420
 * @property {string} [token] as parley token create makes them; in a page of the node's own, its session will do
 * @property {string} [as] name under which the node's host holds the agent to act for
 * @property {number} [patience] for how many milliseconds a node is waited for that was there and is not; default: until the
 *   signal of the call
 * @property {AbortSignal} [signal] ends connecting
 * @property {typeof globalThis.fetch} [fetch] in place of the global one
 * @property {any} [WebSocket] in place of the global one, which Node has from 22 on
 */

/** @typedef {{signal?: AbortSignal}} Ending what ends a call: it rejects with the signal's reason, and what was asked may still happen */

// The pauses between attempts, in milliseconds: each is up to twice as long as the one before.
const firstPause = 50;
const lastPause = 2000;

/** The way to a node. */
export class Wire {
  /** when the node was last there @type {number | undefined} */
  #seen;

  /** @param {Options} options */
  constructor(options) {
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
  }

  /**
   * Calls an operation, again and again where that does nothing twice and the node may come back.
   *
   * @param {string} operation
   * @param {Record<string, unknown>} request
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  async call(operation, request, signal) {
    const named = this.options.as === undefined ? request : { as: this.options.as, ...request };
    const body = JSON.stringify(named);
    for (let pause = firstPause; ; pause = Math.min(2 * pause, lastPause)) {
      try {
        return await this.#once(operation, body, signal);
      } catch (e) {
        if (!(e instanceof Lost)) throw e;
        this.#check(e, operation, repeats(operation, request));
      }
      await rest(pause / 2 + (Math.random() * pause) / 2, signal); // so that not all come at once
    }
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
    if (!response.ok) {
      const refusal = refusalIn(response.status, text);
      if (refusal instanceof ParleyError) this.saw();
      throw refusal;
    }
    this.saw();
    try {
      return JSON.parse(text);
    } catch (e) {
      throw new ParleyError("INTERNAL", `the node's answer to ${operation} cannot be read`, { cause: e });
    }
  }
}

/**
 * Whether to make a call twice is to make it once.
 *
 * @param {string} operation
 * @param {Record<string, unknown>} request
 */
function repeats(operation, request) {
  switch (operation) {
    case "form":
    case "request":
    case "approve":
      return Boolean(request.key);
    case "send_agent_message":
      return Boolean(request.messageId);
  }
  return looks.has(operation);
}

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
export function newKey() {
  let key = "";
  for (let time = Date.now(), i = 0; i < 10; i++, time = Math.floor(time / 32)) key = letters.charAt(time % 32) + key;
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) key += letters.charAt(byte % 32);
  return key;
}
