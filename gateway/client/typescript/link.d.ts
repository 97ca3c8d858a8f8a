/**
 * Waits for a promise, until the signal.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export function until<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T>;
/** @typedef {{cursor: string, message: import("./operations.js").Envelope}} Item a message of a follow */
/** @typedef {"ended" | "unheard" | "malformed"} End how a link ended; unheard: it was lost before the node had sent anything */
/** The items that a node may send of a follow before they are taken. */
export const window: 32;
/**
 * One WebSocket on which calls, waits and follows of several agents are under way. It ends itself when nobody waits for anything on it
 * for a moment: while a WebSocket is open, Node does not end a program.
 */
export class Link {
    /**
     * Takes a WebSocket that is open.
     *
     * @param {any} socket
     * @param {string | undefined} token that opened it: its agent is number 0
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
     * Asks a form. If that is open then, its outcome is coming.
     *
     * @param {string | undefined} token
     * @param {string} body
     * @param {AbortSignal} [signal]
     * @returns {Promise<{asked: any, coming?: Coming}>}
     */
    ask(token: string | undefined, body: string, signal?: AbortSignal): Promise<{
        asked: any;
        coming?: Coming;
    }>;
    /**
     * Yields the messages of a follow as they come, until it is refused, lost, or wanted no more.
     *
     * @param {string | undefined} token
     * @param {string} body
     * @param {AbortSignal} [signal]
     * @returns {AsyncGenerator<Item, void, void>}
     */
    follow(token: string | undefined, body: string, signal?: AbortSignal): AsyncGenerator<Item, void, void>;
    #private;
}
/** The outcome of a form, which comes on the link on which it was asked. */
export class Coming {
    /**
     * @param {Promise<any>} outcome
     * @param {() => () => void} claim keeps it coming, until what it returns is called
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
 * how a link ended; unheard: it was lost before the node had sent anything
 */
export type End = "ended" | "unheard" | "malformed";
