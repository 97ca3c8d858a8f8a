import { parse } from "./json.js";

// The part of msgpack that frames use. The client has no dependencies, and libraries leave the bounds of depth and size, which frames of a
// hostile node need, to their users.

/** The largest depth of a value. */
export const maxDepth = 32;

/** The type of the extension that holds JSON as text. */
const jsonText = 1;

/** The size of the buffer that a writer keeps, in bytes: that of a large request is freed. */
const keptSize = 64 << 10;

/** The error of bytes that are no value, or of a type that frames do not have. */
export class Malformed extends Error {
  constructor() {
    super("the frame is malformed");
  }
}

const utf8 = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Writes values one behind the other. */
export class Writer {
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);

  /** The number of bytes that are written. */
  length = 0;

  /**
   * Writes the head of an array with fewer than 16 elements.
   *
   * @param {number} elements
   */
  array(elements) {
    this.#reserve(1);
    this.#view.setUint8(this.length++, 0x90 | elements);
  }

  /**
   * Writes an integer that is not negative.
   *
   * @param {number} n
   */
  uint(n) {
    this.#reserve(9);
    if (n < 0x80) {
      this.#view.setUint8(this.length++, n);
    } else if (n <= 0xffffffff) {
      this.#view.setUint8(this.length, 0xce);
      this.#view.setUint32(this.length + 1, n);
      this.length += 5;
    } else {
      this.#view.setUint8(this.length, 0xcf);
      this.#view.setBigUint64(this.length + 1, BigInt(n));
      this.length += 9;
    }
  }

  /** @param {string} text */
  text(text) {
    this.#reserve(5 + 3 * text.length);
    const n = this.#encode(text, 5);
    this.#view.setUint8(this.length, 0xdb);
    this.#view.setUint32(this.length + 1, n);
    this.length += 5 + n;
  }

  /**
   * Writes JSON as text.
   *
   * @param {string} text
   */
  json(text) {
    this.#reserve(6 + 3 * text.length);
    const n = this.#encode(text, 6);
    this.#view.setUint8(this.length, 0xc9);
    this.#view.setUint32(this.length + 1, n);
    this.#view.setUint8(this.length + 5, jsonText);
    this.length += 6 + n;
  }

  /** Returns the bytes written, and begins again. */
  take() {
    const taken = this.#bytes.slice(0, this.length);
    this.length = 0;
    if (this.#bytes.length > keptSize) this.#grow(keptSize);
    return taken;
  }

  /**
   * Encodes a text so many bytes behind what is written, and returns the number of its bytes.
   *
   * @param {string} text
   * @param {number} behind
   */
  #encode(text, behind) {
    return utf8.encodeInto(text, this.#bytes.subarray(this.length + behind)).written;
  }

  /** @param {number} n */
  #reserve(n) {
    if (this.length + n > this.#bytes.length) this.#grow(2 * (this.length + n));
  }

  /** @param {number} size */
  #grow(size) {
    const other = new Uint8Array(size);
    other.set(this.#bytes.subarray(0, this.length));
    this.#bytes = other;
    this.#view = new DataView(other.buffer);
  }
}

/**
 * Reads values one behind the other. It throws Malformed, and trusts no length before the bytes are there.
 */
export class Reader {
  #bytes;
  #view;
  #at = 0;

  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Reports whether all is read. */
  get isEmpty() {
    return this.#at === this.#bytes.length;
  }

  /** Reads the head of an array, and returns the number of its elements. */
  array() {
    const code = this.#code();
    if (code >= 0x90 && code <= 0x9f) return this.#count(code & 0x0f, 1);
    if (code === 0xdc) return this.#count(this.#number(2), 1);
    if (code === 0xdd) return this.#count(this.#number(4), 1);
    throw new Malformed();
  }

  /** Reads an integer that is not negative. */
  uint() {
    const code = this.#code();
    if (code < 0x80) return code;
    if (code >= 0xcc && code <= 0xcf) return this.#number(1 << (code - 0xcc));
    throw new Malformed();
  }

  /** Reads one value of any type, and returns its bytes. */
  raw() {
    const from = this.#at;
    this.#value(maxDepth, true);
    return this.#bytes.subarray(from, this.#at);
  }

  /**
   * Reads one value of any type.
   *
   * @returns {unknown}
   */
  value() {
    return this.#value(maxDepth, false);
  }

  /**
   * @param {number} depth
   * @param {boolean} isSkipped texts are checked, and not kept
   * @returns {unknown}
   */
  #value(depth, isSkipped) {
    if (depth === 0) throw new Malformed();
    const code = this.#code();
    if (code < 0x80) return code;
    if (code <= 0x8f) return this.#map(code & 0x0f, depth, isSkipped);
    if (code <= 0x9f) return this.#list(code & 0x0f, depth, isSkipped);
    if (code <= 0xbf) return this.#text(code & 0x1f);
    if (code >= 0xe0) return code - 0x100;
    switch (code) {
      case 0xc0:
        return null;
      case 0xc2:
      case 0xc3:
        return code === 0xc3;
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return this.#json(this.#number(1 << (code - 0xc7)), isSkipped);
      case 0xca:
        return finite(this.#view.getFloat32(this.#take(4)));
      case 0xcb:
        return finite(this.#view.getFloat64(this.#take(8)));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#number(1 << (code - 0xcc));
      case 0xcf:
        return exact(this.#view.getBigUint64(this.#take(8)));
      case 0xd0:
        return this.#view.getInt8(this.#take(1));
      case 0xd1:
        return this.#view.getInt16(this.#take(2));
      case 0xd2:
        return this.#view.getInt32(this.#take(4));
      case 0xd3:
        return exact(this.#view.getBigInt64(this.#take(8)));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return this.#json(1 << (code - 0xd4), isSkipped);
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#text(this.#number(1 << (code - 0xd9)));
      case 0xdc:
      case 0xdd:
        return this.#list(this.#number(2 << (code - 0xdc)), depth, isSkipped);
      case 0xde:
      case 0xdf:
        return this.#map(this.#number(2 << (code - 0xde)), depth, isSkipped);
    }
    throw new Malformed();
  }

  /** @param {number} elements @param {number} depth @param {boolean} isSkipped */
  #list(elements, depth, isSkipped) {
    const list = [];
    for (let n = this.#count(elements, 1); n > 0; n--) {
      const value = this.#value(depth - 1, isSkipped);
      if (!isSkipped) list.push(value);
    }
    return list;
  }

  /** @param {number} pairs @param {number} depth @param {boolean} isSkipped */
  #map(pairs, depth, isSkipped) {
    /** @type {[string, unknown][]} */
    const list = [];
    for (let n = this.#count(pairs, 2); n > 0; n--) {
      const name = this.#value(1, isSkipped);
      if (typeof name !== "string") throw new Malformed();
      const value = this.#value(depth - 1, isSkipped);
      if (!isSkipped) list.push([name, value]);
    }
    return Object.fromEntries(list); // in which __proto__ is a member as any other
  }

  /** @param {number} n bytes */
  #text(n) {
    const from = this.#take(n);
    try {
      return strict.decode(this.#bytes.subarray(from, this.#at));
    } catch {
      throw new Malformed();
    }
  }

  /** @param {number} n bytes @param {boolean} isSkipped */
  #json(n, isSkipped) {
    if (this.#number(1) !== jsonText) throw new Malformed();
    if (isSkipped) return this.#take(n);
    const text = this.#text(n);
    try {
      return parse(text);
    } catch {
      throw new Malformed();
    }
  }

  /**
   * Returns a number of elements, if so many of at least some bytes can follow.
   *
   * @param {number} n
   * @param {number} bytes
   */
  #count(n, bytes) {
    if (n * bytes > this.#bytes.length - this.#at) throw new Malformed();
    return n;
  }

  /**
   * Reads the integer of 1, 2, 4 or 8 bytes of a length, a kind or an ID. One that a number cannot hold is rounded.
   *
   * @param {number} bytes
   */
  #number(bytes) {
    const from = this.#take(bytes);
    switch (bytes) {
      case 1:
        return this.#view.getUint8(from);
      case 2:
        return this.#view.getUint16(from);
      case 4:
        return this.#view.getUint32(from);
    }
    return Number(this.#view.getBigUint64(from));
  }

  #code() {
    return this.#view.getUint8(this.#take(1));
  }

  /**
   * Passes bytes, and returns where they begin.
   *
   * @param {number} n
   */
  #take(n) {
    const from = this.#at;
    if (n > this.#bytes.length - from) throw new Malformed();
    this.#at = from + n;
    return from;
  }
}

/** @param {bigint} n */
function exact(n) {
  const number = Number(n);
  return Number.isSafeInteger(number) ? number : n;
}

/** @param {number} n */
function finite(n) {
  if (!Number.isFinite(n)) throw new Malformed();
  return n;
}
