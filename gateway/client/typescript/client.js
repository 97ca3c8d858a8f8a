import { ParleyError } from "./error.js";
import { follow } from "./follow.js";
import { Asked, Permission, awaitEnd, turnTime } from "./asked.js";
import { followAgents, readOutput } from "./agents.js";
import { Wire } from "./wire.js";

export { ParleyError, Asked, Permission };

/** @typedef {import("./operations.js").Operations} Operations */
/** @typedef {import("./operations.js").Envelope} Message */
/** @typedef {import("./operations.js").Outcome} Outcome */
/** @typedef {import("./operations.js").Sent} Sent */
/** @typedef {import("./operations.js").Field} Field */
/** @typedef {import("./operations.js").Draft} Draft */
/** @typedef {import("./operations.js").MessageCounts} MessageCounts */
/** @typedef {{all?: boolean, pending?: boolean, snoozed?: boolean, done?: boolean, unread?: boolean, sent?: boolean, overdue?: boolean}} View all: also what the agent sent, dismissed and snoozed; pending: only what waits for its answer; overdue: only what was not acknowledged in time; snoozed, done, unread, sent: only that */
/** @typedef {import("./wire.js").Options} Options */
/** @typedef {import("./wire.js").Ending} Ending */
/** @typedef {import("./agents.js").Agent} Agent */
/** @typedef {import("./agents.js").AgentFilter} AgentFilter */
/** @typedef {import("./agents.js").AgentUpdate} AgentUpdate */
/** @typedef {import("./operations.js").OutputPiece} OutputPiece stream is output, errors or notice; the text may begin and end within a line */
/** @typedef {"idle" | "error" | "permission"} Finish how an agent has nothing more to do; permission: it waits to be permitted a call */
/** @typedef {"always" | "on-miss" | "never" | "deny"} Policy which calls are asked about: all, those that no rule decides, none: they are allowed, none: they are denied */

/**
 * A message's number in the agent's own mailbox, or the ID of a message, form or promise.
 *
 * @typedef {string | number} Which
 */

/** @typedef {Which | Message} Shown a form; as a message, in the revision that it shows: AMENDED if the asker has amended it since */
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
  await wire.look(options.signal);
  return new Client(wire);
}

/** Calls a node's operations for one agent. Its connection opens and ends by itself. */
export class Client {
  #wire;

  /** @param {Wire} wire */
  constructor(wire) {
    this.#wire = wire;
  }

  /**
   * Connects to the same node for another agent, over the same connection. It throws UNAUTHENTICATED if the token is not good.
   *
   * @param {{token?: string, as?: string} & Ending} agent its token, or the name under which the node's host holds it
   * @returns {Promise<Client>}
   */
  async signIn({ token, as, signal }) {
    const { token: own, as: _, signal: __, ...options } = this.#wire.options;
    const wire = new Wire({ ...options, token: token ?? own, as }, this.#wire);
    await wire.look(signal);
    return new Client(wire);
  }

  /**
   * Performs any of the node's operations. What only looks is made again after a lost connection, and what is sent or asked once by its key, which it is given.
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
    const { asked, coming } = await this.#wire.ask("form", form, ending?.signal);
    return new Asked(this.#wire, asked, coming);
  }

  /**
   * Asks for a capability in words, once. Its answer is a Ref, under the name "value".
   *
   * @param {RequestOf<"request">} request
   * @param {Ending} [ending]
   */
  async request(request, ending) {
    const { asked, coming } = await this.#wire.ask("request", request, ending?.signal);
    return new Asked(this.#wire, asked, coming);
  }

  /**
   * Asks whether a tool may be called with an input, once; with attended only where somebody follows the mail of who would decide.
   *
   * @param {RequestOf<"approve">} approval
   * @param {Ending} [ending]
   */
  async approve(approval, ending) {
    const { asked, coming } = await this.#wire.ask("approve", approval, ending?.signal);
    return new Permission(this.#wire, asked, coming);
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
   * Waits until a message that the agent sent has come to a state, at once if it has come further, also through restarts of the
   * node. The status of the outcome is the state that it is in; "declined" if its recipient refused it.
   * With all, of a message to a group, it waits for each member that it reached, whoever has replied for the group.
   *
   * @param {Which} message
   * @param {"delivered" | "offered" | "shown" | "handled"} until
   * @param {Ending & { all?: boolean }} [ending]
   * @returns {Promise<Outcome>}
   */
  awaitState(message, until, { all, signal } = {}) {
    return awaitEnd(this.#wire, message, signal, until, undefined, all);
  }

  /**
   * Answers a form. A wrong answer is INVALID_ANSWER, with what is wrong with each field, and leaves the form open.
   *
   * @param {Shown} form
   * @param {Record<string, unknown>} values by field; a capability is a Ref, or a name of the answerer's
   * @param {Ending} [ending]
   */
  answer(form, values, ending) {
    return this.call("respond_form", { ...shown(form), values }, ending);
  }

  /**
   * Answers a form with texts, which are read by the fields' types, as on a command line.
   *
   * @param {Shown} form
   * @param {Record<string, string | string[]>} texts several for a field for several choices
   * @param {Ending} [ending]
   */
  answerText(form, texts, ending) {
    return this.call("respond_form", { ...shown(form), texts: listOf(texts) }, ending);
  }

  /**
   * Decides on approvals, each by the digest of the call that was shown. The result of each is its outcome or its error: one
   * that is refused does not stop the others.
   *
   * @param {RequestOf<"decide_many">["decisions"]} decisions 256 at most
   * @param {Ending} [ending]
   */
  async decide(decisions, ending) {
    const { results } = await this.call("decide_many", { decisions }, ending);
    return results;
  }

  /**
   * Says no to a form.
   *
   * @param {Shown} form
   * @param {string} [reason]
   * @param {Ending} [ending]
   */
  decline(form, reason = "", ending) {
    return this.call("decline_form", { ...shown(form), reason }, ending);
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
   * Corrects the question of an open form that the agent asked, and resolves to the form as it is now. What is not given stays. An answer
   * to the earlier question is AMENDED.
   *
   * @param {Which} form
   * @param {{title?: string, description?: string, fields?: import("./operations.js").Field[], note?: string}} change note: why, for those who were asked
   * @param {Ending} [ending]
   */
  amend(form, change, ending) {
    return this.call("amend_form", { ...about(form), ...change }, ending);
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
   * Sends words, with references as @edge:name or @name: to one recipient, or to several, to all of them or to nobody.
   *
   * @param {string | string[]} recipient
   * @param {string} text
   * @param {Ending} [ending]
   */
  send(recipient, text, ending) {
    return this.call("send", { ...(typeof recipient === "string" ? { recipient } : { recipients: recipient }), text }, ending);
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
   * Answers a message with words, which its other recipients get too as far as the agent can reach them: notTo has the rest.
   *
   * @param {Which} message
   * @param {string} text
   * @param {Ending} [ending]
   */
  replyAll(message, text, ending) {
    return this.call("reply", { ...about(message), all: true, text }, ending);
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
   * Tells the sender of a message that the agent has taken note of it. A reply does so too.
   *
   * @param {Which} message
   * @param {Ending} [ending]
   */
  async acknowledge(message, ending) {
    await this.call("acknowledge", about(message), ending);
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
   * Brings a message back into view that was dismissed.
   *
   * @param {Which} message
   * @param {Ending} [ending]
   */
  async restore(message, ending) {
    await this.call("restore_message", about(message), ending);
  }

  /**
   * Is on a form that others may answer too, for a time: they see it. CLAIMED refuses what another is on, unless it is taken over.
   *
   * @param {Which} form
   * @param {{ forMs?: number, takeOver?: boolean, release?: boolean }} [how] release ends the claim
   * @param {Ending} [ending]
   */
  claim(form, how = {}, ending) {
    return this.call("claim_form", { ...about(form), ...how }, ending);
  }

  /**
   * Takes back the agent's vote on an open form that needs several. The withdrawal is queued if the form's home cannot be
   * reached; the vote counts until that has it.
   *
   * @param {Which} form
   * @param {Ending} [ending]
   */
  withdraw(form, ending) {
    return this.call("withdraw_vote", about(form), ending);
  }

  /**
   * Makes a right to answer an open form in the agent's place. Whoever shows its secret may use it. Revoking the grant ends
   * it, with all that derive from it.
   *
   * @param {Which} form
   * @param {{ outcomes?: string[], until?: string, uses?: number, name?: string, from?: string }} [right]
   * @param {Ending} [ending]
   */
  grantAnswer(form, right = {}, ending) {
    return this.call("grant_answer", { ...about(form), ...right }, ending);
  }

  /**
   * Makes a right of the one with a secret, for its bearer to hand on. It has no more than that, its uses count for both,
   * and it ends with it.
   *
   * @param {string} secret
   * @param {{ outcomes?: string[], until?: string, uses?: number, name?: string }} [right]
   * @param {Ending} [ending]
   */
  narrowRight(secret, right = {}, ending) {
    return this.call("grant_answer", { secret, ...right }, ending);
  }

  /**
   * Answers a form by the secret of a right. It may be repeated if the response was lost.
   *
   * @param {string} secret
   * @param {string} outcome a decision of an approval, or answer or decline
   * @param {{ reason?: string, values?: Record<string, any>, texts?: { name: string, text: string }[] }} [given]
   * @param {Ending} [ending]
   */
  answerWith(secret, outcome, given = {}, ending) {
    return this.call("answer_with", { secret, outcome, ...given }, ending);
  }

  /**
   * Has the forms that come until a time forwarded to another agent, if one is given. Without a time the absence ends.
   *
   * @param {Date | string} [until]
   * @param {string} [to]
   * @param {Ending} [ending]
   */
  setAway(until, to, ending) {
    return this.call("set_away", { ...(until && { until: new Date(until).toISOString() }), ...(to && { to }) }, ending);
  }

  /**
   * Adds a member to the agent, which makes it a group, or removes one. The forms of a group are forwarded to its members.
   *
   * @param {string} agent
   * @param {boolean} [remove]
   * @param {Ending} [ending]
   */
  setMember(agent, remove, ending) {
    return this.call("set_member", { agent, ...(remove && { remove }) }, ending);
  }

  /**
   * Resolves to those to whom the agent's forms are forwarded as they come.
   *
   * @param {Ending} [ending]
   */
  standIns(ending) {
    return this.call("list_stand_ins", {}, ending);
  }

  /**
   * Takes a message out of what is pending until a time, at which it comes back unread. Without a time it comes back now.
   *
   * @param {Which} message
   * @param {Date | string} [until]
   * @param {Ending} [ending]
   */
  async snooze(message, until, ending) {
    await this.call("snooze", { ...about(message), ...(until && { until: new Date(until).toISOString() }) }, ending);
  }

  /**
   * Marks messages as read by their numbers; with none the newest 1,000 unread ones. Resolves to the number of unread messages that are left.
   *
   * @param {number[]} [numbers]
   * @param {{unread?: boolean} & Ending} [options] unread: marks them as not read
   */
  async markRead(numbers = [], { unread = false, ...ending } = {}) {
    return (await this.call("mark_read", { numbers, unread }, ending)).unread;
  }

  /**
   * Dismisses, restores or snoozes several messages at once, 256 at most. Returns those that were refused, with the error of each.
   *
   * @param {"dismiss" | "restore" | "snooze"} what
   * @param {Which[]} messages
   * @param {Ending & {until?: Date | string | number}} [options] until is for snoozed messages
   */
  async moveMessages(what, messages, { until, ...ending } = {}) {
    const sent = { do: what, messages: messages.map(about), ...(until && { until: new Date(until).toISOString() }) };
    return (await this.call("move_messages", sent, ending)).refused ?? [];
  }

  /**
   * Returns messages by what is in them.
   *
   * @param {Omit<import("./operations.js").SearchRequest, "as">} what
   * @param {Ending} [ending]
   */
  search(what, ending) {
    return this.call("search", what, ending);
  }

  /**
   * Has a message sent later: at a time, or every time of a series (a cron expression).
   *
   * @param {string} to
   * @param {string} text
   * @param {Omit<import("./operations.js").ScheduleRequest, "as" | "recipient" | "text">} when
   * @param {Ending} [ending]
   */
  schedule(to, text, when, ending) {
    return this.call("schedule", { recipient: to, text, ...when }, ending);
  }

  /**
   * Asks for a lease on files or names, as src/checkout/** or port:3000. The same request again renews it. With waitMs it waits in the
   * queue while another agent has one that overlaps: awaitLease tells when it is held.
   *
   * @param {string[]} patterns
   * @param {Omit<import("./operations.js").LeaseRequest, "as" | "patterns">} [how]
   * @param {Ending} [ending]
   */
  lease(patterns, how, ending) {
    return this.call("lease", { patterns, ...how }, ending);
  }

  /**
   * Waits until a lease is held, or has ended, which its state says then.
   *
   * @param {number} lease
   * @param {Ending} [ending]
   */
  async awaitLease(lease, ending) {
    for (;;) {
      const now = await this.call("await_lease", { lease }, ending);
      if (now.state !== "waiting") return now;
    }
  }

  /**
   * Releases a lease, or waits for it no longer.
   *
   * @param {number} lease
   * @param {Ending} [ending]
   */
  releaseLease(lease, ending) {
    return this.call("release_lease", { lease }, ending);
  }

  /**
   * Lists the agent's leases, and those by which others keep it from writing.
   *
   * @param {Ending} [ending]
   */
  async leases(ending) {
    return (await this.call("list_leases", {}, ending)).leases;
  }

  /**
   * Lists the teams that the agent is in, and who is there.
   *
   * @param {Ending} [ending]
   */
  async teams(ending) {
    return (await this.call("list_teams", {}, ending)).teams;
  }

  /**
   * Adds agents to a team of the host's, which it makes if there is none with the name, and removes others.
   *
   * @param {string} team
   * @param {{add?: string[], remove?: string[]}} change
   * @param {Ending} [ending]
   */
  async setTeam(team, change, ending) {
    return (await this.call("set_team", { team, ...change }, ending)).teams;
  }

  /**
   * Ends a team of the host's, which all members leave.
   *
   * @param {string} team
   * @param {Ending} [ending]
   */
  async endTeam(team, ending) {
    await this.call("end_team", { team }, ending);
  }

  /**
   * Lists the topics that the agent may join.
   *
   * @param {Ending} [ending]
   */
  async topics(ending) {
    return (await this.call("list_topics", {}, ending)).topics;
  }

  /**
   * Makes a topic of the host's: for all its agents, or for the members of a team.
   *
   * @param {string} topic
   * @param {string} [team]
   * @param {Ending} [ending]
   */
  makeTopic(topic, team, ending) {
    return this.call("make_topic", { topic, ...(team && { team }) }, ending);
  }

  /**
   * Ends a topic of the host's.
   *
   * @param {string} topic
   * @param {Ending} [ending]
   */
  async endTopic(topic, ending) {
    await this.call("end_topic", { topic }, ending);
  }

  /**
   * Has the agent get the posts of a topic: as digests, everyMs at most after a post (default an hour), or as a stream.
   *
   * @param {string} topic
   * @param {{everyMs?: number, stream?: boolean}} [how]
   * @param {Ending} [ending]
   */
  subscribe(topic, how, ending) {
    return this.call("subscribe", { topic, ...how }, ending);
  }

  /**
   * Ends the agent's subscription.
   *
   * @param {string} topic
   * @param {Ending} [ending]
   */
  unsubscribe(topic, ending) {
    return this.call("subscribe", { topic, end: true }, ending);
  }

  /**
   * Sends a post to a topic. With the same key it is posted once.
   *
   * @param {string} topic
   * @param {string} text
   * @param {Omit<import("./operations.js").PostRequest, "as" | "topic" | "text">} [more]
   * @param {Ending} [ending]
   */
  post(topic, text, more, ending) {
    return this.call("post", { topic, text, ...more }, ending);
  }

  /**
   * Returns the posts of a topic that came last, the oldest first: 100 at most, before a number if that is given.
   *
   * @param {string} topic
   * @param {{before?: number, limit?: number, post?: number}} [which]
   * @param {Ending} [ending]
   */
  posts(topic, which, ending) {
    return this.call("list_posts", { topic, ...which }, ending);
  }

  /**
   * Resolves to how mail reaches the sessions of the coding agent.
   *
   * @param {Ending} [ending]
   */
  attention(ending) {
    return this.call("get_attention", {}, ending);
  }

  /**
   * Sets how mail reaches the sessions of the coding agent. What is left out stays.
   *
   * @param {Omit<import("./operations.js").SetAttentionRequest, "as">} change
   * @param {Ending} [ending]
   */
  setAttention(change, ending) {
    return this.call("set_attention", change, ending);
  }

  /**
   * Stores a file of 32 MiB at most, part by part, and resolves to what a message or an answer says of it.
   *
   * @param {string} name without a path
   * @param {Uint8Array} content
   * @param {{type?: string} & Ending} [options] type: its media type
   */
  async storeFile(name, content, { type, ...ending } = {}) {
    /** @type {import("./operations.js").StoredFile} */
    let at = { upload: "", offset: 0, size: content.length };
    do {
      const part = content.subarray(at.offset, at.offset + partBytes);
      at = await this.call("store_file", { ...(at.upload ? { upload: at.upload } : { size: content.length }), offset: at.offset, data: toBase64(part) }, ending);
    } while (!at.digest);
    return { digest: at.digest, name, size: content.length, ...(type && { type }) };
  }

  /**
   * Resolves to the content of a file that a message of the agent carries, or the answer to a form. It rejects with FILE_DAMAGED if what the node
   * gave is not that.
   *
   * @param {Which} message
   * @param {import("./operations.js").File} file
   * @param {Ending} [ending]
   */
  async fetchFile(message, file, ending) {
    const content = new Uint8Array(file.size);
    let offset = 0;
    for (;;) {
      const part = fromBase64((await this.call("fetch_file", { ...about(message), file: file.digest, offset }, ending)).data ?? "");
      if (part.length === 0 || offset + part.length > content.length) break;
      content.set(part, offset);
      offset += part.length;
    }
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
    if (offset !== content.length || Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("") !== file.digest) {
      throw new ParleyError("FILE_DAMAGED", `what the node gave is not the file ${JSON.stringify(file.name)}`);
    }
    return content;
  }

  /**
   * Counts the messages that are pending, snoozed, done, unread, and all.
   *
   * @param {Ending} [ending]
   */
  counts(ending) {
    return this.call("count_messages", {}, ending);
  }

  /**
   * Keeps the agent's unfinished answer to a form, until the form ends; no texts remove it. Resolves when it is on the node's disk.
   *
   * @param {Which} form
   * @param {Record<string, string | string[]>} texts several for a field for several choices
   * @param {Ending} [ending]
   */
  async saveDraft(form, texts, ending) {
    await this.call("save_draft", { ...about(form), texts: listOf(texts) }, ending);
  }

  /**
   * Returns the agent's unfinished answer to a form. It has no texts if there is none.
   *
   * @param {Which} form
   * @param {Ending} [ending]
   */
  draft(form, ending) {
    return this.call("fetch_draft", about(form), ending);
  }

  /**
   * Keeps the unfinished text of a message to an agent, or of a reply to a message, until it is sent; an empty one removes it.
   *
   * @param {{to: string} | {reply: Which}} place
   * @param {string} text
   * @param {Ending} [ending]
   */
  async saveMessageDraft(place, text, ending) {
    await this.call("save_draft", { ...("to" in place ? place : about(place.reply)), text }, ending);
  }

  /**
   * Returns the unfinished text of a message to an agent, or of a reply to a message.
   *
   * @param {{to: string} | {reply: Which}} place
   * @param {Ending} [ending]
   */
  async messageDraft(place, ending) {
    const { text } = await this.call("fetch_draft", "to" in place ? place : { ...about(place.reply), reply: true }, ending);
    return text ?? "";
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
    /** @type {string[]} */
    const all = [];
    for (let after = ""; ; ) {
      const { names, next } = await this.call("list_names", { path, after }, ending);
      all.push(...names);
      if (!next) return all;
      after = next;
    }
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
   * Lists the agents of the node that the client's agent sees, the oldest first.
   *
   * @param {AgentFilter} [filter]
   * @param {Ending} [ending]
   * @returns {Promise<Agent[]>}
   */
  async agents(filter = {}, ending) {
    /** @type {Agent[]} */
    const all = [];
    for (let after = ""; ; ) {
      const { agents, next } = await this.call("fetch_agents", { filter, after }, ending);
      all.push(...agents.map(known));
      if (!next) return all;
      after = next;
    }
  }

  /**
   * Gives an agent by its ID, a unique beginning of that, a name or an exact title. It throws AGENT_NOT_FOUND and AMBIGUOUS.
   *
   * @param {string} agentId
   * @param {Ending} [ending]
   * @returns {Promise<Agent>}
   */
  async agent(agentId, ending) {
    const { agent, error } = await this.call("fetch_agent", { agentId }, ending);
    refuse(error);
    if (!agent) throw new ParleyError("AGENT_NOT_FOUND", `there is no agent ${JSON.stringify(agentId)}`);
    return known(agent);
  }

  /**
   * Sends a message to an agent at work, once, and resolves when it is accepted: it is on disk, and the agent's program runs for it, or
   * it is queued, or waits for whoever serves an agent without a program. It throws AGENT_ARCHIVED, RATE_LIMITED, and what keeps a program from running.
   *
   * @param {string} agentId
   * @param {string} text
   * @param {{messageId?: string} & Ending} [how] the same messageId is the same message
   * @returns {Promise<{agentId: string, message: string, queued: boolean}>}
   */
  async prompt(agentId, text, { messageId, signal } = {}) {
    const got = await this.call("send_agent_message", { agentId, text, messageId }, signal && { signal });
    refuse(got.error);
    if (!got.accepted) throw new ParleyError("NOT_PERMITTED", `agent ${got.agentId} did not accept the message`);
    return { agentId: got.agentId ?? agentId, message: got.message ?? "", queued: got.queued ?? false };
  }

  /**
   * Waits until an agent has nothing more to do, at once if it has not, also through restarts of the node. The agent goes on when the
   * signal is aborted.
   *
   * @param {string} agentId
   * @param {Ending} [ending]
   * @returns {Promise<{status: Finish, final: Agent}>}
   */
  async waitForAgent(agentId, ending) {
    for (;;) {
      const { status, final } = await this.call("wait_for_finish", { agentId, timeoutMs: turnTime }, ending);
      if (status !== "timeout") return { status: /** @type {Finish} */ (status), final: known(final) };
    }
  }

  /**
   * Yields what an agent's program has put out after a cursor, the oldest first, and with follow what comes, until the signal, also through
   * restarts of the node. To go on after the cursor of a piece yields what came after it.
   *
   * @param {string} agentId
   * @param {{after?: number, follow?: boolean} & Ending} [how]
   * @returns {AsyncGenerator<OutputPiece, void, void>}
   */
  output(agentId, how = {}) {
    return readOutput(this.#wire, agentId, how);
  }

  /**
   * Ends the run of an agent, and what it was asking.
   *
   * @param {string} agentId
   * @param {Ending} [ending]
   */
  async stop(agentId, ending) {
    await this.call("stop_agent", { agentId }, ending);
  }

  /**
   * Puts an agent away: it takes no more messages.
   *
   * @param {string} agentId
   * @param {Ending} [ending]
   */
  async archive(agentId, ending) {
    await this.call("archive_agent", { agentId }, ending);
  }

  /**
   * Says what the client's agent, which has no program but this client, does.
   *
   * @param {"initializing" | "idle" | "running" | "error"} status
   * @param {string} [error] what went wrong
   * @param {Ending} [ending]
   */
  async report(status, error = "", ending) {
    await this.call("set_status", { status, error }, ending);
  }

  /**
   * Replaces what the client's agent is known by. What is not mentioned stays as it is.
   *
   * @param {{title?: string, labels?: Record<string, string>}} description
   * @param {Ending} [ending]
   */
  async describe(description, ending) {
    await this.call("describe_agent", description, ending);
  }

  /**
   * Stops an agent, or starts it again. Stopped, what waits for its program stays queued.
   *
   * @param {string} agentId
   * @param {boolean} hold
   * @param {Ending} [ending]
   */
  async hold(agentId, hold, ending) {
    await this.call("hold_agent", { agentId, hold }, ending);
  }

  /**
   * Says what becomes of an agent's calls that need permission.
   *
   * @param {string} agentId
   * @param {Policy} policy
   * @param {Ending} [ending]
   */
  async setPolicy(agentId, policy, ending) {
    await this.call("set_policy", { agentId, policy }, ending);
  }

  /**
   * Yields agents as they are, then each that changes, until the signal, also through restarts of the node. It needs a WebSocket: a
   * browser, Node 22, or one in the options.
   *
   * @param {{labels?: Record<string, string>, agentId?: string} & Ending} [of]
   * @returns {AsyncGenerator<AgentUpdate, void, void>}
   */
  followAgents(of = {}) {
    return followAgents(this.#wire, of);
  }
}

/**
 * Returns texts by name as a list.
 *
 * @param {Record<string, string | string[]>} texts
 */
function listOf(texts) {
  return Object.entries(texts).flatMap(([name, text]) => [text].flat().map((text) => ({ name, text })));
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

/**
 * Returns the members of a request that name a form, and the revision that a message shows.
 *
 * @param {Shown} form
 */
function shown(form) {
  return typeof form === "object" ? { id: form.messageId, revision: form.revision ?? 1 } : about(form);
}

/**
 * @param {import("./operations.js").Snapshot} snapshot
 * @returns {Agent}
 */
function known(snapshot) {
  return /** @type {Agent} */ (snapshot);
}

/** @param {import("./operations.js").Refusal | undefined} error */
function refuse(error) {
  if (error) throw new ParleyError(error.code, error.message, error);
}

const partBytes = 96 * 1024; // of a file that is stored

/**
 * @param {Uint8Array} bytes
 */
function toBase64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(text);
}

/**
 * @param {string} text
 */
function fromBase64(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}
