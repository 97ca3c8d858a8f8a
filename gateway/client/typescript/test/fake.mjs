// A WebSocket whose other end is the test.
import { Reader, Writer } from "../msgpack.js";
import { protocol } from "../frame.js";

/** @typedef {{kind: number, id: number, agent?: number, operation?: string, body?: any, credit?: number}} Frame */

const layouts = [["agent", "operation", "body"], [], ["body"], ["agent"], ["agent", "body"], ["agent", "body", "credit"], ["credit"],
  ["agent", "body", "credit"], ["agent", "operation", "body"]];

/** Makes a class of WebSockets. It passes sent frames to one function, and each new socket to another. */
export function sockets(/** @type {(socket: any, frame: Frame) => void} */ onFrame, open = (/** @type {any} */ socket) => socket.opens()) {
  return class Socket {
    /** @type {Socket[]} */
    static all = [];
    protocol = "";
    isClosed = false;
    onopen = /** @type {any} */ (undefined);
    onmessage = /** @type {any} */ (undefined);
    onclose = /** @type {any} */ (undefined);
    onerror = /** @type {any} */ (undefined);

    constructor(/** @type {string} */ url, /** @type {string[]} */ protocols) {
      this.url = url;
      this.protocols = protocols;
      Socket.all.push(this);
      setImmediate(() => open(this));
    }

    opens(chosen = protocol) {
      this.protocol = chosen;
      this.onopen?.();
    }

    send(/** @type {Uint8Array} */ message) {
      for (const r = new Reader(message); !r.isEmpty; ) {
        r.array();
        /** @type {any} */
        const frame = { kind: r.uint(), id: r.uint() };
        for (const part of layouts[frame.kind] ?? []) frame[part] = r.value();
        setImmediate(() => this.isClosed || onFrame(this, frame));
      }
    }

    /** Delivers a frame as from the node. */
    deliver(/** @type {number} */ kind, /** @type {number} */ id, /** @type {unknown} */ body) {
      const w = new Writer();
      w.array(3);
      w.uint(kind);
      w.uint(id);
      w.json(JSON.stringify(body));
      this.deliverBytes(w.take());
    }

    deliverBytes(/** @type {Uint8Array} */ message) {
      this.onmessage?.({ data: message.buffer });
    }

    /** Breaks the connection. */
    break() {
      this.isClosed = true;
      this.onclose?.();
    }

    close() {
      this.isClosed = true;
    }
  };
}

/** Makes a fetch that responds with the results of a function. */
export function answers(/** @type {(operation: string, request: any) => unknown} */ answer) {
  const calls = /** @type {string[]} */ ([]);
  const fetch = async (/** @type {any} */ url, /** @type {any} */ { body }) => {
    const operation = String(url).replace(/.*\//, "");
    calls.push(operation);
    const response = /** @type {any} */ (answer(operation, JSON.parse(body)));
    return new Response(JSON.stringify(response), { status: response.error ? 400 : 200 });
  };
  return Object.assign(fetch, { calls });
}

export const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));
