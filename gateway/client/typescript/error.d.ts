/**
 * What became of a call that fetch threw an error for.
 *
 * @param {unknown} thrown
 * @returns {Lost}
 */
export function lostTo(thrown: unknown): Lost;
/**
 * The error in a response. One that is none of the node's own is by something on the way to it.
 *
 * @param {number} status
 * @param {string} text
 * @returns {ParleyError | Lost}
 */
export function refusalIn(status: number, text: string): ParleyError | Lost;
/**
 * The error that a node sent. One of a node that is about to stop is a lost call.
 *
 * @param {{code: string, message?: unknown, hint?: string, fields?: Record<string, string>}} said
 * @returns {ParleyError | Lost}
 */
export function refusalOf({ code, message, hint, fields }: {
    code: string;
    message?: unknown;
    hint?: string;
    fields?: Record<string, string>;
}): ParleyError | Lost;
/**
 * A refusal or a failure. The code is for programs and never changes its meaning; the message is for people; the hint, if any,
 * says what to do; fields has, for INVALID_ANSWER and INVALID_FORM, what is wrong with each field.
 */
export class ParleyError extends Error {
    /**
     * @param {string} code
     * @param {string} message
     * @param {{hint?: string, fields?: Record<string, string>, cause?: unknown}} [more]
     */
    constructor(code: string, message: string, more?: {
        hint?: string;
        fields?: Record<string, string>;
        cause?: unknown;
    });
    /** @readonly */
    readonly code: string;
    /** @readonly */
    readonly hint: string | undefined;
    /** @readonly */
    readonly fields: Record<string, string>;
}
/** A call that brought no answer. Whether the node has heard it is not known, unless it was never sent. */
export class Lost extends Error {
    /**
     * @param {boolean} sent
     * @param {unknown} cause
     */
    constructor(sent: boolean, cause: unknown);
    /** @readonly */
    readonly sent: boolean;
}
