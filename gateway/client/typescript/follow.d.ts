/** @typedef {import("./wire.js").Wire} Wire */
/** @typedef {import("./operations.js").Envelope} Message */
/** @typedef {import("./client.js").View} View */
/**
 * @param {Wire} wire
 * @param {{cursor?: string, view?: View, signal?: AbortSignal}} from
 * @returns {AsyncGenerator<{message: Message, cursor: string}, void, void>}
 */
export function follow(wire: Wire, { cursor, view, signal }: {
    cursor?: string;
    view?: View;
    signal?: AbortSignal;
}): AsyncGenerator<{
    message: Message;
    cursor: string;
}, void, void>;
export type Wire = import("./wire.js").Wire;
export type Message = import("./operations.js").Envelope;
export type View = import("./client.js").View;
