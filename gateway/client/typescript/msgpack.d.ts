/** The largest depth of a value. */
export const maxDepth: 32;
/** The error of bytes that are no value, or of a type that frames do not have. */
export class Malformed extends Error {
    constructor();
}
/** Writes values one behind the other. */
export class Writer {
    /** The number of bytes that are written. */
    length: number;
    /**
     * Writes the head of an array with fewer than 16 elements.
     *
     * @param {number} elements
     */
    array(elements: number): void;
    /**
     * Writes an integer that is not negative.
     *
     * @param {number} n
     */
    uint(n: number): void;
    /** @param {string} text */
    text(text: string): void;
    /**
     * Writes JSON as text.
     *
     * @param {string} text
     */
    json(text: string): void;
    /** Returns the bytes written, and begins again. */
    take(): Uint8Array<ArrayBuffer>;
    #private;
}
/**
 * Reads values one behind the other. It throws Malformed, and trusts no length before the bytes are there.
 */
export class Reader {
    /** @param {Uint8Array} bytes */
    constructor(bytes: Uint8Array);
    /** Reports whether all is read. */
    get isEmpty(): boolean;
    /** Reads the head of an array, and returns the number of its elements. */
    array(): number;
    /** Reads an integer that is not negative. */
    uint(): number;
    /** Reads one value of any type, and returns its bytes. */
    raw(): Uint8Array<ArrayBufferLike>;
    /**
     * Reads one value of any type.
     *
     * @returns {unknown}
     */
    value(): unknown;
    #private;
}
