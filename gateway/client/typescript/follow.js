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
    if (at.seen > 0 && at.upTo === 0) {
      for await (const item of wire.follow({ ...view, cursor: at.toString() }, signal)) {
        at = Position.parse(item.cursor);
        yield item;
      }
    }
    const { messages, end, next } = await batch(wire, view, at, signal);
    for (const [i, message] of messages.entries()) {
      const isLast = i === messages.length - 1 && next === 0;
      yield { message, cursor: (isLast ? new Position(end) : new Position(at.seen, end, message.number)).toString() };
    }
    at = next === 0 ? new Position(end) : new Position(at.seen, end, next - 1);
  }
}

/**
 * Waits for messages that changed together after a position, up to end. If next is not 0, there are more of them from that number on.
 *
 * @param {Wire} wire
 * @param {View} view
 * @param {Position} at
 * @param {AbortSignal} [signal]
 * @returns {Promise<{messages: Message[], end: number, next: number}>}
 */
async function batch(wire, view, at, signal) {
  /** @param {number} cursor @param {number} waitMs @returns {Promise<{messages: Message[], cursor: number}>} */
  const changes = (cursor, waitMs) => wire.call("follow_messages", { ...view, cursor, waitMs }, signal);
  // The next page by number. A message that changed again later follows after the end.
  const page = async () => {
    const first = at.upTo === 0 ? 0 : at.number + 1;
    /** @type {import("./operations.js").Inbox} */
    const { messages, cursor, next } = await wire.call("list_messages", { ...view, first }, signal);
    const end = at.upTo || Math.max(cursor, 1); // a mailbox begins with its agent's making
    return { messages: messages.filter((m) => m.changed > at.seen && m.changed <= end), end, next: next ?? 0 };
  };
  if (at.seen === 0) return page();
  if (at.upTo === 0) {
    const { messages, cursor } = await changes(at.seen, turnTime);
    return { messages, end: cursor, next: 0 };
  }
  const since = await changes(at.seen, 0);
  if (at.seen < since.cursor && since.cursor < at.upTo) return page(); // not all fit: a cursor has room for a number only
  const messages = since.messages.filter((m) => m.changed <= at.upTo && m.number > at.number);
  return { messages, end: at.upTo, next: 0 };
}
