import assert from "node:assert/strict";
import { test } from "node:test";
import { readFrames, writeFrame } from "../frame.js";
import { Malformed, Reader, Writer, maxDepth } from "../msgpack.js";

/** @param {string} hex */
const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
const hex = (/** @type {Uint8Array} */ b) => Buffer.from(b).toString("hex");

const values = [
  ["c0", null],
  ["c2", false],
  ["c3", true],
  ["00", 0],
  ["7f", 127],
  ["cc80", 128],
  ["cd0100", 256],
  ["ce00010000", 65536],
  ["cf0000000100000000", 2 ** 32],
  ["cf001fffffffffffff", 2 ** 53 - 1],
  ["cf0020000000000001", 2n ** 53n + 1n],
  ["cfffffffffffffffff", 2n ** 64n - 1n],
  ["ff", -1],
  ["e0", -32],
  ["d0df", -33],
  ["d1ff00", -256],
  ["d2ffff0000", -65536],
  ["d3ffffffff00000000", -(2 ** 32)],
  ["d38000000000000000", -(2n ** 63n)],
  ["ca3fc00000", 1.5],
  ["cb3ff8000000000000", 1.5],
  ["a0", ""],
  ["a2c3bc", "ü"],
  ["a4f09f9982", "🙂"],
  ["d90161", "a"],
  ["da000161", "a"],
  ["db0000000161", "a"],
  ["90", []],
  ["920102", [1, 2]],
  ["dc000101", [1]],
  ["dd0000000101", [1]],
  ["80", {}],
  ["82a16101a16290", { a: 1, b: [] }],
  ["de0001a16101", { a: 1 }],
  ["df00000001a16101", { a: 1 }],
  ["d40131", 1],
  ["d5015b5d", []],
  ["c707017b2261223a317d", { a: 1 }],
  ["c80002015b5d", []],
  ["c900000002015b5d", []],
  ["81a161d40131", { a: 1 }],
].map(([from, want]) => ({ from: bytes(String(from)), want }));

test("values are read", () => {
  for (const { from, want } of values) {
    const r = new Reader(from);
    assert.deepEqual(r.value(), want, hex(from));
    assert.ok(r.isEmpty, hex(from));
    assert.equal(hex(new Reader(from).raw()), hex(from));
  }
});

test("a value that ends early is refused", () => {
  for (const { from } of values) {
    for (let n = 0; n < from.length; n++) assert.throws(() => new Reader(from.subarray(0, n)).value(), Malformed, hex(from.subarray(0, n)));
    for (let n = 0; n < from.length; n++) assert.throws(() => new Reader(from.subarray(0, n)).raw(), Malformed, hex(from.subarray(0, n)));
  }
});

test("what is no value is refused, and no length is believed", () => {
  for (const from of [
    "", "c1", "c40101", "ca7fc00000", "cb7ff0000000000000", "8101", "810101", "8180c0", "8190c0", "ddffffffff", "dfffffffff", "dbffffffff61", "c9ffffffff01",
    "a1ff", "a3eda080", "d40278", "d4017b", "d901",
  ]) {
    assert.throws(() => new Reader(bytes(from)).value(), Malformed, from);
  }
});

test("a value nests no deeper than the bound", () => {
  const nested = (/** @type {number} */ depth) => Uint8Array.from([...Array(depth - 1).fill(0x91), 0xc0]);
  new Reader(nested(maxDepth)).value();
  assert.throws(() => new Reader(nested(maxDepth + 1)).value(), Malformed);
  assert.throws(() => new Reader(nested(maxDepth + 1)).raw(), Malformed);
  assert.throws(() => new Reader(nested(1 << 20)).raw(), Malformed);
});

test("a member's name is nothing but a name", () => {
  const v = /** @type {any} */ (new Reader(bytes("81a95f5f70726f746f5f5f81a16101")).value());
  assert.deepEqual(Object.keys(v), ["__proto__"]);
  assert.equal(v.a, undefined);
});

test("what is written is read", () => {
  const w = new Writer();
  const texts = ["", "a", "ü🙂", "x".repeat(1000), "ü".repeat(100_000)];
  const numbers = [0, 127, 128, 65535, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER];
  for (let i = 0; i < 2; i++) { // what was taken stays as it was
    for (const n of numbers) w.uint(n);
    for (const text of texts) w.text(text);
    for (const text of texts) w.json(JSON.stringify({ text }));
    w.array(2);
    const taken = w.take();
    assert.equal(w.length, 0);
    w.uint(1);
    w.take();
    const r = new Reader(taken);
    for (const n of numbers) assert.equal(r.uint(), n);
    for (const text of texts) assert.equal(r.value(), text);
    for (const text of texts) assert.deepEqual(r.value(), { text });
    assert.throws(() => r.array(), Malformed); // its elements are not there
  }
});

test("frames have the layout that the node reads", () => {
  const w = new Writer();
  writeFrame(w, 5, 7, { agent: 1, body: "{}", credit: 300 });
  assert.equal(hex(w.take()), "95" + "05" + "07" + "01" + "c900000002017b7d" + "ce0000012c");
  writeFrame(w, 1, 7);
  assert.equal(hex(w.take()), "920107");
});

test("frames are read one behind the other, until one is malformed", () => {
  /** @type {unknown[]} */
  const received = [];
  const receive = (/** @type {string} */ from) => readFrames(bytes(from), (kind, id, body) => received.push([kind, id, new Reader(body).value()]));
  receive("930007a161" + "930108d4017b".replace("7b", "31"));
  assert.deepEqual(received, [[0, 7, "a"], [1, 8, 1]]);
  for (const bad of ["c0", "920007", "940007c0c0", "930507c0", "93ff07c0", "9300ffc0", "930007", "930007c1", "9300a161c0"]) assert.throws(() => receive(bad), Malformed, bad);
  assert.equal(received.length, 2);
  assert.throws(() => receive("930009c0" + "93"), Malformed);
  assert.equal(received.length, 3);
});

test("no message of any bytes does anything but throw Malformed", () => {
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 0x7fffffff);
  for (let i = 0; i < 10_000; i++) {
    const message = Uint8Array.from({ length: random() % 24 }, () => random());
    if (message.length > 2 && i % 2) message.set([0x93, random() % 5, random() % 128]);
    try {
      readFrames(message, (_, __, body) => new Reader(body).value());
    } catch (e) {
      assert.ok(e instanceof Malformed, String(e));
    }
  }
});
