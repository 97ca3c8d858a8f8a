// Package mailbox decides what an agent's mail does to it.
//
// A mailbox is the fold of its events. Decide looks at the state and a command and returns the events
// that should follow, or why none may; Apply folds one event into the state. Both are pure: the same
// inputs give the same outputs on every node and every replay. Time and IDs come in as arguments.
//
// The asker's mailbox is the home of a form's promise: the one place where the form is settled. Those who
// may answer have a copy, draft what they say to it here, and send it home. What a mailbox owes to others
// (copies, outcomes, revocations) is its outbox, which follows from its events and so survives whatever
// they survive.
//
// Others may be on other nodes. Who can reach an agent from there stands in that agent's own log, and what is
// said to a form whose home is there can be kept until it gets through.
//
// Promised: a form is settled at most once; a message number is never reused; a delivery that comes twice
// changes nothing; a refused command leaves no trace; nobody uses what its log does not say it holds.
//
// Not promised: that an event decided here ever reaches the log. Until the journal says so, nothing that
// Decide returned has happened. A State is not safe for use by several goroutines: its actor owns it.
package mailbox
