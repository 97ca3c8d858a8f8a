// Package mailbox decides what an agent's mail does to it.
//
// A mailbox is the fold of its events. Decide takes the state and a command, and returns the events that should follow,
// or an error. Apply folds one event into the state. Both are pure: equal inputs give equal outputs on every node and
// in every replay. Time and IDs are arguments.
//
// The asker's mailbox is the home of a form: the one place where the form is settled. Agents that may answer have a
// copy, draft their answer in their own mailbox, and send it home. The outbox holds what other mailboxes have not got
// yet: copies, outcomes and revocations. It follows from the events, and survives whatever they survive.
//
// The asker may amend the question of an open form. Each copy is then amended too. The home refuses an answer to an
// earlier revision, so what settles a form answers its last question.
//
// Other mailboxes may be on other nodes. An agent's own log says which of their agents can reach it. An answer to a
// form of another node is queued until its home has decided on it. Commands from another node are types of their own.
//
// A State holds the messages that are open, that are to be delivered, or that a run is for. Of each other message it
// has an index entry of 32 bytes: see package index. Where such a message is needed, methods fail with PagedOut. The
// caller then reads its events from the log, makes it with Rebuild, lends it with UseOld, and calls again.
//
// Promised: a form is settled at most once; a message number is never reused; a repeated delivery changes nothing; a
// refused command changes nothing; an agent uses only what its log says that it holds; Decide changes nothing in the
// state.
//
// Not promised: that an event decided here reaches the log. Until the journal confirms it, it has not happened. A State
// is not safe for concurrent use: its actor owns it.
package mailbox
