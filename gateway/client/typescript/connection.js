import { protocol } from "./frame.js";
import { Link, until } from "./link.js";

/** Times in milliseconds. */
const defaults = {
  dial: 5000, // to open a link
  close: 100, // without a caller that waits, before a link closes
  beat: 20000, // of silence, before the node is called
  plain: 60000, // of calls by HTTP, after no link could be opened
};

/** The number of links in a row that may end unheard. One may: a node may be killed just after it opened one. */
const maxUnheard = 2;

/** The transport to a node for several agents: one link, or HTTP where no link can be opened. */
export class Connection {
  #url;
  #WebSocket;
  #times;
  /** @type {Link | undefined} */
  #link;
  /** resolves when an opening has ended; undefined if none goes on @type {Promise<void> | undefined} */
  #opening;
  /** time until which calls go by HTTP, because no link could be opened */
  #plainUntil = 0;
  /** number of links that ended unheard, one after the other */
  #unheard = 0;
  /** number of calls by HTTP under way */
  #underWay = 0;
  /** time when a call by HTTP last began or ended */
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
   * Returns the link, or undefined for a call by HTTP. It opens the link for a call that waits, and for a call close to others. A single
   * call costs less by HTTP, and does not delay the end of the program.
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

  /** Notes that HTTP got no answer either: the node is away. */
  lost() {
    this.#plainUntil = 0;
  }

  /**
   * Leaves calls to HTTP for a while, if a proxy accepts WebSockets and does not pass them on.
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
   * Opens a link, or leaves calls to HTTP for a while. Platforms do not give the reason of a failure; the call by HTTP will.
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
        return failed(); // the page may not, or the token is malformed
      }
      const ended = () => {
        clearTimeout(timer);
        socket.onopen = socket.onclose = null;
        socket.onerror = () => {}; // some implementations throw errors without a listener
        failed();
      };
      const timer = setTimeout(() => {
        ended();
        socket.close();
      }, this.#times.dial);
      socket.binaryType = "arraybuffer";
      socket.onerror = socket.onclose = ended;
      socket.onopen = () => {
        if (socket.protocol !== protocol) { // an older node, or a proxy
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
