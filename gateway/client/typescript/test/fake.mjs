// A WebSocket whose other end is the test.
import { Reader, Writer } from "../msgpack.js";
import { protocol } from "../frame.js";

/** @typedef {{kind: number, id: number, agent?: number, operation?: string, body?: any, credit?: number}} Frame */

const layouts = [["agent", "operation", "body"], [], ["body"], ["agent"], ["agent", "body"], ["agent", "body", "credit"], ["credit"]];

/** Makes a class of WebSockets, whose frames come to a function, and whose opening is to another. */
export function sockets(/** @type {(socket: any, frame: Frame) => void} */ hear, open = (/** @type {any} */ socket) => socket.opens()) {
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
        setImmediate(() => this.isClosed || hear(this, frame));
      }
    }

    /** Has a frame come from the node. */
    tell(/** @type {number} */ kind, /** @type {number} */ id, /** @type {unknown} */ body) {
      const w = new Writer();
      w.array(3);
      w.uint(kind);
      w.uint(id);
      w.json(JSON.stringify(body));
      this.tellBytes(w.take());
    }

    tellBytes(/** @type {Uint8Array} */ message) {
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

/** Makes a fetch that answers with what a function gives. */
export function answers(/** @type {(operation: string, request: any) => unknown} */ answer) {
  const calls = /** @type {string[]} */ ([]);
  const fetch = async (/** @type {any} */ url, /** @type {any} */ { body }) => {
    const operation = String(url).replace(/.*\//, "");
    calls.push(operation);
    const said = /** @type {any} */ (answer(operation, JSON.parse(body)));
    return new Response(JSON.stringify(said), { status: said.error ? 400 : 200 });
  };
  return Object.assign(fetch, { calls });
}

export const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));
