// Package outbox has the rules by which mailboxes of a node hand each other items and acknowledge them.
//
// It is pure: callers wait, lock acks, and say which appends are lost. Package actors and the simulation run the same rules.
//
// It promises that a line hands over its items in order, and none after one that could not be stored. No item that
// follows a refused copy is accepted before the refusal is in its sender's log. An ack of a lost append does not count.
package outbox
