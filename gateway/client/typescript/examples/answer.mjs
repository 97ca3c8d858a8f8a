// Answers the first form that waits: first wrongly, to see what is said of each field.
import { connect, ParleyError } from "../client.js";

const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
for await (const { message } of client.follow({ view: { pending: true } })) {
  console.log(message.fromName, "asks:", message.description);
  try {
    await client.answer(message, { port: "http", host: "x" });
  } catch (e) {
    if (!(e instanceof ParleyError)) throw e;
    console.log(e.code, e.fields);
  }
  const outcome = await client.answer(message, { port: 443, public: true });
  console.log(outcome.status, outcome.values);
  break;
}
