// Gives an agent something to work on, and prints what it puts out and what it came to. It is told which agent, and what.
import { connect, ParleyError } from "../client.js";

const [, , name, text] = process.argv;
const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
try {
  const { id, title, labels } = await client.agent(name); // by ID, the beginning of one, name or title
  console.log("to", title, labels);
  const { agentId, queued } = await client.prompt(id, text);
  console.log(queued ? "it has to wait" : "it runs");
  const { status, final } = await client.waitForAgent(agentId, { signal: AbortSignal.timeout(60_000) });
  for await (const piece of client.output(agentId)) process.stdout.write(piece.text);
  console.log("it is", status, final.error ?? "");
  for (const { tool, input } of final.pendingPermissions) console.log("it asks for", tool, input);
} catch (e) {
  if (!(e instanceof ParleyError)) throw e;
  console.log(e.code, e.message); // AGENT_NOT_FOUND, AMBIGUOUS, AGENT_ARCHIVED, …
}
