import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Connection } from "../connection.js";
import { ParleyError } from "../error.js";
import { window } from "../link.js";
import { Client, connect } from "../client.js";
import { Wire } from "../wire.js";
import { answers, pause, sockets } from "./fake.mjs";

const url = "http://node";
const outcome = { status: "answered", form: "F", values: { a: 1 } };
const form = { recipient: "HOST", description: "D", fields: [] };
const refused = (/** @type {string} */ code) => (/** @type {unknown} */ e) => e instanceof ParleyError && e.code === code;

/** Answers what any test calls. */
const isThere = answers((operation) => ({ form: "F", number: 1, messages: [], cursor: 1, operation, status: "answered", via: "HTTP" }));

test("the outcome of an ask comes on its own number", async () => {
  const Socket = sockets((socket, { kind, id, agent, body }) => {
    assert.equal(kind, 4);
    assert.equal(agent, 0);
    assert.ok(body.key);
    socket.deliver(2, id, { form: "F", number: 7 });
    setImmediate(() => socket.deliver(0, id, outcome));
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  const asked = await client.ask(form);
  assert.equal(asked.number, 7);
  assert.deepEqual(await asked.answer(), { a: 1 });
  assert.deepEqual(await asked.answer(), { a: 1 });
  assert.equal(Socket.all.length, 1);
  assert.deepEqual(Socket.all[0]?.protocols, ["parley.mux", "parley.bearer.T"]);
  assert.equal(Socket.all[0]?.url, "ws://node/ws");
});

test("an ask is asked again with its key, and its outcome is awaited elsewhere, when the connection is lost", async () => {
  /** @type {string[]} */
  const keys = [];
  let awaits = 0;
  const Socket = sockets((socket, { kind, id, operation, body }) => {
    if (kind === 4) {
      keys.push(body.key);
      if (keys.length === 1) return socket.break();
      socket.deliver(2, id, { form: "F", number: 1 });
      return setTimeout(() => socket.break(), 20);
    }
    assert.equal(operation, "await");
    socket.deliver(0, id, ++awaits === 1 ? { status: "open" } : outcome);
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  assert.deepEqual(await (await client.ask(form)).answer(), { a: 1 });
  assert.equal(keys.length, 2);
  assert.equal(keys[0], keys[1]);
  assert.equal(awaits, 2);
});

test("a form given as a message is settled in the revision that it shows", async () => {
  /** @type {unknown[]} */
  const sent = [];
  const Socket = sockets((socket, { id, operation, body }) => {
    sent.push([operation, body.id, body.number, body.revision]);
    setImmediate(() => socket.deliver(0, id, outcome));
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  const shown = /** @type {import("../client.js").Message} */ ({ messageId: "F", number: 1 });
  await client.answer({ ...shown, revision: 2 }, { a: 1 });
  await client.decline(shown, "no");
  await client.decline(1);
  assert.deepEqual(sent, [["respond_form", "F", undefined, 2], ["decline_form", "F", undefined, 1], ["decline_form", undefined, "1", undefined]]);
});

test("what has no key is not called again", async () => {
  let calls = 0;
  const Socket = sockets((socket, { kind, operation }) => {
    if (kind !== 0) return;
    assert.equal(operation, "decline_form");
    calls++;
    socket.break();
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  const asking = client.ask(form, { signal: AbortSignal.timeout(200) });
  await pause(20);
  await assert.rejects(client.decline(1), refused("NOT_RUNNING"));
  assert.equal(calls, 1);
  await assert.rejects(asking, { name: "TimeoutError" });
});

test("a call that loses every connection goes by HTTP", async () => {
  const Socket = sockets((socket) => {
    socket.deliver(0, 1 << 20, null); // a node is there
    socket.break();
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  assert.equal((await client.ask(form)).form, "F");
  assert.equal(Socket.all.length, 2);
});

test("several agents share a connection, and sign in once on each", async () => {
  /** @type {unknown[][]} */
  const received = [];
  const Socket = sockets((socket, { kind, id, agent, operation, body }) => {
    received.push([kind, kind === 2 ? body.token : agent]);
    if (kind === 2 && body.token === "bad") return socket.deliver(1, id, { code: "UNAUTHENTICATED", message: "no" });
    if (kind === 2 && body.token === "many") return socket.deliver(1, id, { code: "QUOTA_EXCEEDED", message: "no" });
    if (kind === 2) return socket.deliver(0, id, { agent: 5 });
    socket.deliver(0, id, { operation, via: "link" });
  });
  const a = await connect({ url, token: "A", fetch: isThere, WebSocket: Socket });
  const b = await a.signIn({ token: "B" });
  const names = () => Promise.all([a, b].map((c) => c.call("list_names", {})));
  await names();
  await names();
  assert.equal(received.filter(([kind]) => kind === 2).length, 1); // the other has opened it
  assert.deepEqual(new Set(received.filter(([kind]) => kind === 0).map(([, agent]) => agent)), new Set([0, 5]));
  await assert.rejects(a.signIn({ token: "bad" }), refused("UNAUTHENTICATED"));
  const c = await a.signIn({ token: "many" }); // there is no place for it on the connection
  assert.equal(/** @type {any} */ (await c.call("list_names", {})).via, "HTTP");
  const named = await a.signIn({ as: "bob" });
  await a.call("list_names", {});
  await named.call("list_names", {});
  assert.deepEqual(received.at(-1), received.at(-2)); // both have one token
  assert.equal(Socket.all.length, 1);
});

test("a call alone opens no connection, and one that comes with others does", async () => {
  const Socket = sockets((socket, { id }) => socket.deliver(0, id, { names: ["link"] }));
  const fetch = answers(() => ({ names: ["HTTP"] }));
  const client = await connect({ url, token: "T", fetch, WebSocket: Socket });
  await pause(150);
  assert.deepEqual(await client.names(), ["HTTP"]);
  await pause(150);
  assert.equal(Socket.all.length, 0);
  assert.deepEqual(await Promise.all([client.names(), client.names(), client.names()]), [["HTTP"], ["link"], ["link"]]);
  assert.equal(Socket.all.length, 1);
});

test("a connection ends when nobody waits, and what an ask had to come is awaited on another", async () => {
  const Socket = sockets((socket, { kind, id }) => {
    if (kind === 4) return socket.deliver(2, id, { form: "F", number: 1 });
    socket.deliver(0, id, outcome);
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  const asked = await client.ask(form);
  await pause(200);
  assert.equal(Socket.all[0]?.isClosed, true);
  assert.deepEqual(await asked.answer(), { a: 1 });
  assert.equal(Socket.all.length, 2);
});

test("an outcome that is awaited keeps its connection, until the signal", async () => {
  const Socket = sockets((socket, { kind, id }) => kind === 4 && socket.deliver(2, id, { form: "F", number: 1 }));
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  const asked = await client.ask(form);
  await assert.rejects(asked.answer({ signal: AbortSignal.timeout(300) }), { name: "TimeoutError" });
  assert.equal(Socket.all[0]?.isClosed, false);
  await pause(200);
  assert.equal(Socket.all[0]?.isClosed, true);
});

test("of many asks whose outcomes nobody waits for the oldest are given up", async () => {
  /** @type {number[]} */
  const given = [];
  const Socket = sockets((socket, { kind, id }) => {
    if (kind === 1) return given.push(id);
    if (kind === 4) return socket.deliver(2, id, { form: String(id), number: id });
    socket.deliver(0, id, { ...outcome, form: "awaited" });
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  const all = await Promise.all(Array.from({ length: 300 }, () => client.ask(form)));
  await pause(10);
  assert.equal(given.length, 300 - 256);
  const oldest = all.find((asked) => asked.number === given[0]);
  assert.equal((await oldest?.await())?.form, "awaited");
});

test("a call that is aborted is given up", async () => {
  /** @type {number[]} */
  const given = [];
  const Socket = sockets((socket, { kind, id }) => {
    if (kind === 1) given.push(id);
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  await assert.rejects(client.ask(form, { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  await assert.rejects(client.await("F", { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  await assert.rejects(client.ask(form, { signal: AbortSignal.abort(new Error("before")) }), /before/);
  await pause(10);
  assert.deepEqual(given, [1, 2]);
});

test("calls that share a signal add one listener to it, and take it away", async () => {
  /** @type {(() => void)[]} */
  const later = [];
  const Socket = sockets((socket, { kind, id }) => kind === 0 && later.push(() => socket.deliver(0, id, outcome)));
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  const { signal } = new AbortController();
  const waits = Array.from({ length: 20 }, () => client.await("F", { signal }));
  while (later.length < 20) await pause(1);
  assert.equal(getEventListeners(signal, "abort").length, 1);
  for (const deliver of later) deliver();
  await Promise.all(waits);
  assert.equal(getEventListeners(signal, "abort").length, 0);
  const abort = new AbortController();
  const aborted = Promise.allSettled(Array.from({ length: 20 }, () => client.await("F", { signal: abort.signal })));
  while (later.length < 40) await pause(1);
  abort.abort();
  assert.ok((await aborted).every((wait) => wait.status === "rejected" && wait.reason === abort.signal.reason));
});

/** @param {(socket: any, id: number, credit: number) => void} begin @param {(socket: any, credit: number) => void} [more] */
async function followed(begin, more = () => {}) {
  let follows = 0;
  const Socket = sockets((socket, { kind, id, credit = 0, operation }) => {
    if (kind === 5 && ++follows === 1) return begin(socket, id, credit);
    if (kind === 6) return more(socket, credit);
    if (operation === "list_messages") socket.deliver(0, id, { messages: [], cursor: 1, next: 0 });
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  return { Socket, follow: client.follow({ cursor: "1", signal: AbortSignal.timeout(500) }) };
}

const item = (/** @type {number} */ n) => ({ cursor: String(n), message: { number: n, changed: n } });

test("a follow allows more items only as they are taken", async () => {
  let allowed = 0, sent = 1;
  const deliver = (/** @type {any} */ socket, /** @type {number} */ id) => {
    for (; sent <= allowed; sent++) socket.deliver(3, id, item(sent + 1));
  };
  let id = 0;
  const { follow } = await followed(
    (socket, at, credit) => {
      id = at;
      allowed = credit;
      deliver(socket, id);
    },
    (socket, credit) => {
      allowed += credit;
      deliver(socket, id);
    },
  );
  for (let n = 2; n < 200; n++) {
    const { value } = await follow.next();
    assert.equal(value?.cursor, String(n));
    await pause(0);
    assert.ok(allowed <= n - 1 + window, `${allowed} are allowed when ${n - 1} are taken`);
  }
  await follow.return();
});

test("a node that sends more than it may is cut off", async () => {
  const { Socket, follow } = await followed((socket, id, credit) => {
    for (let n = 0; n <= credit; n++) socket.deliver(3, id, item(n + 2));
  });
  for (let n = 0; n < window; n++) assert.equal((await follow.next()).value?.cursor, String(n + 2));
  assert.equal(Socket.all[0]?.isClosed, true);
  await follow.return();
});

test("a frame that the node may not send ends the connection, and calls go by HTTP for a while", async () => {
  const ask = { kind: 2, body: { form: "F", number: 1 } };
  for (const [what, deliver] of Object.entries({
    "an item of a call": (/** @type {any} */ s, /** @type {number} */ id) => s.deliver(3, id, item(1)),
    "an ask that is accepted twice": (/** @type {any} */ s, /** @type {number} */ id) => (s.deliver(2, id, ask.body), s.deliver(2, id, ask.body)),
    "a refusal without a code": (/** @type {any} */ s, /** @type {number} */ id) => s.deliver(1, id, "no"),
    "a kind that there is not": (/** @type {any} */ s, /** @type {number} */ id) => s.deliver(5, id, {}),
    "a text": (/** @type {any} */ s) => s.onmessage({ data: "text" }),
    "no frame": (/** @type {any} */ s) => s.deliverBytes(Uint8Array.of(0xc1)),
    "a length that is not there": (/** @type {any} */ s, /** @type {number} */ id) => s.deliverBytes(Uint8Array.of(0x93, 0, id, 0xdd, 0xff, 0xff, 0xff, 0xff)),
    "what nests too deep": (/** @type {any} */ s, /** @type {number} */ id) => s.deliverBytes(Uint8Array.of(0x93, 0, id, ...Array(100_000).fill(0x91), 0)),
    "JSON that is none": (/** @type {any} */ s, /** @type {number} */ id) => s.deliverBytes(Uint8Array.of(0x93, 0, id, 0xd4, 1, 0x7b)),
    "a message that is too large": (/** @type {any} */ s) => s.onmessage({ data: { byteLength: 2 ** 30 } }),
  })) {
    const Socket = sockets((socket, { id }) => deliver(socket, id));
    const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
    const asked = await client.ask(form);
    assert.equal((await asked.await()).status, "answered", what); // by HTTP
    assert.equal(Socket.all.length, 1, what);
    assert.equal(Socket.all[0]?.isClosed, true, what);
  }
});

test("numbers that are not under way are passed over", async () => {
  const Socket = sockets((socket, { id }) => {
    for (const other of [0, id + 1, 2 ** 40]) for (let kind = 0; kind < 4; kind++) socket.deliver(kind, other, { code: "X" });
    socket.deliver(0, id, { form: "F", number: 1, outcome });
    socket.deliver(0, id, { form: "G" });
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  assert.deepEqual(await (await client.ask(form)).answer(), { a: 1 });
});

test("a node that goes begins nothing more, and is asked elsewhere", async () => {
  const Socket = sockets((socket, { kind, id }) => {
    if (socket === Socket.all[0]) {
      socket.deliver(2, id, { form: "F", number: 1 });
      socket.deliver(4, 0, { code: "NOT_RUNNING", message: "it stops" });
      return socket.deliver(1, id, { code: "NOT_RUNNING", message: "it stops" });
    }
    socket.deliver(0, id, kind === 4 ? { form: "G", number: 2 } : outcome);
  });
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: Socket });
  assert.deepEqual(await (await client.ask(form)).answer(), { a: 1 });
  assert.equal((await client.ask(form)).form, "G");
  assert.equal(Socket.all.length, 2);
});

test("where no connection gets through, calls go by HTTP, and one is tried again later", async () => {
  for (const open of [
    (/** @type {any} */ s) => s.onerror(),
    (/** @type {any} */ s) => s.onclose(),
    (/** @type {any} */ s) => s.opens("parley.bearer.T"), // an older node
    () => {}, // it hangs
  ]) {
    const Socket = sockets(() => assert.fail(), open);
    const wire = new Wire({ url, token: "T", fetch: isThere, WebSocket: Socket });
    wire.connection = new Connection(url, Socket, { dial: 20, plain: 200 });
    const client = new Client(wire);
    assert.equal((await client.ask(form)).form, "F");
    await Promise.all([client.ask(form), client.ask(form), client.names().catch(() => {})]);
    assert.equal(Socket.all.length, 1);
    await pause(220);
    await client.ask(form);
    assert.equal(Socket.all.length, 2);
  }
});

test("a page that may not open a WebSocket goes by HTTP, and so does a fetch of one's own", async () => {
  const client = await connect({ url, token: "T", fetch: isThere, WebSocket: function () { throw new SyntaxError("no"); } });
  assert.equal((await client.ask(form)).form, "F");
  const before = globalThis.WebSocket;
  const Socket = sockets(() => assert.fail());
  globalThis.WebSocket = /** @type {any} */ (Socket);
  try {
    assert.equal((await (await connect({ url, fetch: isThere })).ask(form)).form, "F");
  } finally {
    globalThis.WebSocket = before;
  }
  assert.equal(Socket.all.length, 0);
});

test("a node that is silent is asked whether it is there, and its connection given up", async () => {
  /** @type {(string | undefined)[]} */
  const received = [];
  const Socket = sockets((socket, { kind, id, operation }) => {
    if (socket !== Socket.all[0]) return socket.deliver(0, id, outcome);
    if (kind === 4) return socket.deliver(2, id, { form: "F", number: 1 });
    received.push(operation);
    if (received.length < 3) socket.deliver(1, id, { code: "NOT_PERMITTED", message: "an answer as any other" });
  });
  const wire = new Wire({ url, token: "T", fetch: isThere, WebSocket: Socket });
  wire.connection = new Connection(url, Socket, { beat: 20 });
  assert.deepEqual(await (await new Client(wire).ask(form)).answer(), { a: 1 });
  assert.deepEqual(received, ["locate", "locate", "locate"]);
  assert.equal(Socket.all[0]?.isClosed, true);
});

test("a request that is too large for a connection goes by HTTP, which refuses it", async () => {
  const Socket = sockets(() => assert.fail());
  const fetch = answers((operation) => (operation === "form" ? { error: { code: "TOO_LARGE", message: "no" } } : {}));
  const client = await connect({ url, token: "T", fetch, WebSocket: Socket });
  await assert.rejects(client.ask({ ...form, description: "ü".repeat(1 << 19) }), refused("TOO_LARGE"));
  assert.equal(Socket.all.length, 0);
});
