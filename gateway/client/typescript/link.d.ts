/**
 * Waits for a promise until the signal.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export function until<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T>;
/** @typedef {{cursor: string, message: import("./operations.js").Envelope}} Item a message of a follow */
/** @typedef {{kind: "upsert" | "remove" | "told", agent?: any}} AgentItem an agent of a follow; told comes after the agents that there are at first */
/** @typedef {"ended" | "unheard" | "malformed"} End how a link ended; unheard: it was lost before the node had sent a frame */
/** The number of items of a follow that a node may send before the first is taken. */
export const window: 32;
/**
 * One WebSocket with calls, waits and follows of several agents. It closes itself when nobody has waited for a moment: Node does not end
 * a program with an open WebSocket.
 */
export class Link {
    /**
     * Takes a WebSocket that is open.
     *
     * @param {any} socket
     * @param {string | undefined} token of agent 0, which opened it
     * @param {{close: number, beat: number}} times in milliseconds
     * @param {(end: End) => void} onEnd is called once
     */
    constructor(socket: any, token: string | undefined, times: {
        close: number;
        beat: number;
    }, onEnd: (end: End) => void);
    /** Reports whether calls may begin. */
    get isOpen(): boolean;
    /**
     * Calls an operation, once.
     *
     * @param {string | undefined} token
     * @param {string} operation
     * @param {string} body
     * @param {AbortSignal} [signal]
     * @returns {Promise<any>}
     */
    call(token: string | undefined, operation: string, body: string, signal?: AbortSignal): Promise<any>;
    /**
     * Asks by form, request or approve. The outcome of what is open follows.
     *
     * @param {string | undefined} token
     * @param {string} operation
     * @param {string} body
     * @param {AbortSignal} [signal]
     * @returns {Promise<{asked: any, coming?: Coming}>}
     */
    ask(token: string | undefined, operation: string, body: string, signal?: AbortSignal): Promise<{
        asked: any;
        coming?: Coming;
    }>;
    /**
     * Yields messages or agents as they change. It throws when the node refuses, or the link is lost.
     *
     * @param {number} kind from.follow or from.followAgents
     * @param {string | undefined} token
     * @param {string} body
     * @param {AbortSignal} [signal]
     * @returns {AsyncGenerator<any, void, void>} of Item or AgentItem
     */
    follow(kind: number, token: string | undefined, body: string, signal?: AbortSignal): AsyncGenerator<any, void, void>;
    #private;
}
/** The outcome of a form, which arrives on the link that asked it. */
export class Coming {
    /**
     * @param {Promise<any>} outcome
     * @param {() => () => void} claim marks it as awaited; the returned function ends that
     */
    constructor(outcome: Promise<any>, claim: () => () => void);
    /**
     * Waits for the outcome. It throws Lost if the link ends before.
     *
     * @param {AbortSignal} [signal]
     * @returns {Promise<import("./operations.js").Outcome>}
     */
    wait(signal?: AbortSignal): Promise<import("./operations.js").Outcome>;
    #private;
}
export type Deferred = {
    promise: Promise<any>;
    resolve: (value: any) => void;
    reject: (why: unknown) => void;
};
/**
 * a message of a follow
 */
export type Item = {
    cursor: string;
    message: import("./operations.js").Envelope;
};
/**
 * an agent of a follow; told comes after the agents that there are at first
 */
export type AgentItem = {
    kind: "upsert" | "remove" | "told";
    agent?: any;
};
/**
 * how a link ended; unheard: it was lost before the node had sent a frame
 */
export type End = "ended" | "unheard" | "malformed";
