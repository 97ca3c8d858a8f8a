// Package actors runs a node: who is alive, and how what they decide becomes durable.
//
// Open starts a node in a state folder. Its Host and the agents made from it ask, await, answer, follow and
// so on; each call takes a context and gives typed results. Every mailbox in use is an actor, made from the
// log when it is first needed and put to rest when it is idle. A supervisor rebuilds one that crashed.
//
// The journal is one order. An actor applies what it has decided, appends it, and goes on at once; it tells
// other mailboxes at once, too. What leaves the node is held until the commit that it depends on is on disk:
// every result of this package is durable, refusals included.
//
// Other nodes are peers. What a mailbox owes to theirs waits in its log until it can be carried there, in
// packets that package transport seals. There it is checked like anything from a stranger, and taken in once.
//
// Promised: what a call returned without an error survives a crash at any point; a form is settled once and
// all who wait for it hear the same; a waiter may come before or after the answer, before or after a
// restart; when the disk fails the node says READ_ONLY, acknowledges nothing, still reads what it can, and
// goes on without a restart when the disk does.
//
// Not promised: that a call whose context ended did nothing (give it an idempotency key, or look); that the
// other side of an ask is ever there; that another node tells the truth about its own agents.
package actors
