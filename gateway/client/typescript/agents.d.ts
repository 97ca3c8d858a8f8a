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
export function followAgents(wire: Wire, { signal, ...filter }: {
    labels?: Record<string, string>;
    agentId?: string;
    signal?: AbortSignal;
}): AsyncGenerator<{
    kind: "upsert" | "remove";
    agent: Agent;
}, void, void>;
export type Wire = import("./wire.js").Wire;
/**
 * An agent as it is now.
 */
export type Agent = {
    id: string;
    title: string;
    /**
     * the client's agent's name for it
     */
    name?: string | undefined;
    status: "initializing" | "idle" | "running" | "error" | "closed";
    labels: Record<string, string>;
    pendingPermissions: unknown[];
    createdAt: string;
    updatedAt: string;
    node: string;
};
export type AgentFilter = {
    labels?: Record<string, string>;
    statuses?: string[];
};
