import { turnTime } from "./asked.js";
import { ParleyError } from "./error.js";
import { parse } from "./json.js";
import { rest } from "./wire.js";

/** @typedef {import("./wire.js").Wire} Wire */
/** @typedef {import("./link.js").AgentItem} AgentItem */
/** @typedef {import("./operations.js").Snapshot} Snapshot */
/** @typedef {import("./operations.js").OutputPiece} OutputPiece */
/** @typedef {Omit<Snapshot, "status"> & {status: "initializing" | "idle" | "running" | "error" | "closed"}} Agent an agent as it is now */
/** @typedef {import("./operations.js").Filter} AgentFilter labels: all of them; statuses: any of them, default: all but closed */
/** @typedef {{kind: "upsert" | "remove", agent: Agent}} AgentUpdate an agent as it has become, or one that is archived or not followed any more */

/**
 * @param {Wire} wire
 * @param {string} agentId
 * @param {{after?: number, follow?: boolean, signal?: AbortSignal | undefined}} how
 * @returns {AsyncGenerator<OutputPiece, void, void>}
 */
export async function* readOutput(wire, agentId, { after = 0, follow = false, signal }) {
  for (let at = after; ; ) {
    /** @type {import("./operations.js").ReadOutputResponse} */
    const { pieces, cursor } = await wire.call("read_output", { agentId, after: at, ...(follow && { waitMs: turnTime }) }, signal);
    yield* pieces;
    if (pieces.length === 0 && !follow) return;
    at = cursor;
  }
}

/** The number of WebSockets in a row that may fail to open. */
const maxUnopened = 5;

/**
 * @param {Wire} wire
 * @param {{labels?: Record<string, string>, agentId?: string, signal?: AbortSignal | undefined}} of
 * @returns {AsyncGenerator<AgentUpdate, void, void>}
 */
export async function* followAgents(wire, { signal, ...filter }) {
  const { as } = wire.options;
  const opening = { type: "subscribe_agent_updates", requestId: "agents", subscriptionId: "agents", mark: true, filter, ...(as !== undefined && { as }) };
  /** @type {Map<string, Agent>} */
  const known = new Map();
  for (let unopened = 0; ; ) {
    const items = await wire.followAgents(filter, signal);
    if (items !== undefined) {
      yield* news(items, known);
    } else { // the node, or something on the way to it, takes WebSockets of text only
      const feed = new Feed(wire, opening, signal);
      try {
        yield* news(feed.items(), known);
      } finally {
        feed.close();
      }
      unopened = feed.opened ? 0 : unopened + 1;
      if (unopened === maxUnopened) throw new ParleyError("NODE_UNREACHABLE", `${wire.base} answers, but not over a WebSocket`);
    }
    await rest(500, signal); // the node stopped: a new subscription begins with a listing
    await wire.look(signal);
  }
}

/**
 * Yields the changes over one connection, and the agents that were removed before it.
 *
 * @param {AsyncGenerator<AgentItem, void, void>} items
 * @param {Map<string, Agent>} known
 * @returns {AsyncGenerator<AgentUpdate, void, void>}
 */
async function* news(items, known) {
  /** IDs of the first listing, undefined after it @type {Set<string> | undefined} */
  let there = new Set();
  for await (const { kind, agent } of items) {
    if (kind === "told") {
      for (const [id, agent] of known) {
        if (there?.has(id)) continue;
        known.delete(id);
        yield { kind: "remove", agent };
      }
      there = undefined;
      continue;
    }
    there?.add(agent.id);
    if (kind === "remove") {
      if (known.delete(agent.id)) yield { kind, agent };
    } else if (JSON.stringify(known.get(agent.id)) !== JSON.stringify(agent)) {
      known.set(agent.id, agent);
      yield { kind, agent };
    }
  }
}

/** One WebSocket with one subscription. Frames wait until they are read. */
class Feed {
  /** @type {unknown[]} */
  #texts = [];
  #ended = false;
  opened = false;
  /** @type {(() => void) | undefined} */
  #wake;
  #socket;
  #signal;

  /**
   * @param {Wire} wire
   * @param {object} opening
   * @param {AbortSignal} [signal]
   */
  constructor(wire, opening, signal) {
    const WebSocket = wire.options.WebSocket ?? globalThis.WebSocket;
    if (WebSocket === undefined) {
      throw new ParleyError("INVALID_ARGUMENT", "agents are followed over a WebSocket, which this platform has not", { hint: "give one in the options" });
    }
    const { token } = wire.options;
    this.#socket = new WebSocket(wire.base.replace(/^http/, "ws") + "/ws", token === undefined ? [] : ["parley", `parley.bearer.${token}`]);
    this.#signal = signal;
    this.#socket.onopen = () => {
      this.opened = true;
      wire.saw();
      this.#socket.send(JSON.stringify(opening));
    };
    this.#socket.onmessage = (/** @type {{data: unknown}} */ { data }) => {
      this.#texts.push(data);
      this.#wake?.();
    };
    this.#socket.onclose = this.#socket.onerror = () => {
      this.#ended = true;
      this.#wake?.();
    };
    signal?.addEventListener("abort", this.#end, { once: true });
  }

  #end = () => this.#wake?.();

  /**
   * Yields items until the connection ends. It throws refusals.
   *
   * @returns {AsyncGenerator<AgentItem, void, void>}
   */
  async *items() {
    for (;;) {
      for (let text; (text = this.#texts.shift()) !== undefined; ) {
        const frame = parse(String(text));
        if (frame.type === "error" && frame.code === "NOT_RUNNING") return; // it is about to stop
        if (frame.type === "error") throw new ParleyError(frame.code, frame.message, frame);
        if (frame.type === "agents_told") yield { kind: "told" };
        if (frame.type === "agent_update") yield { kind: frame.kind, agent: frame.agent };
      }
      this.#signal?.throwIfAborted();
      if (this.#ended) return;
      await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
    }
  }

  close() {
    this.#signal?.removeEventListener("abort", this.#end);
    this.#socket.close();
  }
}
