// Shares one stream of the node's events among pages. Each page has its own cursor, and gets each later event exactly
// once, however often the stream is reopened.

import { home } from './rpc.js';

const [soonest, latest] = [250, 5000]; // between two attempts
const silence = 40_000; // the node sends a sign of life every 15 s
const settle = 20; // pages that join together share one request
const absence = 60_000; // until a refused mailbox is requested again
const mostFeeds = 100;
const mostOutputs = 20;
const longest = 12_000; // characters of an address

/** The state while the connection is lost and tried again. */
export const lost = 'Reconnecting…';

const said = {
  UNAUTHENTICATED: 'Signed out: run parley open',
  NOT_PERMITTED: 'This browser is signed in as another agent now',
};

/**
 * Hub is the stream of one reader.
 *
 * A page is {as, cursor, wantsAgents, output, tell}: the agent whose mail it follows, the cursor ('' follows none), whether
 * it wants events about agents, the agent whose output it follows (undefined follows none), and a function that receives an
 * event's name and data.
 */
export class Hub {
  constructor(reader) {
    Object.assign(this, { reader, pages: new Set(), lanes: [], outputs: new Set(), state: '', questions: undefined, runs: false });
  }

  join(page) {
    this.pages.add(page);
    page.tell('state', this.state);
    if (this.questions) page.tell('questions', this.questions);
    if (!this.runs) {
      this.run();
      return;
    }
    const lane = this.lanes.find((l) => l.as === page.as && l.cursor === page.cursor && !l.gone);
    if (lane) lane.pages.add(page);
    if ((page.cursor !== '' && !lane) || (page.wantsAgents && !this.wantsAgents) || (page.output !== undefined && !this.outputs.has(page.output))) this.reopen();
  }

  leave(page) {
    this.pages.delete(page);
    for (const lane of this.lanes) lane.pages.delete(page);
    if (this.pages.size === 0) this.request?.abort();
  }

  /** Reopens the stream for the feeds that the pages follow now. */
  reopen(after = settle) {
    const { request } = this;
    setTimeout(() => request?.abort('anew'), after);
  }

  async run() {
    this.runs = true;
    let pause = soonest;
    while (this.pages.size > 0) {
      let why;
      try {
        await this.read(() => { pause = soonest; });
      } catch (e) {
        why = e;
      }
      this.lanes = [];
      if (why === 'anew' || this.pages.size === 0) continue;
      this.say(said[why?.code] ?? lost);
      await new Promise((resolve) => { setTimeout(resolve, pause * (0.5 + Math.random() / 2)); });
      pause = Math.min(pause * 2, latest);
    }
    this.runs = false;
  }

  say(state) {
    if (this.state === state) return;
    this.state = state;
    this.tell(this.pages, 'state', state);
  }

  tell(pages, name, what) { for (const page of pages) page.tell(name, what); }

  /** Reads one response to its end. */
  async read(opened) {
    this.request = new AbortController();
    const { signal } = this.request;
    let watch;
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(() => this.request.abort('silent'), silence);
    };
    alive();
    try {
      const response = await fetch(home + '/events?' + this.query(), { headers: { Accept: 'text/event-stream' }, signal, cache: 'no-store' });
      if (!response.ok) throw (await response.json()).error;
      opened();
      this.say('');
      for await (const [name, what] of events(response.body, alive)) this.receive(name, what);
    } finally {
      clearTimeout(watch);
    }
  }

  /** Returns the query for the feeds of all pages. Pages with the same agent and cursor share a lane. */
  query() {
    const query = new URLSearchParams({ reader: this.reader });
    this.wantsAgents = [...this.pages].some((p) => p.wantsAgents);
    if (this.wantsAgents) query.set('agents', '');
    this.lanes = [];
    this.outputs = new Set([...this.pages].map((p) => p.output).filter((name) => name !== undefined).slice(0, mostOutputs));
    for (const name of this.outputs) query.append('output', name);
    for (const page of this.pages) {
      if (page.cursor === '') continue;
      let lane = this.lanes.find((l) => l.as === page.as && l.cursor === page.cursor);
      if (!lane) {
        const feed = `${page.cursor}:${page.as}`;
        if (this.lanes.length === mostFeeds || query.toString().length + encodeURIComponent(feed).length > longest) {
          page.tell('state', 'Too many agents are open here: reload to see what is new');
          continue;
        }
        query.append('feed', feed);
        lane = { as: page.as, cursor: page.cursor, pages: new Set() };
        this.lanes.push(lane);
      }
      lane.pages.add(page);
    }
    return query;
  }

  receive(name, what) {
    switch (name) {
      case 'messages': return this.advance(this.lanes[what.feed], what);
      case 'gone': return this.interrupt(this.lanes[what.feed], what);
      case 'questions': this.questions = what; // falls through
      default: this.tell(this.pages, name, what);
    }
  }

  advance(lane, what) {
    lane.cursor = String(what.cursor);
    for (const page of lane.pages) {
      page.cursor = lane.cursor;
      page.tell('messages', what);
    }
    const other = this.lanes.find((l) => l !== lane && l.as === lane.as && l.cursor === lane.cursor && !l.gone);
    if (!other) return;
    for (const page of lane.pages) other.pages.add(page); // both are at the same cursor
    lane.pages.clear();
    lane.gone = true;
  }

  interrupt(lane, what) {
    lane.gone = true;
    this.tell(lane.pages, 'state', what.message);
    this.reopen(absence); // the mailbox may be readable again
  }
}

/** Yields the server-sent events of a body as pairs of name and data. */
async function* events(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block);
      const data = /^data: (.*)$/m.exec(block);
      if (name && data) yield [name[1], JSON.parse(data[1])];
    }
  }
}
