// Asks the host for a port, and prints what it says. Give PARLEY_URL and PARLEY_TOKEN.
import { connect, ParleyError } from "../client.js";

const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
const asked = await client.ask({
  recipient: "HOST",
  description: "Where to listen?",
  fields: [
    { name: "port", type: "number", required: true },
    { name: "public", type: "checkbox" },
  ],
  deadline: new Date(Date.now() + 60_000).toISOString(),
});
console.error("asked", asked.form);
try {
  const { port, public: isPublic } = await asked.answer(); // now, or after a restart of the node
  console.log("the host says", port, isPublic);
} catch (e) {
  if (!(e instanceof ParleyError)) throw e;
  console.log("no answer:", e.code, e.message); // DECLINED, CANCELLED or EXPIRED
}
