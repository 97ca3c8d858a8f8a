import { Malformed, Reader } from "./msgpack.js";

/** @typedef {import("./msgpack.js").Writer} Writer */

/** The WebSocket subprotocol of connections whose messages hold frames: docs/http-and-websocket.md describes them. */
export const protocol = "parley.mux";

/** The kinds of frames that a client sends. */
export const from = Object.freeze({ call: 0, cancel: 1, signIn: 2, signOut: 3, ask: 4, follow: 5, credit: 6, followAgents: 7, askBy: 8 });

/** The kinds of frames that a node sends. */
export const to = Object.freeze({ result: 0, refusal: 1, asked: 2, item: 3, going: 4 });

/**
 * Writes a frame. A body is JSON as text, and the node answers with the same: JavaScript parses JSON faster than maps of msgpack.
 *
 * @param {Writer} w
 * @param {number} kind
 * @param {number} id
 * @param {{agent?: number, operation?: string, body?: string, credit?: number}} [rest]
 */
export function writeFrame(w, kind, id, { agent, operation, body, credit } = {}) {
  const present = [agent, operation, body, credit].filter((part) => part !== undefined);
  w.array(2 + present.length);
  w.uint(kind);
  w.uint(id);
  if (agent !== undefined) w.uint(agent);
  if (operation !== undefined) w.text(operation);
  if (body !== undefined) w.json(body);
  if (credit !== undefined) w.uint(credit);
}

/**
 * Reads the frames of a message of a node. It throws Malformed at the first malformed one.
 *
 * @param {Uint8Array} message
 * @param {(kind: number, id: number, body: Uint8Array) => void} each
 */
export function readFrames(message, each) {
  for (const r = new Reader(message); !r.isEmpty; ) {
    if (r.array() !== 3) throw new Malformed();
    const kind = r.uint();
    if (kind > to.going) throw new Malformed();
    each(kind, r.uint(), r.raw());
  }
}
