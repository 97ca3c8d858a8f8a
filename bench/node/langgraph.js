// A graph that asks a question by an interrupt, behind HTTP. Arguments: the port and the file of the checkpoints.
import { createServer } from 'node:http';
import { Annotation, Command, END, interrupt, START, StateGraph } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';

const [port, file] = process.argv.slice(2);
const saver = SqliteSaver.fromConnString(file);
saver.db.pragma('journal_mode = WAL');
saver.db.pragma('synchronous = FULL');

const state = Annotation.Root({ question: Annotation(), answer: Annotation() });
const graph = new StateGraph(state)
  .addNode('ask', ({ question }) => ({ answer: interrupt(question) }))
  .addEdge(START, 'ask').addEdge('ask', END)
  .compile({ checkpointer: saver });

const server = createServer(async (request, response) => {
  let text = '';
  for await (const part of request) text += part;
  const [, what, thread] = request.url.split('/');
  try {
    const config = { configurable: { thread_id: thread }, durability: 'sync' };
    const input = JSON.parse(text || 'null');
    const result = what === 'ask' ? await graph.invoke({ question: input }, config) : await graph.invoke(new Command({ resume: input }), config);
    response.end(JSON.stringify(result));
  } catch (e) {
    response.statusCode = 500;
    response.end(String(e));
  }
});
server.keepAliveTimeout = 0; // callers keep their connections between turns
server.listen(Number(port), '127.0.0.1');
