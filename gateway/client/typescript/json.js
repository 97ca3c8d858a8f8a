// JSON in which integers are exact. A number of JavaScript holds integers up to 2^53 - 1. A larger one is a bigint here, both as it is read and
// as it is written. JSON.parse tells a reviver the text of a number only in newer engines, so such an integer is marked in the text before:
//
//   {"n":9007199254740993}  is read as  {"n":"<mark>9007199254740993"}

/** The strings and the numbers of a JSON text. No digit of a string is taken for one of a number. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;

const isLong = /\d{16}/;
const isLongInteger = /^-?\d{16,}$/;

/**
 * Parses JSON. An integer that a number cannot hold exactly is a bigint.
 *
 * @param {string} text
 * @returns {any}
 */
export function parse(text) {
  if (!isLong.test(text)) return JSON.parse(text);
  const mark = newMark();
  let marked = false;
  const other = text.replace(tokens, (token) => {
    if (!isLongInteger.test(token) || Number.isSafeInteger(Number(token))) return token;
    marked = true;
    return `"${mark}${token}"`;
  });
  if (!marked) return JSON.parse(text);
  JSON.parse(text); // of which the marked one may be valid where it is not
  return JSON.parse(other, (_, value) => (typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value));
}

/**
 * Writes JSON. A bigint is the integer that it is.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function stringify(value) {
  if (!("toJSON" in BigInt.prototype)) { // as a program may have given it
    try {
      return JSON.stringify(value);
    } catch (e) {
      if (!(e instanceof TypeError)) throw e;
    }
  }
  const mark = newMark();
  let marked = false;
  const text = JSON.stringify(value, /** @this {any} @param {string} name @param {unknown} shown */ function (name, shown) {
    if (typeof this[name] !== "bigint") return shown;
    marked = true;
    return `${mark}${this[name]}`;
  });
  return marked ? text.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1") : text;
}

/** Returns a text that no other text begins with: nobody can guess it. */
function newMark() {
  return `bigint-${crypto.getRandomValues(new Uint32Array(4)).join("-")}:`;
}
