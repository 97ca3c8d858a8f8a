/**
 * Writes a frame. A body is JSON as text, and the node answers with the same: JavaScript parses JSON faster than maps of msgpack.
 *
 * @param {Writer} w
 * @param {number} kind
 * @param {number} id
 * @param {{agent?: number, operation?: string, body?: string, credit?: number}} [rest]
 */
export function writeFrame(w: Writer, kind: number, id: number, { agent, operation, body, credit }?: {
    agent?: number;
    operation?: string;
    body?: string;
    credit?: number;
}): void;
/**
 * Reads the frames of a message of a node. It throws Malformed at the first malformed one.
 *
 * @param {Uint8Array} message
 * @param {(kind: number, id: number, body: Uint8Array) => void} each
 */
export function readFrames(message: Uint8Array, each: (kind: number, id: number, body: Uint8Array) => void): void;
/** @typedef {import("./msgpack.js").Writer} Writer */
/** The WebSocket subprotocol of connections whose messages hold frames: docs/http-and-websocket.md describes them. */
export const protocol: "parley.mux";
/** The kinds of frames that a client sends. */
export const from: Readonly<{
    call: 0;
    cancel: 1;
    signIn: 2;
    signOut: 3;
    ask: 4;
    follow: 5;
    credit: 6;
    followAgents: 7;
    askBy: 8;
}>;
/** The kinds of frames that a node sends. */
export const to: Readonly<{
    result: 0;
    refusal: 1;
    asked: 2;
    item: 3;
    going: 4;
}>;
export type Writer = import("./msgpack.js").Writer;
