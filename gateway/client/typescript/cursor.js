import { ParleyError } from "./error.js";

/**
 * How far following has come: all that changed up to seen was told, and, of what changed from there to upTo, if that is not
 * 0, the messages up to a number. A cursor is its text; the node's WebSockets have the same.
 */
export class Position {
  /**
   * @param {number} seen
   * @param {number} [upTo]
   * @param {number} [number]
   */
  constructor(seen, upTo = 0, number = 0) {
    this.seen = seen;
    this.upTo = upTo;
    this.number = number;
  }

  toString() {
    return this.upTo === 0 ? `${this.seen}` : `${this.seen}.${this.upTo}.${this.number}`;
  }

  /**
   * Reads a cursor. It throws INVALID_ARGUMENT.
   *
   * @param {string} [cursor]
   */
  static parse(cursor) {
    if (cursor === undefined || cursor === "") return new Position(0);
    const parts = cursor.split(".").map(Number);
    const p = new Position(parts[0] ?? NaN, parts[1], parts[2]);
    const numbers = [p.seen, p.upTo, p.number].every((n) => Number.isSafeInteger(n) && n >= 0);
    if (!numbers || parts.length > 3 || p.toString() !== cursor || (p.upTo !== 0 && p.upTo < p.seen)) {
      throw new ParleyError("INVALID_ARGUMENT", `${JSON.stringify(cursor.slice(0, 80))} is not a cursor`);
    }
    return p;
  }
}
