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
  constructor(code, message, more = {}) {
    super(message, "cause" in more ? { cause: more.cause } : {});
    this.name = "ParleyError";
    /** @readonly */
    this.code = code;
    /** @readonly */
    this.hint = more.hint;
    /** @readonly */
    this.fields = more.fields ?? {};
  }
}

/** A call that brought no answer. Whether the node has heard it is not known, unless it was never sent. */
export class Lost extends Error {
  /**
   * @param {boolean} sent
   * @param {unknown} cause
   */
  constructor(sent, cause) {
    super(String(cause), { cause });
    /** @readonly */
    this.sent = sent;
  }
}

/** What Node says of connections that could not be opened. Browsers do not tell. */
const unopened = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

/**
 * What became of a call that fetch threw an error for.
 *
 * @param {unknown} thrown
 * @returns {Lost}
 */
export function lostTo(thrown) {
  /** @type {any} */
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  const codes = [cause?.code, ...(cause?.errors ?? []).map((/** @type {any} */ e) => e?.code)].filter(Boolean);
  return new Lost(!(codes.length > 0 && codes.every((code) => unopened.has(code))), thrown);
}

/**
 * The error in a response. One that is none of the node's own is by something on the way to it.
 *
 * @param {number} status
 * @param {string} text
 * @returns {ParleyError | Lost}
 */
export function refusalIn(status, text) {
  /** @type {any} */
  let refusal;
  try {
    refusal = JSON.parse(text)?.error;
  } catch {
    refusal = undefined; // what is on the way speaks HTML
  }
  if (typeof refusal?.code === "string") return refusalOf(refusal);
  if (status === 502 || status === 503 || status === 504) return new Lost(true, `HTTP status ${status}`);
  return new ParleyError("INTERNAL", `the node answered with HTTP status ${status} and no error`);
}

/**
 * The error that a node sent. One of a node that is about to stop is a lost call.
 *
 * @param {{code: string, message?: unknown, hint?: string, fields?: Record<string, string>}} said
 * @returns {ParleyError | Lost}
 */
export function refusalOf({ code, message, hint, fields }) {
  const refusal = new ParleyError(code, String(message), /** @type {{hint?: string, fields?: Record<string, string>}} */ ({ hint, fields }));
  return code === "NOT_RUNNING" ? new Lost(true, refusal) : refusal;
}
