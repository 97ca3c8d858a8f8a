// Prints the texts of messages as they come, until one is "end". Behind the second it takes no more until a file is there.
import { existsSync } from "node:fs";
import { connect } from "../client.js";

const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
let printed = 0;
for await (const { message } of client.follow()) {
  console.log(message.text);
  if (message.text === "end") break;
  printed++;
  while (printed === 2 && !existsSync(process.argv[2])) await new Promise((resolve) => setTimeout(resolve, 20));
}
