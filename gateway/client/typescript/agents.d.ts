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
export function readOutput(wire: Wire, agentId: string, { after, follow, signal }: {
    after?: number;
    follow?: boolean;
    signal?: AbortSignal | undefined;
}): AsyncGenerator<OutputPiece, void, void>;
/**
 * @param {Wire} wire
 * @param {{labels?: Record<string, string>, agentId?: string, signal?: AbortSignal | undefined}} of
 * @returns {AsyncGenerator<AgentUpdate, void, void>}
 */
export function followAgents(wire: Wire, { signal, ...filter }: {
    labels?: Record<string, string>;
    agentId?: string;
    signal?: AbortSignal | undefined;
}): AsyncGenerator<AgentUpdate, void, void>;
export type Wire = import("./wire.js").Wire;
export type AgentItem = import("./link.js").AgentItem;
export type Snapshot = import("./operations.js").Snapshot;
export type OutputPiece = import("./operations.js").OutputPiece;
/**
 * an agent as it is now
 */
export type Agent = Omit<Snapshot, "status"> & {
    status: "initializing" | "idle" | "running" | "error" | "closed";
};
/**
 * labels: all of them; statuses: any of them, default: all but closed
 */
export type AgentFilter = import("./operations.js").Filter;
/**
 * an agent as it has become, or one that is archived or not followed any more
 */
export type AgentUpdate = {
    kind: "upsert" | "remove";
    agent: Agent;
};
