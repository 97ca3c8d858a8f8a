// Package index finds and lists the messages of a mailbox without the messages themselves.
//
// An Index takes 32 bytes for each message and some 10 bytes for each of its IDs. It knows the versions of the events
// that a message is made of, so that the message can be read back from the log. Changes are the newest changes, for
// readers that follow a mailbox. Numbers are lists of messages with something in common.
//
// IDs are known by digests. Two different message IDs have the same digest by chance only, with a probability of one
// in 2^64. The short digests of promises and resolvers are no proof: the message itself has to be compared.
//
// The package is pure. It does not know what messages are, and it is not safe for concurrent use.
package index
