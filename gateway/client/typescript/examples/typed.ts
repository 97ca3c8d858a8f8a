// What the types promise. It is checked, and not run.
import { connect, ParleyError, type Message, type Outcome } from "../client.js";

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
  // @ts-expect-error: there is no such operation
  await client.call("fly", {});
  // @ts-expect-error: a form has a description
  await client.ask({ recipient: "HOST", fields: [] });
  // @ts-expect-error: a field has a name
  await client.ask({ recipient: "HOST", description: "?", fields: [{ label: "Port" }] });
  // @ts-expect-error: a reason is text
  await client.decline(0, 5);
}
