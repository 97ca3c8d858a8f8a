import { ParleyError } from "./error.js";
import { follow } from "./follow.js";
import { Asked, Permission, awaitEnd } from "./asked.js";
import { followAgents } from "./agents.js";
import { Wire, newKey } from "./wire.js";

export { ParleyError, Asked, Permission };

/** @typedef {import("./operations.js").Operations} Operations */
/** @typedef {import("./operations.js").Envelope} Message */
/** @typedef {import("./operations.js").Outcome} Outcome */
/** @typedef {import("./operations.js").Sent} Sent */
/** @typedef {import("./operations.js").Field} Field */
/** @typedef {{all?: boolean, pending?: boolean}} View all: also what the agent sent and dismissed; pending: only what waits for its answer */
/** @typedef {import("./wire.js").Options} Options */
/** @typedef {import("./wire.js").Ending} Ending */
/** @typedef {import("./agents.js").Agent} Agent */
/** @typedef {import("./agents.js").AgentFilter} AgentFilter */

/**
 * A message's number in the agent's own mailbox, or the ID of a message, form or promise.
 *
 * @typedef {string | number} Which
 */

/** @typedef {{$cap: string, kind: string}} Ref a live reference, as answers and messages carry it */

/**
 * What each operation is asked, without "as", which the client adds.
 *
 * @template {keyof Operations} N
 * @typedef {Omit<Operations[N]["request"], "as">} RequestOf
 */

/**
 * Connects to a node. It throws NOT_RUNNING where there is none, and UNAUTHENTICATED if the token is not good.
 *
 * @param {Options} options
 * @returns {Promise<Client>}
 */
export async function connect(options) {
  const wire = new Wire(options);
  try {
    await wire.call("locate", { name: "@self" }, options.signal);
  } catch (e) {
    // A token may be good for other things than looking, and then this is refused by a node that is there.
    if (!(e instanceof ParleyError) || e.code !== "NOT_PERMITTED") throw e;
  }
  return new Client(wire);
}

/** Calls a node's operations for one agent. It holds no connection that would need closing. */
export class Client {
  #wire;

  /** @param {Wire} wire */
  constructor(wire) {
    this.#wire = wire;
  }

  /**
   * Performs any of the node's operations. What is made again after a lost connection is what has a key, or only looks.
   *
   * @template {keyof Operations} N
   * @param {N} operation
   * @param {RequestOf<N>} request
   * @param {Ending} [ending]
   * @returns {Promise<Operations[N]["response"]>}
   */
  call(operation, request, { signal } = {}) {
    return this.#wire.call(operation, { ...request }, signal);
  }

  /**
   * Sends a form, once, and resolves when it is accepted: it is on the node's disk. Who was asked may answer at any time from then on.
   *
   * @param {RequestOf<"form">} form
   * @param {Ending} [ending]
   */
  async ask(form, ending) {
    return new Asked(this.#wire, await this.call("form", { ...form, key: form.key ?? newKey() }, ending));
  }

  /**
   * Asks for a capability in words, once. Its answer is a Ref, under the name "value".
   *
   * @param {RequestOf<"request">} request
   * @param {Ending} [ending]
   */
  async request(request, ending) {
    return new Asked(this.#wire, await this.call("request", { ...request, key: request.key ?? newKey() }, ending));
  }

  /**
   * Asks whether a tool may be called with an input, once.
   *
   * @param {RequestOf<"approve">} approval
   * @param {Ending} [ending]
   */
  async approve(approval, ending) {
    return new Permission(this.#wire, await this.call("approve", { ...approval, key: approval.key ?? newKey() }, ending));
  }

  /**
   * Waits until a form has ended, at once if it has, also through restarts of the node.
   *
   * @param {Which} form
   * @param {Ending} [ending]
   * @returns {Promise<Outcome>}
   */
  await(form, { signal } = {}) {
    return awaitEnd(this.#wire, form, signal);
  }

  /**
   * Answers a form. A wrong answer is INVALID_ANSWER, with what is wrong with each field, and leaves the form open.
   *
   * @param {Which} form
   * @param {Record<string, unknown>} values by field; a capability is a Ref, or a name of the answerer's
   * @param {Ending} [ending]
   */
  answer(form, values, ending) {
    return this.call("respond_form", { ...about(form), values }, ending);
  }

  /**
   * Answers a form with texts, which are read by the fields' types, as on a command line.
   *
   * @param {Which} form
   * @param {Record<string, string | string[]>} texts several for a field for several choices
   * @param {Ending} [ending]
   */
  answerText(form, texts, ending) {
    const list = Object.entries(texts).flatMap(([name, text]) => [text].flat().map((text) => ({ name, text })));
    return this.call("respond_form", { ...about(form), texts: list }, ending);
  }

  /**
   * Says no to a form.
   *
   * @param {Which} form
   * @param {string} [reason]
   * @param {Ending} [ending]
   */
  decline(form, reason = "", ending) {
    return this.call("decline_form", { ...about(form), reason }, ending);
  }

  /**
   * Takes back a form that the agent asked.
   *
   * @param {Which} form
   * @param {string} [reason]
   * @param {Ending} [ending]
   */
  cancel(form, reason = "", ending) {
    return this.call("cancel_form", { ...about(form), reason }, ending);
  }

  /**
   * Hands a form on: whoever answers first settles it.
   *
   * @param {Which} form
   * @param {string} recipient
   * @param {Ending} [ending]
   */
  async forward(form, recipient, ending) {
    await this.call("forward_form", { ...about(form), recipient }, ending);
  }

  /**
   * Gives what was requested: what the agent holds under a name.
   *
   * @param {Which} request
   * @param {string} name
   * @param {Ending} [ending]
   */
  resolve(request, name, ending) {
    return this.call("resolve", { ...about(request), name }, ending);
  }

  /**
   * Says no to a request.
   *
   * @param {Which} request
   * @param {string} [reason]
   * @param {Ending} [ending]
   */
  reject(request, reason = "", ending) {
    return this.call("reject", { ...about(request), reason }, ending);
  }

  /**
   * Sends words, with references as @edge:name or @name.
   *
   * @param {string} recipient
   * @param {string} text
   * @param {Ending} [ending]
   */
  send(recipient, text, ending) {
    return this.call("send", { recipient, text }, ending);
  }

  /**
   * Answers a message with words.
   *
   * @param {Which} message
   * @param {string} text
   * @param {Ending} [ending]
   */
  reply(message, text, ending) {
    return this.call("reply", { ...about(message), text }, ending);
  }

  /**
   * Keeps what a message carries under an edge.
   *
   * @param {Which} message
   * @param {string} edge
   * @param {string} [name] default: the edge's own
   * @param {Ending} [ending]
   */
  async adopt(message, edge, name = "", ending) {
    await this.call("adopt", { ...about(message), edge, name }, ending);
  }

  /**
   * Drops a message from view.
   *
   * @param {Which} message
   * @param {Ending} [ending]
   */
  async dismiss(message, ending) {
    await this.call("dismiss", about(message), ending);
  }

  /**
   * @param {Which} message
   * @param {Ending} [ending]
   */
  message(message, ending) {
    return this.call("get_message", about(message), ending);
  }

  /**
   * Lists the messages of a view by number. Without one that is what was received and not dismissed.
   *
   * @param {View} [view]
   * @param {Ending} [ending]
   */
  async inbox(view = {}, ending) {
    /** @type {Message[]} */
    const all = [];
    for (let first = 0; ; ) {
      const page = await this.call("list_messages", { ...view, first }, ending);
      all.push(...page.messages);
      if (!page.next) return all;
      first = page.next;
    }
  }

  /**
   * Yields the messages of a view as they are after a cursor, then each that comes or changes, until the signal. It goes on through
   * restarts of the node. To follow from the cursor of a message yields what came after it, each change once, in this program or the next.
   *
   * @param {{cursor?: string, view?: View} & Ending} [from]
   * @returns {AsyncGenerator<{message: Message, cursor: string}, void, void>}
   */
  follow(from = {}) {
    return follow(this.#wire, from);
  }

  /**
   * Lists the names that the agent holds, or those within what stands under a path.
   *
   * @param {string} [path]
   * @param {Ending} [ending]
   */
  async names(path = "", ending) {
    return (await this.call("list_names", { path }, ending)).names;
  }

  /**
   * Gives the value under a name; a reference is a Ref.
   *
   * @param {string} name
   * @param {{reveal?: boolean} & Ending} [how]
   */
  async lookup(name, { reveal = false, signal } = {}) {
    return (await this.call("lookup", { name, reveal }, signal && { signal })).value;
  }

  /**
   * Puts a value under a name: the value itself, or the text of a locator of what the agent may reach already.
   *
   * @param {string} name
   * @param {unknown} value
   * @param {Ending} [ending]
   */
  async store(name, value, ending) {
    await this.call("store_name", { name, value }, ending);
  }

  /**
   * Takes a name away.
   *
   * @param {string} name
   * @param {Ending} [ending]
   */
  async remove(name, ending) {
    await this.call("remove_name", { name }, ending);
  }

  /**
   * Lists agents.
   *
   * @param {AgentFilter} [filter]
   * @param {Ending} [ending]
   * @returns {Promise<Agent[]>}
   */
  async agents(filter = {}, { signal } = {}) {
    return (await this.#wire.call("fetch_agents", { filter }, signal)).agents;
  }

  /**
   * Gives an agent by its ID, a unique beginning of that, a name or an exact title. It throws AGENT_NOT_FOUND and AMBIGUOUS.
   *
   * @param {string} agentId
   * @param {Ending} [ending]
   * @returns {Promise<Agent>}
   */
  async agent(agentId, { signal } = {}) {
    const got = await this.#wire.call("fetch_agent", { agentId }, signal);
    refuse(got.error);
    return got.agent;
  }

  /**
   * Sends a message to an agent at work, once, and resolves when it is accepted.
   *
   * @param {string} agentId
   * @param {string} text
   * @param {{messageId?: string} & Ending} [how]
   */
  async prompt(agentId, text, { messageId = newKey(), signal } = {}) {
    const got = await this.#wire.call("send_agent_message", { agentId, text, messageId }, signal);
    refuse(got.error);
    if (!got.accepted) throw new ParleyError("NOT_PERMITTED", `agent ${got.agentId} did not accept the message`);
  }

  /**
   * Waits until an agent is idle, in error, or waits for permission.
   *
   * @param {string} agentId
   * @param {Ending} [ending]
   * @returns {Promise<{status: "idle" | "error" | "permission", final: Agent}>}
   */
  async waitForAgent(agentId, { signal } = {}) {
    for (;;) {
      const { status, final } = await this.#wire.call("wait_for_finish", { agentId, timeoutMs: 25000 }, signal);
      if (status !== "timeout") return { status, final };
    }
  }

  /**
   * Ends the run of an agent, and what it was asking.
   *
   * @param {string} agentId
   * @param {Ending} [ending]
   */
  async stop(agentId, { signal } = {}) {
    await this.#wire.call("stop_agent", { agentId }, signal);
  }

  /**
   * Puts an agent away: it takes no more messages.
   *
   * @param {string} agentId
   * @param {Ending} [ending]
   */
  async archive(agentId, { signal } = {}) {
    await this.#wire.call("archive_agent", { agentId }, signal);
  }

  /**
   * Yields agents as they are, then each that changes, until the signal. It needs a WebSocket: a browser, Node 22, or one in the options.
   *
   * @param {{labels?: Record<string, string>, agentId?: string} & Ending} [of]
   * @returns {AsyncGenerator<{kind: "upsert" | "remove", agent: Agent}, void, void>}
   */
  followAgents(of = {}) {
    return followAgents(this.#wire, of);
  }
}

/**
 * Says which message a request is about.
 *
 * @param {Which} which
 * @returns {{number?: string, id?: string}}
 */
function about(which) {
  const text = String(which);
  return /^[0-9]+$/.test(text) ? { number: text } : { id: text };
}

/** @param {any} error */
function refuse(error) {
  if (error) throw new ParleyError(error.code, error.message, error);
}
