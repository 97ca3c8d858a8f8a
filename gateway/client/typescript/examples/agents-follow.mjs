// Prints agents as they are and as they become, until one is called "end". It needs a WebSocket: Node 22, or --experimental-websocket before.
import { connect } from "../client.js";

const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
for await (const { kind, agent } of client.followAgents({ labels: { ui: "true" } })) {
  console.log(kind, agent.name, agent.status);
  if (agent.name === "end") break;
}
