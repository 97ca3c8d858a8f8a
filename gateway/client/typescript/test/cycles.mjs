// Asks as one agent and answers as another, over one connection, and prints each cycle that has ended. It is told how many, how many at
// once, and the token of the agent that is asked.
import { connect, ParleyError } from "../client.js";

const [, , cycles, callers, token] = process.argv;
const fae = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
const host = await fae.signIn({ token });
const done = new AbortController();

async function answer(form, n) {
  for (;;) {
    try {
      return await host.answer(form, { n });
    } catch (e) {
      if (!(e instanceof ParleyError)) throw e;
      if (e.code === "ALREADY_ANSWERED") return;
      if (e.code !== "NOT_RUNNING") throw e; // whether it was answered is not known
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function answers() {
  try {
    for await (const { message } of host.follow({ view: { pending: true }, signal: done.signal })) {
      if (message.answerNeeded) void answer(message.messageId, Number(message.description));
    }
  } catch (e) {
    if (!done.signal.aborted) throw e;
  }
}

let next = 0;
async function asks() {
  for (let i; (i = next++) < Number(cycles); ) {
    const asked = await fae.ask({ recipient: "HOST", description: String(i), fields: [{ name: "n", type: "number", required: true }] });
    const { n } = await asked.answer();
    if (n !== i) throw new Error(`${i} was answered ${n}`);
    console.log("cycle", i);
  }
}

const answering = answers();
const began = performance.now(), used = process.cpuUsage();
await Promise.all(Array.from({ length: Number(callers) }, asks));
const took = performance.now() - began, { user, system } = process.cpuUsage(used);
done.abort();
await answering;
console.error(`${Math.round((1000 * Number(cycles)) / took)} cycles a second, ${((user + system) / 1000 / Number(cycles)).toFixed(2)} ms of processor each`);
