// A workflow that asks a question and waits for its answer. It serves Restate on the port of the first argument.
import * as restate from '@restatedev/restate-sdk';

// The SDK needs Node 22 for this alone.
Promise.withResolvers ??= function withResolvers() {
  const parts = {};
  parts.promise = new this((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};

const question = restate.workflow({
  name: 'question',
  handlers: {
    run: async (ctx, question) => ({ question, answer: await ctx.promise('answer') }),
    answer: async (ctx, answer) => { await ctx.promise('answer').resolve(answer); },
  },
});

restate.serve({ services: [question], port: Number(process.argv[2]) });
