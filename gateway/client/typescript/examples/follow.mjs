// Prints messages with their cursors, from the cursor that is given on, until one says "end".
import { connect } from "../client.js";

const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
for await (const { message, cursor } of client.follow({ cursor: process.argv[2] })) {
  console.log(cursor, message.text);
  if (message.text === "end") break;
}
