// What the types promise. It is checked, and not run.
import { connect, ParleyError, type Agent, type AgentUpdate, type Message, type Outcome, type OutputPiece } from "../client.js";

export async function typed(url: string, token: string, signal: AbortSignal): Promise<void> {
  const client = await connect({ url, token, signal });
  const asked = await client.ask({ recipient: "HOST", description: "Where?", fields: [{ name: "port", type: "number", required: true }] }, { signal });
  const { port }: { port: number } = await asked.answer({ signal });
  const outcome: Outcome = await client.await(asked.form ?? port);
  const status: string = outcome.status;
  for await (const { message, cursor } of client.follow({ view: { pending: true }, signal })) {
    const m: Message = message;
    const where: string = cursor;
    await client.answer(m.messageId, { status, where });
  }
  const names: string[] = (await client.call("list_names", {})).names;
  const { allowed }: { allowed: boolean } = await (await client.approve({ tool: "shell", input: { names } })).decision();
  try {
    await client.forward(0, allowed ? "bob" : "carol");
  } catch (e) {
    if (e instanceof ParleyError) {
      const code: string = e.code;
      const wrong: string | undefined = e.fields["port"];
      console.log(code, wrong, e.hint);
    }
  }
  const { agentId, queued }: { agentId: string; queued: boolean } = await client.prompt("builder", "go", { messageId: "1", signal });
  const { status: end, final } = await client.waitForAgent(agentId, { signal });
  const agent: Agent = end === "permission" && !queued ? final : await client.agent("builder");
  const tools: string[] = agent.pendingPermissions.map((p) => p.tool);
  for await (const piece of client.output(agent.id, { after: 7, follow: true })) {
    const said: OutputPiece = piece;
    console.log(said.cursor + 1, said.text.length, tools);
  }
  for await (const update of client.followAgents({ labels: agent.labels, signal })) {
    const u: AgentUpdate = update;
    if (u.kind === "remove" && u.agent.status === "closed") await client.setPolicy(u.agent.id, "deny");
  }
  // @ts-expect-error: there is no such policy
  await client.setPolicy(agentId, "sometimes");
  // @ts-expect-error: there is no such status
  await client.report("asleep");
  // @ts-expect-error: there is no such operation
  await client.call("fly", {});
  // @ts-expect-error: a form has a description
  await client.ask({ recipient: "HOST", fields: [] });
  // @ts-expect-error: a field has a name
  await client.ask({ recipient: "HOST", description: "?", fields: [{ label: "Port" }] });
  // @ts-expect-error: a reason is text
  await client.decline(0, 5);
}
