// Package outbox has the rules by which the items of an outbox are handed from one mailbox of a node to another, and
// acknowledged.
//
// It is pure: callers wait, lock acks, and say which appends are lost. Package actors and the simulation run the same rules.
//
// It promises that a line hands over its items in order and none after one that could not be stored, that no item which
// follows a refused copy is accepted before the refusal is in its sender's log, and that an ack of a lost append does not
// count.
package outbox
