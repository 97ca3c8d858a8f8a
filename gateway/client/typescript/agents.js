import { ParleyError } from "./error.js";
import { rest } from "./wire.js";

/** @typedef {import("./wire.js").Wire} Wire */

/**
 * An agent as it is now.
 *
 * @typedef {object} Agent
 * @property {string} id
 * @property {string} title
 * @property {string} [name] the client's agent's name for it
 * @property {"initializing" | "idle" | "running" | "error" | "closed"} status
 * @property {Record<string, string>} labels
 * @property {unknown[]} pendingPermissions
 * @property {string} createdAt
 * @property {string} updatedAt
 * @property {string} node
 */

/** @typedef {{labels?: Record<string, string>, statuses?: string[]}} AgentFilter */

/**
 * @param {Wire} wire
 * @param {{labels?: Record<string, string>, agentId?: string, signal?: AbortSignal}} of
 * @returns {AsyncGenerator<{kind: "upsert" | "remove", agent: Agent}, void, void>}
 */
export async function* followAgents(wire, { signal, ...filter }) {
  /** @type {Map<string, Agent>} */
  const told = new Map();
  for (;;) {
    const talk = new Talk(wire, { type: "subscribe_agent_updates", requestId: "agents", subscriptionId: "agents", filter }, signal);
    try {
      if (told.size > 0) yield* gone(wire, told, filter.labels, signal);
      for await (const { kind, agent } of talk.updates()) {
        const was = told.get(agent.id);
        if (kind === "remove") {
          if (told.delete(agent.id)) yield { kind, agent };
        } else if (JSON.stringify(was) !== JSON.stringify(agent)) {
          told.set(agent.id, agent);
          yield { kind, agent };
        }
      }
    } finally {
      talk.close();
    }
    await rest(500, signal); // the node went away: a subscription begins again with what there is
  }
}

/**
 * Tells of agents that went while nobody listened.
 *
 * @param {Wire} wire
 * @param {Map<string, Agent>} told
 * @param {Record<string, string> | undefined} labels
 * @param {AbortSignal} [signal]
 * @returns {AsyncGenerator<{kind: "remove", agent: Agent}, void, void>}
 */
async function* gone(wire, told, labels, signal) {
  /** @type {{agents: Agent[]}} */
  const { agents } = await wire.call("fetch_agents", { filter: labels ? { labels } : {} }, signal);
  const there = new Set(agents.map((a) => a.id));
  for (const [id, agent] of told) {
    if (there.has(id)) continue;
    told.delete(id);
    yield { kind: "remove", agent };
  }
}

/** One WebSocket with one subscription. What comes waits until it is read. */
class Talk {
  /** @type {any[]} */
  #frames = [];
  #ended = false;
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
    this.#socket.onopen = () => this.#socket.send(JSON.stringify(opening));
    this.#socket.onmessage = (/** @type {{data: unknown}} */ { data }) => {
      this.#frames.push(JSON.parse(String(data)));
      this.#wake?.();
    };
    this.#socket.onclose = this.#socket.onerror = () => {
      this.#ended = true;
      this.#wake?.();
    };
    signal?.addEventListener("abort", this.#end, { once: true });
  }

  #end = () => this.#wake?.();

  /** @returns {AsyncGenerator<{kind: "upsert" | "remove", agent: Agent}, void, void>} */
  async *updates() {
    for (;;) {
      for (let frame; (frame = this.#frames.shift()) !== undefined; ) {
        if (frame.type === "error") throw new ParleyError(frame.code, frame.message, frame);
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
