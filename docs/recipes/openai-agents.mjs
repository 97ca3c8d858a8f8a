// An agent of the OpenAI Agents SDK whose tool runs when it is allowed in Parley.
// Give PARLEY_URL and PARLEY_TOKEN. Argument: the session, whose calls are asked about once however often this is run.
import { Agent, Runner, tool } from "@openai/agents";
import { connect } from "@parley/client";
import { z } from "zod";

const session = process.argv[2] ?? "session-7";

/** Stands in for your model: it calls the tool, and repeats its result. */
const model = {
  async getResponse({ input }) {
    const last = Array.isArray(input) ? input.at(-1) : undefined;
    const said = last?.type === "function_call_result" ? (last.output.text ?? String(last.output)) : undefined;
    const output = said !== undefined
      ? { type: "message", id: "m1", role: "assistant", status: "completed", content: [{ type: "output_text", text: said }] }
      : { type: "function_call", id: "f1", callId: "call-1", name: "deploy", status: "completed", arguments: '{"version":"7.0"}' };
    return { usage: { requests: 1, inputTokens: 0, outputTokens: 0, totalTokens: 0 }, output: [output] };
  },
  async *getStreamedResponse() {
    throw new Error("not streamed");
  },
};

const deploy = tool({
  name: "deploy",
  description: "Deploys a version.",
  parameters: z.object({ version: z.string() }),
  needsApproval: true,
  execute: ({ version }) => `${version} is deployed`,
});
const agent = new Agent({ name: "deployer", model, tools: [deploy] });

/** Runs an agent to its end. Each call that needs approval is asked about in Parley; several at once are asked at once. */
async function runWithApprovals(runner, agent, input, client) {
  let result = await runner.run(agent, input);
  while (result.interruptions.length > 0) {
    const decisions = result.interruptions.map(async (call) => {
      const { name, arguments: json, callId } = call.rawItem;
      const permission = await client.approve({ tool: name, input: JSON.parse(json), key: `${session}/${callId}` });
      return { call, ...(await permission.decision()) };
    });
    for (const { call, allowed, reason } of await Promise.all(decisions)) {
      if (allowed) result.state.approve(call);
      else result.state.reject(call, { message: `not allowed: ${reason}` });
    }
    result = await runner.run(agent, result.state); // result.state.toString() keeps it on disk
  }
  return result.finalOutput;
}

const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
console.log(await runWithApprovals(new Runner({ tracingDisabled: true }), agent, "Deploy 7.0.", client));
