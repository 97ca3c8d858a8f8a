// Asks whether a tool may be called, and waits for the decision for a minute at most.
import { connect } from "../client.js";

const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
const permission = await client.approve({ tool: "shell", input: { command: "git push" } });
try {
  const { allowed, reason } = await permission.decision({ signal: AbortSignal.timeout(60_000) });
  console.log(allowed ? "allowed" : `not allowed ${reason}`);
} catch (e) {
  if (e.name !== "TimeoutError") throw e;
  console.log("nobody has decided"); // the question stays
}
