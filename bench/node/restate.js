// A service that asks a question with an awakeable and waits for it. It serves Restate on the port of the first argument.
import * as restate from '@restatedev/restate-sdk';

// The SDK needs Node 22 for this alone.
Promise.withResolvers ??= function withResolvers() {
  const parts = {};
  parts.promise = new this((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};

const question = restate.service({
  name: 'question',
  handlers: {
    // ask tells the asker the ID of the awakeable, outside of the journal: a replay tells it again.
    ask: async (ctx, { question, tell }) => {
      const { id, promise } = ctx.awakeable();
      await fetch(tell + id);
      return { question, answer: await promise };
    },
  },
});

restate.serve({ services: [question], port: Number(process.argv[2]) });
