// A graph that stops at interrupt() until a form is answered in Parley.
// Give PARLEY_URL and PARLEY_TOKEN. Argument: the thread, whose form is asked once however often this is run.
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { Annotation, Command, END, INTERRUPT, MemorySaver, START, StateGraph, interrupt } from "@langchain/langgraph";
import { connect } from "@parley/client";

const thread = process.argv[2] ?? "release-7";
const model = new FakeListChatModel({ responses: ["Release 7 is ready."] }); // in place of your model

const State = Annotation.Root({ plan: Annotation(), port: Annotation(), result: Annotation() });
const graph = new StateGraph(State)
  .addNode("write", async () => ({ plan: (await model.invoke("Plan the release.")).content }))
  .addNode("ask", (state) => {
    const fields = [{ name: "port", type: "number", required: true }];
    return interrupt({ key: "port", description: `${state.plan} Where is it to listen?`, fields });
  })
  .addNode("run", (state) => ({ result: `listens on ${state.port}` }))
  .addEdge(START, "write").addEdge("write", "ask").addEdge("ask", "run").addEdge("run", END)
  .compile({ checkpointer: new MemorySaver() }); // one on disk keeps the graph where it stopped

/**
 * Runs a graph to its end. Each interrupt is a form; several at once are asked at once. The key of an interrupt is the question's own
 * within the thread: a node that asks again, in a loop, needs another. The id of an interrupt is lost with the checkpoints.
 */
async function runWithForms(graph, input, config, client, recipient) {
  for (;;) {
    const state = await graph.invoke(input, config);
    const stops = state[INTERRUPT] ?? [];
    if (stops.length === 0) return state;
    const answers = stops.map(async ({ id, value }) => {
      const asked = await client.ask({ recipient, ...value, key: `${config.configurable.thread_id}/${value.key}` });
      return [id, await asked.answer()]; // it throws DECLINED if the answer is no
    });
    input = new Command({ resume: Object.fromEntries(await Promise.all(answers)) });
  }
}

const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
const state = await runWithForms(graph, {}, { configurable: { thread_id: thread } }, client, "HOST");
console.log(state.result);
