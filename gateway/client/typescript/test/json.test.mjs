import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, stringify } from "../json.js";

test("integers that a number holds are numbers, and larger ones are bigints", () => {
  for (const [text, want] of [
    ["9007199254740991", 9007199254740991],
    ["-9007199254740991", -9007199254740991],
    ["9007199254740993", 9007199254740993n],
    ["-9007199254740993", -9007199254740993n],
    ["123456789012345678901234567890", 123456789012345678901234567890n],
    ["1e400", Infinity],
    ["1234567890123456.5", 1234567890123456.5],
    ["0.12345678901234567890", 0.12345678901234568],
    ["1234567890123456789e2", 123456789012345680000],
    ['"9007199254740993"', "9007199254740993"],
    ['{"9007199254740993":"a\\\"9007199254740993\\\\","n":[{"m":9007199254740993},1]}', { "9007199254740993": 'a"9007199254740993\\', n: [{ m: 9007199254740993n }, 1] }],
    ['{"__proto__":9007199254740993}', JSON.parse('{"__proto__":1}', (k, v) => (k ? 9007199254740993n : v))],
  ]) {
    assert.deepStrictEqual(parse(text), want, text);
  }
});

test("what is no JSON is refused, as without large integers", () => {
  for (const text of ["9007199254740993 1", "[09007199254740993]", "{9007199254740993:1}", '{"a":-9007199254740993-}', '"9007199254740993', "[90071992547409931,]"]) {
    assert.throws(() => parse(text), SyntaxError, text);
  }
});

test("bigints are written as the integers that they are", () => {
  for (const [value, want] of [
    [9007199254740993n, "9007199254740993"],
    [{ a: 7n, b: [-9007199254740993n, 1.5, undefined], c: "7n", d: undefined }, '{"a":7,"b":[-9007199254740993,1.5,null],"c":"7n"}'],
    [{ d: new Date(0), n: 1n }, '{"d":"1970-01-01T00:00:00.000Z","n":1}'],
  ]) {
    assert.equal(stringify(value), want);
    BigInt.prototype.toJSON = function () { return this.toString(); };
    assert.equal(stringify(value), want, "with a toJSON of the program");
    delete BigInt.prototype.toJSON;
  }
  const circle = { n: 1n };
  circle.circle = circle;
  assert.throws(() => stringify(circle), TypeError);
});

test("a long text is read in time", () => {
  const long = "x".repeat(4 << 20);
  assert.equal(parse(`["${long}",${"1234567890123456789,".repeat(1e5)}1]`).length, 1e5 + 2);
});
