// Package actors runs a node: the mailboxes of its agents, the mail between them, and the connections to other nodes.
//
// Open starts a node in a state folder. Agents ask, await and answer through an Agent, a handle with a method for each.
// What an agent has is in small types that Agent returns: Mail, Names, Tokens, Rules, Peers and others. A method takes
// a context and returns types of package view.
//
// Every active mailbox is an actor. An Agent's method sends it a message, which is a type with a handler in the file of
// its noun: requestForm in form.go, postMessage in message.go. The handler reads the mailbox's state, or has it decide on
// a command. What follows is applied, appended to the journal, and delivered to other mailboxes of the node at once. A
// result is held back until the append that it follows from is durable, refusals too.
//
// The actors have names: journal, scheduler, agents/ULID, agents/ULID/program and peers/NODE. Node.Tree lists them. A
// crash restarts one actor and no other. A restarted mailbox makes its state from the log. A mailbox with a bad log, or
// that crashes too often, is quarantined: it refuses its messages until it is activated again. The node stops when its
// scheduler or the journal's supervisor crashes too often. An idle mailbox is passivated.
//
// A mailbox holds its open messages. Its actor reads others back from the journal when a message or a list needs them.
// It lends them to the state: see paging.go. It keeps some of them, at most 2 MiB and those of its latest message.
//
// A peer is another node. Items for its mailboxes stay in the sender's outbox until the receiver has replied. The
// peer's actor, of package peers, sends them. The node gives that package its mailboxes: see inbound.go and
// outbound.go. The receiver checks an item as a stranger's, and accepts it once.
//
// The package promises:
//   - What a call returned without an error survives a crash at any point.
//   - A form is settled once, and all that wait for it get the same outcome, before or after a restart.
//   - While the disk hangs, readers get what is durable, and calls that write wait.
//   - When the disk fails, calls that write are refused with READ_ONLY, and reads continue. Writing resumes with the disk.
//
// It does not promise that a call whose context ended did nothing: use an idempotency key, or read the state. Nor does it
// promise that a form is answered, or that another node is honest about its own agents.
package actors
