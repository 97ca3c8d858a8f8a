// A tool of the AI SDK that runs when it is allowed in Parley.
// Give PARLEY_URL and PARLEY_TOKEN. Argument: the session, whose calls are asked about once however often this is run.
import { generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { connect } from "@parley/client";
import { z } from "zod";

const session = process.argv[2] ?? "session-7";

/** Stands in for your model: it calls the tool, and repeats its result. */
const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const last = prompt.at(-1);
    const done = last.role === "tool" && last.content.find((part) => part.type === "tool-result");
    const content = done
      ? { type: "text", text: String(done.output.value ?? done.output.reason) }
      : { type: "tool-call", toolCallId: "call-1", toolName: "deploy", input: '{"version":"7.0"}' };
    const none = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0, text: 0, reasoning: 0 };
    const unified = done ? "stop" : "tool-calls";
    return { content: [content], finishReason: { unified, raw: unified }, usage: { inputTokens: none, outputTokens: none }, warnings: [] };
  },
});

const deploy = tool({
  description: "Deploys a version.",
  inputSchema: z.object({ version: z.string() }),
  needsApproval: true,
  execute: async ({ version }) => `${version} is deployed`,
});

/** Generates a text. Each call that needs approval is asked about in Parley; several at once are asked at once. */
async function generateWithApprovals(options, messages, client) {
  for (;;) {
    const { text, content, response } = await generateText({ ...options, messages });
    const requests = content.filter((part) => part.type === "tool-approval-request");
    if (requests.length === 0) return text;
    const decisions = requests.map(async ({ approvalId, toolCall }) => {
      const key = `${session}/${toolCall.toolCallId}`;
      const permission = await client.approve({ tool: toolCall.toolName, input: toolCall.input, key });
      const { allowed, reason } = await permission.decision();
      return { type: "tool-approval-response", approvalId, approved: allowed, reason: `not allowed: ${reason}` };
    });
    messages = [...messages, ...response.messages, { role: "tool", content: await Promise.all(decisions) }];
  }
}

const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
const options = { model, tools: { deploy }, stopWhen: stepCountIs(5) };
console.log(await generateWithApprovals(options, [{ role: "user", content: "Deploy 7.0." }], client));
