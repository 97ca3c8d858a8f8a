// Requests a capability, asks for approval, and prints both outcomes.
import { connect } from "../client.js";

const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
const [request, approval] = await Promise.all([
  client.request({ recipient: "HOST", text: "a key" }),
  client.approve({ tool: "shell", input: { command: "ls" } }),
]);
console.log("asked");
const { status, note } = await request.await();
console.log(status, note);
console.log((await approval.decision()).allowed);
