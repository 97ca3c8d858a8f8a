/**
 * How far following has come: all that changed up to seen was told, and, of what changed from there to upTo, if that is not
 * 0, the messages up to a number. A cursor is its text; the node's WebSockets have the same.
 */
export class Position {
    /**
     * Reads a cursor. It throws INVALID_ARGUMENT.
     *
     * @param {string} [cursor]
     */
    static parse(cursor?: string): Position;
    /**
     * @param {number} seen
     * @param {number} [upTo]
     * @param {number} [number]
     */
    constructor(seen: number, upTo?: number, number?: number);
    seen: number;
    upTo: number;
    number: number;
    toString(): string;
}
