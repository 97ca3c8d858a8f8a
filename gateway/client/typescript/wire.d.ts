/**
 * @param {number} ms
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function rest(ms: number, signal?: AbortSignal): Promise<void>;
/** The way to a node for one agent. */
export class Wire {
    /**
     * @param {Options} options
     * @param {Wire} [beside] the Wire of another agent, to share its connection
     */
    constructor(options: Options, beside?: Wire);
    base: string;
    options: Options;
    connection: Connection;
    /**
     * Calls an operation, again and again where that does nothing twice and the node may come back.
     *
     * @param {string} operation
     * @param {Record<string, unknown>} request
     * @param {AbortSignal} [signal]
     * @returns {Promise<any>}
     */
    call(operation: string, request: Record<string, unknown>, signal?: AbortSignal): Promise<any>;
    /**
     * Asks by form, request or approve as call does. Over a link, the outcome of what is open follows.
     *
     * @param {string} operation
     * @param {Record<string, unknown>} request
     * @param {AbortSignal} [signal]
     * @returns {Promise<{asked: any, coming?: import("./link.js").Coming}>}
     */
    ask(operation: string, request: Record<string, unknown>, signal?: AbortSignal): Promise<{
        asked: any;
        coming?: import("./link.js").Coming;
    }>;
    /**
     * Yields messages as they change, each with the cursor behind it. It returns without a link, when that is lost, and when the agent has
     * too many follows.
     *
     * @param {Record<string, unknown>} request a filter, and a cursor
     * @param {AbortSignal} [signal]
     * @returns {AsyncGenerator<import("./link.js").Item, void, void>}
     */
    follow(request: Record<string, unknown>, signal?: AbortSignal): AsyncGenerator<import("./link.js").Item, void, void>;
    /**
     * Returns the agents as they change, until the link is lost; undefined without a link.
     *
     * @param {Record<string, unknown>} filter
     * @param {AbortSignal} [signal]
     * @returns {Promise<AsyncGenerator<import("./link.js").AgentItem, void, void> | undefined>}
     */
    followAgents(filter: Record<string, unknown>, signal?: AbortSignal): Promise<AsyncGenerator<import("./link.js").AgentItem, void, void> | undefined>;
    /**
     * Finds out whether the node is there, and will have the token.
     *
     * @param {AbortSignal} [signal]
     */
    look(signal?: AbortSignal): Promise<void>;
    /** Notes that the node is there. */
    saw(): void;
    #private;
}
export type Options = {
    /**
     * where the node listens, as http://127.0.0.1:7420
     */
    url: string;
    /**
     * as parley token create makes them; in a page of the node's own, its session will do
     */
    token?: string | undefined;
    /**
     * name under which the node's host holds the agent to act for
     */
    as?: string | undefined;
    /**
     * for how many milliseconds a node is waited for that was there and is not; default: until the
     * signal of the call
     */
    patience?: number | undefined;
    /**
     * ends connecting
     */
    signal?: AbortSignal | undefined;
    /**
     * in place of the global one; without the option WebSocket it makes all calls
     */
    fetch?: typeof fetch | undefined;
    /**
     * in place of the global one, which Node has from 22 on
     */
    WebSocket?: any;
};
/**
 * what ends a call: it rejects with the signal's reason, and what was asked may still happen
 */
export type Ending = {
    signal?: AbortSignal;
};
import { Connection } from "./connection.js";
