import { protocol } from "./frame.js";
import { Link, until } from "./link.js";

/** Times in milliseconds. */
const defaults = {
  dial: 5000, // to open a link
  close: 100, // before a link ends on which nobody waits
  beat: 20000, // of silence before a node is asked whether it is there
  plain: 60000, // of calls by HTTP, where a link could not be opened
};

/** How many links may end unheard: a node may be killed just after it opened one. */
const maxUnheard = 2;

/** The way to a node for several agents: one link, or HTTP where that does not get through. */
export class Connection {
  #url;
  #WebSocket;
  #times;
  /** @type {Link | undefined} */
  #link;
  /** resolves when the opening that goes on has ended @type {Promise<void> | undefined} */
  #opening;
  /** until when calls go by HTTP, because nothing else gets through */
  #plainUntil = 0;
  /** how many links ended unheard, one after the other */
  #unheard = 0;
  /** how many calls go by HTTP now */
  #underWay = 0;
  /** when a call last began or ended by HTTP */
  #lastCall = 0;

  /**
   * @param {string} url of the node
   * @param {any} WebSocket undefined: calls go by HTTP
   * @param {Partial<typeof defaults>} [times]
   */
  constructor(url, WebSocket, times) {
    this.#url = url.replace(/^http/, "ws") + "/ws";
    this.#WebSocket = WebSocket;
    this.#times = { ...defaults, ...times };
  }

  /**
   * Returns the link, or undefined for a call that goes by HTTP. It opens the link for a call that waits, and for one that comes with
   * others: HTTP opens no more for a call alone, and a program that makes it ends at once.
   *
   * @param {string | undefined} token
   * @param {boolean} waits
   * @param {AbortSignal} [signal]
   * @returns {Promise<Link | undefined>}
   */
  async open(token, waits, signal) {
    for (;;) {
      if (this.#link?.isOpen) return this.#link;
      if (this.#WebSocket === undefined || Date.now() < this.#plainUntil) return undefined;
      const isAlone = this.#underWay === 0 && Date.now() - this.#lastCall > this.#times.close;
      if (this.#opening === undefined && isAlone && !waits) {
        this.#lastCall = Date.now(); // the next is not alone
        return undefined;
      }
      this.#opening ??= this.#dial(token).finally(() => (this.#opening = undefined));
      await until(this.#opening, signal);
    }
  }

  /**
   * Makes a call by HTTP.
   *
   * @template T
   * @param {() => Promise<T>} call
   * @returns {Promise<T>}
   */
  async plainly(call) {
    this.#underWay++;
    try {
      return await call();
    } finally {
      this.#underWay--;
      this.#lastCall = Date.now();
    }
  }

  /** Notes that HTTP got no answer either: it was not the WebSocket's fault. */
  lost() {
    this.#plainUntil = 0;
  }

  /**
   * Leaves calls to HTTP where something opens links, and does not speak as a node.
   *
   * @param {import("./link.js").End} end
   */
  #note(end) {
    this.#unheard = end === "unheard" ? this.#unheard + 1 : 0;
    if (this.#unheard < maxUnheard && end !== "malformed") return;
    this.#plainUntil = Date.now() + this.#times.plain;
    this.#unheard = 0;
  }

  /**
   * Opens a link, or leaves calls to HTTP for a while. A platform does not say why it could not: HTTP will.
   *
   * @param {string | undefined} token
   * @returns {Promise<void>}
   */
  #dial(token) {
    return new Promise((resolve) => {
      const failed = () => {
        this.#plainUntil = Date.now() + this.#times.plain;
        resolve();
      };
      /** @type {any} */
      let socket;
      try {
        socket = new this.#WebSocket(this.#url, token === undefined ? [protocol] : [protocol, `parley.bearer.${token}`]);
      } catch {
        return failed(); // a page that may not, or a token that is none
      }
      const ended = () => {
        clearTimeout(timer);
        socket.onopen = socket.onclose = null;
        socket.onerror = () => {}; // some throw what nobody hears
        failed();
      };
      const timer = setTimeout(() => {
        ended();
        socket.close();
      }, this.#times.dial);
      socket.binaryType = "arraybuffer";
      socket.onerror = socket.onclose = ended;
      socket.onopen = () => {
        if (socket.protocol !== protocol) { // an older node, or something on the way to it
          ended();
          socket.close();
          return;
        }
        clearTimeout(timer);
        socket.onopen = null;
        this.#link = new Link(socket, token, this.#times, (end) => this.#note(end));
        resolve();
      };
    });
  }
}
