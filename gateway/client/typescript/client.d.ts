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
export function connect(options: Options): Promise<Client>;
/** Calls a node's operations for one agent. Its connection opens and ends by itself. */
export class Client {
    /** @param {Wire} wire */
    constructor(wire: Wire);
    /**
     * Connects to the same node for another agent, over the same connection. It throws UNAUTHENTICATED if the token is not good.
     *
     * @param {{token?: string, as?: string} & Ending} agent its token, or the name under which the node's host holds it
     * @returns {Promise<Client>}
     */
    signIn({ token, as, signal }: {
        token?: string;
        as?: string;
    } & Ending): Promise<Client>;
    /**
     * Performs any of the node's operations. What only looks is made again after a lost connection, and what is sent or asked once by its key, which it is given.
     *
     * @template {keyof Operations} N
     * @param {N} operation
     * @param {RequestOf<N>} request
     * @param {Ending} [ending]
     * @returns {Promise<Operations[N]["response"]>}
     */
    call<N extends keyof Operations>(operation: N, request: RequestOf<N>, { signal }?: Ending): Promise<Operations[N]["response"]>;
    /**
     * Sends a form, once, and resolves when it is accepted: it is on the node's disk. Who was asked may answer at any time from then on.
     *
     * @param {RequestOf<"form">} form
     * @param {Ending} [ending]
     */
    ask(form: RequestOf<"form">, ending?: Ending): Promise<Asked>;
    /**
     * Asks for a capability in words, once. Its answer is a Ref, under the name "value".
     *
     * @param {RequestOf<"request">} request
     * @param {Ending} [ending]
     */
    request(request: RequestOf<"request">, ending?: Ending): Promise<Asked>;
    /**
     * Asks whether a tool may be called with an input, once; with attended only where somebody follows the mail of who would decide.
     *
     * @param {RequestOf<"approve">} approval
     * @param {Ending} [ending]
     */
    approve(approval: RequestOf<"approve">, ending?: Ending): Promise<Permission>;
    /**
     * Waits until a form has ended, at once if it has, also through restarts of the node.
     *
     * @param {Which} form
     * @param {Ending} [ending]
     * @returns {Promise<Outcome>}
     */
    await(form: Which, { signal }?: Ending): Promise<Outcome>;
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
    awaitState(message: Which, until: "delivered" | "offered" | "shown" | "handled", { all, signal }?: Ending & {
        all?: boolean;
    }): Promise<Outcome>;
    /**
     * Answers a form. A wrong answer is INVALID_ANSWER, with what is wrong with each field, and leaves the form open.
     *
     * @param {Shown} form
     * @param {Record<string, unknown>} values by field; a capability is a Ref, or a name of the answerer's
     * @param {Ending} [ending]
     */
    answer(form: Shown, values: Record<string, unknown>, ending?: Ending): Promise<import("./operations.js").Outcome>;
    /**
     * Answers a form with texts, which are read by the fields' types, as on a command line.
     *
     * @param {Shown} form
     * @param {Record<string, string | string[]>} texts several for a field for several choices
     * @param {Ending} [ending]
     */
    answerText(form: Shown, texts: Record<string, string | string[]>, ending?: Ending): Promise<import("./operations.js").Outcome>;
    /**
     * Decides on approvals, each by the digest of the call that was shown. The result of each is its outcome or its error: one
     * that is refused does not stop the others.
     *
     * @param {RequestOf<"decide_many">["decisions"]} decisions 256 at most
     * @param {Ending} [ending]
     */
    decide(decisions: RequestOf<"decide_many">["decisions"], ending?: Ending): Promise<import("./operations.js").Decided[]>;
    /**
     * Says no to a form.
     *
     * @param {Shown} form
     * @param {string} [reason]
     * @param {Ending} [ending]
     */
    decline(form: Shown, reason?: string, ending?: Ending): Promise<import("./operations.js").Outcome>;
    /**
     * Takes back a form that the agent asked.
     *
     * @param {Which} form
     * @param {string} [reason]
     * @param {Ending} [ending]
     */
    cancel(form: Which, reason?: string, ending?: Ending): Promise<import("./operations.js").Outcome>;
    /**
     * Corrects the question of an open form that the agent asked, and resolves to the form as it is now. What is not given stays. An answer
     * to the earlier question is AMENDED.
     *
     * @param {Which} form
     * @param {{title?: string, description?: string, fields?: import("./operations.js").Field[], note?: string}} change note: why, for those who were asked
     * @param {Ending} [ending]
     */
    amend(form: Which, change: {
        title?: string;
        description?: string;
        fields?: import("./operations.js").Field[];
        note?: string;
    }, ending?: Ending): Promise<import("./operations.js").Envelope>;
    /**
     * Hands a form on: whoever answers first settles it.
     *
     * @param {Which} form
     * @param {string} recipient
     * @param {Ending} [ending]
     */
    forward(form: Which, recipient: string, ending?: Ending): Promise<void>;
    /**
     * Gives what was requested: what the agent holds under a name.
     *
     * @param {Which} request
     * @param {string} name
     * @param {Ending} [ending]
     */
    resolve(request: Which, name: string, ending?: Ending): Promise<import("./operations.js").Outcome>;
    /**
     * Says no to a request.
     *
     * @param {Which} request
     * @param {string} [reason]
     * @param {Ending} [ending]
     */
    reject(request: Which, reason?: string, ending?: Ending): Promise<import("./operations.js").Outcome>;
    /**
     * Sends words, with references as @edge:name or @name: to one recipient, or to several, to all of them or to nobody.
     *
     * @param {string | string[]} recipient
     * @param {string} text
     * @param {Ending} [ending]
     */
    send(recipient: string | string[], text: string, ending?: Ending): Promise<import("./operations.js").Sent>;
    /**
     * Answers a message with words.
     *
     * @param {Which} message
     * @param {string} text
     * @param {Ending} [ending]
     */
    reply(message: Which, text: string, ending?: Ending): Promise<import("./operations.js").Sent>;
    /**
     * Answers a message with words, which its other recipients get too as far as the agent can reach them: notTo has the rest.
     *
     * @param {Which} message
     * @param {string} text
     * @param {Ending} [ending]
     */
    replyAll(message: Which, text: string, ending?: Ending): Promise<import("./operations.js").Sent>;
    /**
     * Keeps what a message carries under an edge.
     *
     * @param {Which} message
     * @param {string} edge
     * @param {string} [name] default: the edge's own
     * @param {Ending} [ending]
     */
    adopt(message: Which, edge: string, name?: string, ending?: Ending): Promise<void>;
    /**
     * Tells the sender of a message that the agent has taken note of it. A reply does so too.
     *
     * @param {Which} message
     * @param {Ending} [ending]
     */
    acknowledge(message: Which, ending?: Ending): Promise<void>;
    /**
     * Drops a message from view.
     *
     * @param {Which} message
     * @param {Ending} [ending]
     */
    dismiss(message: Which, ending?: Ending): Promise<void>;
    /**
     * Brings a message back into view that was dismissed.
     *
     * @param {Which} message
     * @param {Ending} [ending]
     */
    restore(message: Which, ending?: Ending): Promise<void>;
    /**
     * Is on a form that others may answer too, for a time: they see it. CLAIMED refuses what another is on, unless it is taken over.
     *
     * @param {Which} form
     * @param {{ forMs?: number, takeOver?: boolean, release?: boolean }} [how] release ends the claim
     * @param {Ending} [ending]
     */
    claim(form: Which, how?: {
        forMs?: number;
        takeOver?: boolean;
        release?: boolean;
    }, ending?: Ending): Promise<import("./operations.js").Claimed>;
    /**
     * Takes back the agent's vote on an open form that needs several. The withdrawal is queued if the form's home cannot be
     * reached; the vote counts until that has it.
     *
     * @param {Which} form
     * @param {Ending} [ending]
     */
    withdraw(form: Which, ending?: Ending): Promise<import("./operations.js").Withdrawn>;
    /**
     * Makes a right to answer an open form in the agent's place. Whoever shows its secret may use it. Revoking the grant ends
     * it, with all that derive from it.
     *
     * @param {Which} form
     * @param {{ outcomes?: string[], until?: string, uses?: number, name?: string, from?: string }} [right]
     * @param {Ending} [ending]
     */
    grantAnswer(form: Which, right?: {
        outcomes?: string[];
        until?: string;
        uses?: number;
        name?: string;
        from?: string;
    }, ending?: Ending): Promise<import("./operations.js").AnswerRight>;
    /**
     * Makes a right of the one with a secret, for its bearer to hand on. It has no more than that, its uses count for both,
     * and it ends with it.
     *
     * @param {string} secret
     * @param {{ outcomes?: string[], until?: string, uses?: number, name?: string }} [right]
     * @param {Ending} [ending]
     */
    narrowRight(secret: string, right?: {
        outcomes?: string[];
        until?: string;
        uses?: number;
        name?: string;
    }, ending?: Ending): Promise<import("./operations.js").AnswerRight>;
    /**
     * Answers a form by the secret of a right. It may be repeated if the response was lost.
     *
     * @param {string} secret
     * @param {string} outcome a decision of an approval, or answer or decline
     * @param {{ reason?: string, values?: Record<string, any>, texts?: { name: string, text: string }[] }} [given]
     * @param {Ending} [ending]
     */
    answerWith(secret: string, outcome: string, given?: {
        reason?: string;
        values?: Record<string, any>;
        texts?: {
            name: string;
            text: string;
        }[];
    }, ending?: Ending): Promise<import("./operations.js").Outcome>;
    /**
     * Has the forms that come until a time forwarded to another agent, if one is given. Without a time the absence ends.
     *
     * @param {Date | string} [until]
     * @param {string} [to]
     * @param {Ending} [ending]
     */
    setAway(until?: Date | string, to?: string, ending?: Ending): Promise<import("./operations.js").StandIns>;
    /**
     * Adds a member to the agent, which makes it a group, or removes one. The forms of a group are forwarded to its members.
     *
     * @param {string} agent
     * @param {boolean} [remove]
     * @param {Ending} [ending]
     */
    setMember(agent: string, remove?: boolean, ending?: Ending): Promise<import("./operations.js").StandIns>;
    /**
     * Resolves to those to whom the agent's forms are forwarded as they come.
     *
     * @param {Ending} [ending]
     */
    standIns(ending?: Ending): Promise<import("./operations.js").StandIns>;
    /**
     * Takes a message out of what is pending until a time, at which it comes back unread. Without a time it comes back now.
     *
     * @param {Which} message
     * @param {Date | string} [until]
     * @param {Ending} [ending]
     */
    snooze(message: Which, until?: Date | string, ending?: Ending): Promise<void>;
    /**
     * Marks messages as read by their numbers; with none the newest 1,000 unread ones. Resolves to the number of unread messages that are left.
     *
     * @param {number[]} [numbers]
     * @param {{unread?: boolean} & Ending} [options] unread: marks them as not read
     */
    markRead(numbers?: number[], { unread, ...ending }?: {
        unread?: boolean;
    } & Ending): Promise<number>;
    /**
     * Dismisses, restores or snoozes several messages at once, 256 at most. Returns those that were refused, with the error of each.
     *
     * @param {"dismiss" | "restore" | "snooze"} what
     * @param {Which[]} messages
     * @param {Ending & {until?: Date | string | number}} [options] until is for snoozed messages
     */
    moveMessages(what: "dismiss" | "restore" | "snooze", messages: Which[], { until, ...ending }?: Ending & {
        until?: Date | string | number;
    }): Promise<import("./operations.js").Unmoved[]>;
    /**
     * Returns messages by what is in them.
     *
     * @param {Omit<import("./operations.js").SearchRequest, "as">} what
     * @param {Ending} [ending]
     */
    search(what: Omit<import("./operations.js").SearchRequest, "as">, ending?: Ending): Promise<import("./operations.js").Found>;
    /**
     * Has a message sent later: at a time, or every time of a series (a cron expression).
     *
     * @param {string} to
     * @param {string} text
     * @param {Omit<import("./operations.js").ScheduleRequest, "as" | "recipient" | "text">} when
     * @param {Ending} [ending]
     */
    schedule(to: string, text: string, when: Omit<import("./operations.js").ScheduleRequest, "as" | "recipient" | "text">, ending?: Ending): Promise<import("./operations.js").Schedule>;
    /**
     * Asks for a lease on files or names, as src/checkout/** or port:3000. The same request again renews it. With waitMs it waits in the
     * queue while another agent has one that overlaps: awaitLease tells when it is held.
     *
     * @param {string[]} patterns
     * @param {Omit<import("./operations.js").LeaseRequest, "as" | "patterns">} [how]
     * @param {Ending} [ending]
     */
    lease(patterns: string[], how?: Omit<import("./operations.js").LeaseRequest, "as" | "patterns">, ending?: Ending): Promise<import("./operations.js").Lease>;
    /**
     * Waits until a lease is held, or has ended, which its state says then.
     *
     * @param {number} lease
     * @param {Ending} [ending]
     */
    awaitLease(lease: number, ending?: Ending): Promise<import("./operations.js").Lease>;
    /**
     * Releases a lease, or waits for it no longer.
     *
     * @param {number} lease
     * @param {Ending} [ending]
     */
    releaseLease(lease: number, ending?: Ending): Promise<import("./operations.js").Done>;
    /**
     * Lists the agent's leases, and those by which others keep it from writing.
     *
     * @param {Ending} [ending]
     */
    leases(ending?: Ending): Promise<import("./operations.js").Lease[]>;
    /**
     * Lists the teams that the agent is in, and who is there.
     *
     * @param {Ending} [ending]
     */
    teams(ending?: Ending): Promise<import("./operations.js").Team[]>;
    /**
     * Adds agents to a team of the host's, which it makes if there is none with the name, and removes others.
     *
     * @param {string} team
     * @param {{add?: string[], remove?: string[]}} change
     * @param {Ending} [ending]
     */
    setTeam(team: string, change: {
        add?: string[];
        remove?: string[];
    }, ending?: Ending): Promise<import("./operations.js").Team[]>;
    /**
     * Ends a team of the host's, which all members leave.
     *
     * @param {string} team
     * @param {Ending} [ending]
     */
    endTeam(team: string, ending?: Ending): Promise<void>;
    /**
     * Lists the topics that the agent may join.
     *
     * @param {Ending} [ending]
     */
    topics(ending?: Ending): Promise<import("./operations.js").Topic[]>;
    /**
     * Makes a topic of the host's: for all its agents, or for the members of a team.
     *
     * @param {string} topic
     * @param {string} [team]
     * @param {Ending} [ending]
     */
    makeTopic(topic: string, team?: string, ending?: Ending): Promise<import("./operations.js").Topic>;
    /**
     * Ends a topic of the host's.
     *
     * @param {string} topic
     * @param {Ending} [ending]
     */
    endTopic(topic: string, ending?: Ending): Promise<void>;
    /**
     * Has the agent get the posts of a topic: as digests, everyMs at most after a post (default an hour), or as a stream.
     *
     * @param {string} topic
     * @param {{everyMs?: number, stream?: boolean}} [how]
     * @param {Ending} [ending]
     */
    subscribe(topic: string, how?: {
        everyMs?: number;
        stream?: boolean;
    }, ending?: Ending): Promise<import("./operations.js").Topic>;
    /**
     * Ends the agent's subscription.
     *
     * @param {string} topic
     * @param {Ending} [ending]
     */
    unsubscribe(topic: string, ending?: Ending): Promise<import("./operations.js").Topic>;
    /**
     * Sends a post to a topic. With the same key it is posted once.
     *
     * @param {string} topic
     * @param {string} text
     * @param {Omit<import("./operations.js").PostRequest, "as" | "topic" | "text">} [more]
     * @param {Ending} [ending]
     */
    post(topic: string, text: string, more?: Omit<import("./operations.js").PostRequest, "as" | "topic" | "text">, ending?: Ending): Promise<import("./operations.js").Sent>;
    /**
     * Returns the posts of a topic that came last, the oldest first: 100 at most, before a number if that is given.
     *
     * @param {string} topic
     * @param {{before?: number, limit?: number, post?: number}} [which]
     * @param {Ending} [ending]
     */
    posts(topic: string, which?: {
        before?: number;
        limit?: number;
        post?: number;
    }, ending?: Ending): Promise<import("./operations.js").TopicPosts>;
    /**
     * Resolves to how mail reaches the sessions of the coding agent.
     *
     * @param {Ending} [ending]
     */
    attention(ending?: Ending): Promise<import("./operations.js").Attention>;
    /**
     * Sets how mail reaches the sessions of the coding agent. What is left out stays.
     *
     * @param {Omit<import("./operations.js").SetAttentionRequest, "as">} change
     * @param {Ending} [ending]
     */
    setAttention(change: Omit<import("./operations.js").SetAttentionRequest, "as">, ending?: Ending): Promise<import("./operations.js").Attention>;
    /**
     * Stores a file of 32 MiB at most, part by part, and resolves to what a message or an answer says of it.
     *
     * @param {string} name without a path
     * @param {Uint8Array} content
     * @param {{type?: string} & Ending} [options] type: its media type
     */
    storeFile(name: string, content: Uint8Array, { type, ...ending }?: {
        type?: string;
    } & Ending): Promise<{
        type?: string | undefined;
        digest: string;
        name: string;
        size: number;
    }>;
    /**
     * Resolves to the content of a file that a message of the agent carries, or the answer to a form. It rejects with FILE_DAMAGED if what the node
     * gave is not that.
     *
     * @param {Which} message
     * @param {import("./operations.js").File} file
     * @param {Ending} [ending]
     */
    fetchFile(message: Which, file: import("./operations.js").File, ending?: Ending): Promise<Uint8Array<ArrayBuffer>>;
    /**
     * Counts the messages that are pending, snoozed, done, unread, and all.
     *
     * @param {Ending} [ending]
     */
    counts(ending?: Ending): Promise<import("./operations.js").MessageCounts>;
    /**
     * Keeps the agent's unfinished answer to a form, until the form ends; no texts remove it. Resolves when it is on the node's disk.
     *
     * @param {Which} form
     * @param {Record<string, string | string[]>} texts several for a field for several choices
     * @param {Ending} [ending]
     */
    saveDraft(form: Which, texts: Record<string, string | string[]>, ending?: Ending): Promise<void>;
    /**
     * Returns the agent's unfinished answer to a form. It has no texts if there is none.
     *
     * @param {Which} form
     * @param {Ending} [ending]
     */
    draft(form: Which, ending?: Ending): Promise<import("./operations.js").Draft>;
    /**
     * Keeps the unfinished text of a message to an agent, or of a reply to a message, until it is sent; an empty one removes it.
     *
     * @param {{to: string} | {reply: Which}} place
     * @param {string} text
     * @param {Ending} [ending]
     */
    saveMessageDraft(place: {
        to: string;
    } | {
        reply: Which;
    }, text: string, ending?: Ending): Promise<void>;
    /**
     * Returns the unfinished text of a message to an agent, or of a reply to a message.
     *
     * @param {{to: string} | {reply: Which}} place
     * @param {Ending} [ending]
     */
    messageDraft(place: {
        to: string;
    } | {
        reply: Which;
    }, ending?: Ending): Promise<string>;
    /**
     * @param {Which} message
     * @param {Ending} [ending]
     */
    message(message: Which, ending?: Ending): Promise<import("./operations.js").Envelope>;
    /**
     * Lists the messages of a view by number. Without one that is what was received and not dismissed.
     *
     * @param {View} [view]
     * @param {Ending} [ending]
     */
    inbox(view?: View, ending?: Ending): Promise<import("./operations.js").Envelope[]>;
    /**
     * Yields the messages of a view as they are after a cursor, then each that comes or changes, until the signal. It goes on through
     * restarts of the node. To follow from the cursor of a message yields what came after it, each change once, in this program or the next.
     *
     * @param {{cursor?: string, view?: View} & Ending} [from]
     * @returns {AsyncGenerator<{message: Message, cursor: string}, void, void>}
     */
    follow(from?: {
        cursor?: string;
        view?: View;
    } & Ending): AsyncGenerator<{
        message: Message;
        cursor: string;
    }, void, void>;
    /**
     * Lists the names that the agent holds, or those within what stands under a path.
     *
     * @param {string} [path]
     * @param {Ending} [ending]
     */
    names(path?: string, ending?: Ending): Promise<string[]>;
    /**
     * Gives the value under a name; a reference is a Ref.
     *
     * @param {string} name
     * @param {{reveal?: boolean} & Ending} [how]
     */
    lookup(name: string, { reveal, signal }?: {
        reveal?: boolean;
    } & Ending): Promise<unknown>;
    /**
     * Puts a value under a name: the value itself, or the text of a locator of what the agent may reach already.
     *
     * @param {string} name
     * @param {unknown} value
     * @param {Ending} [ending]
     */
    store(name: string, value: unknown, ending?: Ending): Promise<void>;
    /**
     * Takes a name away.
     *
     * @param {string} name
     * @param {Ending} [ending]
     */
    remove(name: string, ending?: Ending): Promise<void>;
    /**
     * Lists the agents of the node that the client's agent sees, the oldest first.
     *
     * @param {AgentFilter} [filter]
     * @param {Ending} [ending]
     * @returns {Promise<Agent[]>}
     */
    agents(filter?: AgentFilter, ending?: Ending): Promise<Agent[]>;
    /**
     * Gives an agent by its ID, a unique beginning of that, a name or an exact title. It throws AGENT_NOT_FOUND and AMBIGUOUS.
     *
     * @param {string} agentId
     * @param {Ending} [ending]
     * @returns {Promise<Agent>}
     */
    agent(agentId: string, ending?: Ending): Promise<Agent>;
    /**
     * Sends a message to an agent at work, once, and resolves when it is accepted: it is on disk, and the agent's program runs for it, or
     * it is queued, or waits for whoever serves an agent without a program. It throws AGENT_ARCHIVED, RATE_LIMITED, and what keeps a program from running.
     *
     * @param {string} agentId
     * @param {string} text
     * @param {{messageId?: string} & Ending} [how] the same messageId is the same message
     * @returns {Promise<{agentId: string, message: string, queued: boolean}>}
     */
    prompt(agentId: string, text: string, { messageId, signal }?: {
        messageId?: string;
    } & Ending): Promise<{
        agentId: string;
        message: string;
        queued: boolean;
    }>;
    /**
     * Waits until an agent has nothing more to do, at once if it has not, also through restarts of the node. The agent goes on when the
     * signal is aborted.
     *
     * @param {string} agentId
     * @param {Ending} [ending]
     * @returns {Promise<{status: Finish, final: Agent}>}
     */
    waitForAgent(agentId: string, ending?: Ending): Promise<{
        status: Finish;
        final: Agent;
    }>;
    /**
     * Yields what an agent's program has put out after a cursor, the oldest first, and with follow what comes, until the signal, also through
     * restarts of the node. To go on after the cursor of a piece yields what came after it.
     *
     * @param {string} agentId
     * @param {{after?: number, follow?: boolean} & Ending} [how]
     * @returns {AsyncGenerator<OutputPiece, void, void>}
     */
    output(agentId: string, how?: {
        after?: number;
        follow?: boolean;
    } & Ending): AsyncGenerator<OutputPiece, void, void>;
    /**
     * Ends the run of an agent, and what it was asking.
     *
     * @param {string} agentId
     * @param {Ending} [ending]
     */
    stop(agentId: string, ending?: Ending): Promise<void>;
    /**
     * Puts an agent away: it takes no more messages.
     *
     * @param {string} agentId
     * @param {Ending} [ending]
     */
    archive(agentId: string, ending?: Ending): Promise<void>;
    /**
     * Says what the client's agent, which has no program but this client, does.
     *
     * @param {"initializing" | "idle" | "running" | "error"} status
     * @param {string} [error] what went wrong
     * @param {Ending} [ending]
     */
    report(status: "initializing" | "idle" | "running" | "error", error?: string, ending?: Ending): Promise<void>;
    /**
     * Replaces what the client's agent is known by. What is not mentioned stays as it is.
     *
     * @param {{title?: string, labels?: Record<string, string>}} description
     * @param {Ending} [ending]
     */
    describe(description: {
        title?: string;
        labels?: Record<string, string>;
    }, ending?: Ending): Promise<void>;
    /**
     * Stops an agent, or starts it again. Stopped, what waits for its program stays queued.
     *
     * @param {string} agentId
     * @param {boolean} hold
     * @param {Ending} [ending]
     */
    hold(agentId: string, hold: boolean, ending?: Ending): Promise<void>;
    /**
     * Says what becomes of an agent's calls that need permission.
     *
     * @param {string} agentId
     * @param {Policy} policy
     * @param {Ending} [ending]
     */
    setPolicy(agentId: string, policy: Policy, ending?: Ending): Promise<void>;
    /**
     * Yields agents as they are, then each that changes, until the signal, also through restarts of the node. It needs a WebSocket: a
     * browser, Node 22, or one in the options.
     *
     * @param {{labels?: Record<string, string>, agentId?: string} & Ending} [of]
     * @returns {AsyncGenerator<AgentUpdate, void, void>}
     */
    followAgents(of?: {
        labels?: Record<string, string>;
        agentId?: string;
    } & Ending): AsyncGenerator<AgentUpdate, void, void>;
    #private;
}
export type Operations = import("./operations.js").Operations;
export type Message = import("./operations.js").Envelope;
export type Outcome = import("./operations.js").Outcome;
export type Sent = import("./operations.js").Sent;
export type Field = import("./operations.js").Field;
export type Draft = import("./operations.js").Draft;
export type MessageCounts = import("./operations.js").MessageCounts;
/**
 * all: also what the agent sent, dismissed and snoozed; pending: only what waits for its answer; overdue: only what was not acknowledged in time; snoozed, done, unread, sent: only that
 */
export type View = {
    all?: boolean;
    pending?: boolean;
    snoozed?: boolean;
    done?: boolean;
    unread?: boolean;
    sent?: boolean;
    overdue?: boolean;
};
export type Options = import("./wire.js").Options;
export type Ending = import("./wire.js").Ending;
export type Agent = import("./agents.js").Agent;
export type AgentFilter = import("./agents.js").AgentFilter;
export type AgentUpdate = import("./agents.js").AgentUpdate;
/**
 * stream is output, errors or notice; the text may begin and end within a line
 */
export type OutputPiece = import("./operations.js").OutputPiece;
/**
 * how an agent has nothing more to do; permission: it waits to be permitted a call
 */
export type Finish = "idle" | "error" | "permission";
/**
 * which calls are asked about: all, those that no rule decides, none: they are allowed, none: they are denied
 */
export type Policy = "always" | "on-miss" | "never" | "deny";
/**
 * A message's number in the agent's own mailbox, or the ID of a message, form or promise.
 */
export type Which = string | number;
/**
 * a form; as a message, in the revision that it shows: AMENDED if the asker has amended it since
 */
export type Shown = Which | Message;
/**
 * a live reference, as answers and messages carry it
 */
export type Ref = {
    $cap: string;
    kind: string;
};
/**
 * What each operation is asked, without "as", which the client adds.
 */
export type RequestOf<N extends keyof Operations> = Omit<Operations[N]["request"], "as">;
import { ParleyError } from "./error.js";
import { Asked } from "./asked.js";
import { Permission } from "./asked.js";
import { Wire } from "./wire.js";
export { ParleyError, Asked, Permission };
