/**
 * @param {Wire} wire
 * @param {string | number} form
 * @param {AbortSignal} [signal]
 * @param {string} [until] a state of a message, or asked
 * @param {number} [after] of asked: the number of the last question that is known
 * @param {boolean} [all] of a state: with all members of a group
 * @returns {Promise<Outcome>}
 */
export function awaitEnd(wire: Wire, form: string | number, signal?: AbortSignal, until?: string, after?: number, all?: boolean): Promise<Outcome>;
/** @typedef {import("./wire.js").Wire} Wire */
/** @typedef {import("./wire.js").Ending} Ending */
/** @typedef {import("./operations.js").Outcome} Outcome */
/** How long one waiting call takes, in milliseconds. A longer wait is made of several. */
export const turnTime: 25000;
/** A form that was asked, and is on the node's disk. */
export class Asked {
    /**
     * @param {Wire} wire
     * @param {import("./operations.js").Asked} asked
     * @param {import("./link.js").Coming} [coming] the outcome, if it arrives by itself
     */
    constructor(wire: Wire, asked: import("./operations.js").Asked, coming?: import("./link.js").Coming);
    /** undefined if nothing was asked, because the name for the answer is bound already @readonly */
    readonly form: string | undefined;
    /** @readonly */
    readonly promise: string | undefined;
    /** of the form in the asker's mailbox @readonly */
    readonly number: number;
    /** the recipient's node cannot be reached now: the form goes there when it can @readonly */
    readonly unreachable: boolean;
    /**
     * Waits until the form has ended, at once if it has, also through restarts of the node.
     *
     * @param {Ending} [ending]
     * @returns {Promise<Outcome>}
     */
    await({ signal }?: Ending): Promise<Outcome>;
    /**
     * Waits as await does, and also until one who may answer the form asks back: with the status asked, the words as note, and the number of
     * the message, to which a reply goes to who asked. Another wait with that number as after goes on.
     *
     * @param {number} [after]
     * @param {Ending} [ending]
     * @returns {Promise<Outcome>}
     */
    awaitQuestion(after?: number, { signal }?: Ending): Promise<Outcome>;
    /**
     * Waits for the answer's values. A form that ends otherwise throws DECLINED, CANCELLED or EXPIRED.
     *
     * @param {Ending} [ending]
     * @returns {Promise<any>}
     */
    answer(ending?: Ending): Promise<any>;
    #private;
}
/** An approval that was asked for: a standing rule or the agent's policy has decided it, or it is a form. */
export class Permission extends Asked {
    /**
     * @param {Wire} wire
     * @param {import("./operations.js").Permitted} permission
     * @param {import("./link.js").Coming} [coming] the outcome, if it arrives by itself
     */
    constructor(wire: Wire, permission: import("./operations.js").Permitted, coming?: import("./link.js").Coming);
    /**
     * Nobody follows the mail of who would decide at this moment, of an approval that was to be attended. If form is undefined nothing
     * was asked, and to ask with the same key again is to look again; else it was asked before, and cancel takes it back.
     *
     * @readonly
     */
    readonly unattended: boolean;
    /**
     * Waits for the decision. What was declined, cancelled or has expired is not allowed, nor what another than the host has decided. Where nothing was asked, as unattended says, it
     * throws NO_PENDING_PERMISSION. Of an approval that was asked as editable, editedInput is the input that is allowed instead of the one
     * that was asked, as JSON.
     *
     * @param {Ending} [ending]
     * @returns {Promise<{allowed: boolean, reason: string, rule?: string | undefined, editedInput?: string | undefined}>}
     */
    decision(ending?: Ending): Promise<{
        allowed: boolean;
        reason: string;
        rule?: string | undefined;
        editedInput?: string | undefined;
    }>;
    #private;
}
export type Wire = import("./wire.js").Wire;
export type Ending = import("./wire.js").Ending;
export type Outcome = import("./operations.js").Outcome;
