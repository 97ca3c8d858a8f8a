// Waits as one agent, and follows as another over its connection, until a message is "end". It is told the other's token.
import { connect } from "../client.js";

const fae = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
const asked = await fae.ask({ recipient: "HOST", description: "asked", fields: [{ name: "a" }] }); // it opens the connection
const waits = asked.await().catch((e) => console.log(e.code));
const host = await fae.signIn({ token: process.argv[2] });
for await (const { message } of host.follow()) {
  console.log(message.description ?? message.text);
  if (message.text === "end") break;
}
await waits;
