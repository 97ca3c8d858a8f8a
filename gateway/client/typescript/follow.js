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
    const { messages, end, next, then } = await batch(wire, view, at, signal);
    for (const [i, message] of messages.entries()) {
      const isLast = i === messages.length - 1 && next === 0;
      yield { message, cursor: (isLast ? new Position(end) : new Position(at.seen, end, message.number)).toString() };
    }
    at = then ?? (next === 0 ? new Position(end) : new Position(at.seen, end, next - 1));
  }
}

/**
 * Waits for messages that changed together after a position, up to end. If next is not 0, there are more of them from that number on.
 * Where then is given, following goes on from there.
 *
 * @param {Wire} wire
 * @param {View} view
 * @param {Position} at
 * @param {AbortSignal} [signal]
 * @returns {Promise<{messages: Message[], end: number, next: number, then?: Position}>}
 */
async function batch(wire, view, at, signal) {
  /** @param {number} cursor @param {number} waitMs @returns {Promise<{messages: Message[], cursor: number}>} */
  const changes = (cursor, waitMs) => wire.call("follow_messages", { ...view, cursor, waitMs }, signal);
  // A message that changed again later follows after end.
  const unchanged = (/** @type {Message[]} */ messages, /** @type {number} */ end) => messages.filter((m) => m.changed <= end);
  if (at.seen === 0) {
    const first = at.upTo === 0 ? 0 : at.number + 1;
    /** @type {import("./operations.js").Inbox} */
    const page = await wire.call("list_messages", { ...view, first }, signal);
    const end = at.upTo || Math.max(page.cursor, 1); // a mailbox begins with its agent's making
    return { messages: unchanged(page.messages, end), end, next: page.next ?? 0 };
  }
  if (at.upTo === 0) {
    const page = await changes(at.seen, turnTime);
    return { messages: page.messages, end: page.cursor, next: 0 };
  }
  const since = await changes(at.seen, 0);
  const messages = unchanged(since.messages, at.upTo).filter((m) => m.number > at.number);
  if (since.cursor >= at.upTo || since.cursor <= at.seen || since.messages.length === 0) return { messages, end: at.upTo, next: 0 };
  return { messages, end: since.cursor, next: 0, then: new Position(since.cursor, at.upTo, at.number) };
}
