import { Lost, ParleyError } from "./error.js";

/** @typedef {import("./wire.js").Wire} Wire */
/** @typedef {import("./wire.js").Ending} Ending */
/** @typedef {import("./operations.js").Outcome} Outcome */

/** How long one waiting call takes, in milliseconds. A longer wait is made of several. */
export const turnTime = 25000;

/**
 * @param {Wire} wire
 * @param {string | number} form
 * @param {AbortSignal} [signal]
 * @param {string} [until] a state of a message, or asked
 * @param {number} [after] of asked: the number of the last question that is known
 * @param {boolean} [all] of a state: with all members of a group
 * @returns {Promise<Outcome>}
 */
export async function awaitEnd(wire, form, signal, until, after, all) {
  const text = String(form);
  const which = /^[0-9]+$/.test(text) ? { number: text } : { id: text };
  for (;;) {
    const outcome = await wire.call("await", { ...which, ...(until && { until }), ...(after && { after }), ...(all && { all }), waitMs: turnTime }, signal);
    if (outcome.status !== "open") return outcome;
  }
}

/** A form that was asked, and is on the node's disk. */
export class Asked {
  #wire;
  #outcome;
  #coming;

  /**
   * @param {Wire} wire
   * @param {import("./operations.js").Asked} asked
   * @param {import("./link.js").Coming} [coming] the outcome, if it arrives by itself
   */
  constructor(wire, asked, coming) {
    this.#wire = wire;
    this.#outcome = asked.outcome;
    this.#coming = coming;
    /** undefined if nothing was asked, because the name for the answer is bound already @readonly */
    this.form = asked.form;
    /** @readonly */
    this.promise = asked.promise;
    /** of the form in the asker's mailbox @readonly */
    this.number = asked.number;
    /** the recipient's node cannot be reached now: the form goes there when it can @readonly */
    this.unreachable = asked.unreachable ?? false;
  }

  /**
   * Waits until the form has ended, at once if it has, also through restarts of the node.
   *
   * @param {Ending} [ending]
   * @returns {Promise<Outcome>}
   */
  async await({ signal } = {}) {
    if (this.#outcome && this.#outcome.status !== "open") return this.#outcome;
    try {
      const outcome = await this.#coming?.wait(signal);
      if (outcome && outcome.status !== "open") return outcome;
    } catch (e) {
      if (!(e instanceof Lost)) throw e;
    }
    this.#coming = undefined; // the connection was lost
    return awaitEnd(this.#wire, this.form ?? "", signal);
  }

  /**
   * Waits as await does, and also until one who may answer the form asks back: with the status asked, the words as note, and the number of
   * the message, to which a reply goes to who asked. Another wait with that number as after goes on.
   *
   * @param {number} [after]
   * @param {Ending} [ending]
   * @returns {Promise<Outcome>}
   */
  async awaitQuestion(after = 0, { signal } = {}) {
    if (this.#outcome && this.#outcome.status !== "open") return this.#outcome;
    return awaitEnd(this.#wire, this.form ?? "", signal, "asked", after);
  }

  /**
   * Waits for the answer's values. A form that ends otherwise throws DECLINED, CANCELLED or EXPIRED.
   *
   * @param {Ending} [ending]
   * @returns {Promise<any>}
   */
  async answer(ending) {
    const outcome = await this.await(ending);
    if (outcome.status === "answered") return outcome.values;
    const code = { declined: "DECLINED", expired: "EXPIRED" }[outcome.status] ?? "CANCELLED";
    throw new ParleyError(code, `form ${outcome.form} was ${outcome.status}${outcome.note ? `: ${outcome.note}` : ""}`);
  }
}

/** An approval that was asked for: a standing rule or the agent's policy has decided it, or it is a form. */
export class Permission extends Asked {
  #rule;

  /**
   * @param {Wire} wire
   * @param {import("./operations.js").Permitted} permission
   * @param {import("./link.js").Coming} [coming] the outcome, if it arrives by itself
   */
  constructor(wire, permission, coming) {
    super(wire, permission, coming);
    /**
     * Nobody follows the mail of who would decide at this moment, of an approval that was to be attended. If form is undefined nothing
     * was asked, and to ask with the same key again is to look again; else it was asked before, and cancel takes it back.
     *
     * @readonly
     */
    this.unattended = permission.unattended ?? false;
    if (permission.decided) this.#rule = { allowed: permission.allowed, reason: "", rule: permission.rule };
  }

  /**
   * Waits for the decision. What was declined, cancelled or has expired is not allowed, nor what another than the host has decided. Where nothing was asked, as unattended says, it
   * throws NO_PENDING_PERMISSION. Of an approval that was asked as editable, editedInput is the input that is allowed instead of the one
   * that was asked, as JSON.
   *
   * @param {Ending} [ending]
   * @returns {Promise<{allowed: boolean, reason: string, rule?: string | undefined, editedInput?: string | undefined}>}
   */
  async decision(ending) {
    if (this.#rule) return this.#rule;
    if (this.unattended && this.form === undefined) {
      throw new ParleyError("NO_PENDING_PERMISSION", "nobody follows the mail of who would decide, and nothing was asked");
    }
    const { status, note, values, allowed, editedInput } = await this.await(ending);
    if (status !== "answered") return { allowed: false, reason: note ?? "" };
    const { reason } = /** @type {{reason?: string}} */ (values);
    return { allowed: allowed === true, reason: reason ?? "", ...(editedInput === undefined ? {} : { editedInput }) };
  }
}
