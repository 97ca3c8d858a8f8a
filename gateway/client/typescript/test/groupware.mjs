// Sends a file as one agent and reads it as another, and uses teams, topics and what a reader sets. It is told the token of the host.
import { connect, ParleyError } from "../client.js";

const [, , token] = process.argv;
const fae = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
const host = await fae.signIn({ token });

const content = Uint8Array.from({ length: 250_001 }, (_, i) => i % 251);
const stored = await fae.storeFile("a.bin", content, { type: "application/octet-stream" });
await fae.call("send", { recipient: "HOST", text: "see", files: [stored, await fae.storeFile("empty", new Uint8Array(0))] });
for await (const { message } of host.follow()) {
  if (!message.files) continue;
  const [first, empty] = message.files;
  const got = await host.fetchFile(message.messageId, first);
  console.log("file", first.name, got.length, got.every((b, i) => b === content[i]), (await host.fetchFile(message.messageId, empty)).length);
  try {
    await host.fetchFile(message.messageId, { ...first, size: first.size - 1 });
  } catch (e) {
    console.log(e instanceof ParleyError && e.code);
  }
  break;
}

const [team] = await host.setTeam("shop", { add: ["fae"] });
console.log("team", team.team, team.members.length, (await fae.teams()).map((t) => t.team).join());
await host.endTeam("shop");
console.log("teams", (await fae.teams()).length);

await host.makeTopic("news");
console.log("topic", (await fae.subscribe("news", { everyMs: 60_000 })).everyMs);
await host.post("news", "The build is red", { subject: "Build", key: "k" });
await host.post("news", "The build is red", { subject: "Build", key: "k" });
let posts;
do ({ posts } = await fae.posts("news")); while (posts.length === 0);
console.log("posts", posts.map((p) => `${p.subject}: ${p.text}`).join(), (await fae.topics()).length, (await fae.unsubscribe("news")).subscribed ?? false);
await host.endTopic("news");

console.log("attention", (await fae.setAttention({ quiet: "always", allSessions: true })).isQuiet, (await fae.attention()).allSessions);
