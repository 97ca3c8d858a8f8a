import { turnTime } from "./asked.js";
import { Position } from "./cursor.js";

/** @typedef {import("./wire.js").Wire} Wire */
/** @typedef {import("./operations.js").Envelope} Message */
/** @typedef {import("./client.js").View} View */

/**
 * @param {Wire} wire
 * @param {{cursor?: string, view?: View, signal?: AbortSignal}} from
 * @returns {AsyncGenerator<{message: Message, cursor: string}, void, void>}
 */
export async function* follow(wire, { cursor, view = {}, signal }) {
  let at = Position.parse(cursor);
  for (;;) {
    const { messages, end } = await batch(wire, view, at, signal);
    for (const [i, message] of messages.entries()) {
      const after = i === messages.length - 1 ? new Position(end) : new Position(at.seen, end, message.number);
      yield { message, cursor: after.toString() };
    }
    at = new Position(end);
  }
}

/**
 * Waits for messages that changed together after a position.
 *
 * @param {Wire} wire
 * @param {View} view
 * @param {Position} at
 * @param {AbortSignal} [signal]
 * @returns {Promise<{messages: Message[], end: number}>}
 */
async function batch(wire, view, at, signal) {
  /** @param {number} cursor @param {number} waitMs @returns {Promise<{messages: Message[], cursor: number}>} */
  const changes = (cursor, waitMs) => wire.call("follow_messages", { ...view, cursor, waitMs }, signal);
  if (at.upTo === 0) {
    const page = await changes(at.seen, turnTime);
    return { messages: page.messages, end: page.cursor };
  }
  // Some of a batch were told. The rest of it is told, but for what has changed again after the batch: that is told by going on.
  const since = await changes(at.seen, 0);
  const later = new Set((await changes(at.upTo, 0)).messages.map((m) => m.number));
  return { messages: since.messages.filter((m) => m.number > at.number && !later.has(m.number)), end: at.upTo };
}
