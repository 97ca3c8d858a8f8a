/** The transport to a node for several agents: one link, or HTTP where no link can be opened. */
export class Connection {
    /**
     * @param {string} url of the node
     * @param {any} WebSocket undefined: calls go by HTTP
     * @param {Partial<typeof defaults>} [times]
     */
    constructor(url: string, WebSocket: any, times?: Partial<typeof defaults>);
    /**
     * Returns the link, or undefined for a call by HTTP. It opens the link for a call that waits, and for a call close to others. A single
     * call costs less by HTTP, and does not delay the end of the program.
     *
     * @param {string | undefined} token
     * @param {boolean} waits
     * @param {AbortSignal} [signal]
     * @returns {Promise<Link | undefined>}
     */
    open(token: string | undefined, waits: boolean, signal?: AbortSignal): Promise<Link | undefined>;
    /**
     * Makes a call by HTTP.
     *
     * @template T
     * @param {() => Promise<T>} call
     * @returns {Promise<T>}
     */
    plainly<T>(call: () => Promise<T>): Promise<T>;
    /** Notes that HTTP got no answer either: the node is away. */
    lost(): void;
    #private;
}
import { Link } from "./link.js";
declare namespace defaults {
    let dial: number;
    let close: number;
    let beat: number;
    let plain: number;
}
export {};
