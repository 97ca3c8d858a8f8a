// Package index finds and lists the messages of a mailbox without the messages themselves.
//
// An Index has an entry of 32 bytes for each message. The entry has the versions of the message's events, so the
// message can be read back from the log. Entries are in pages. A page is open at first: it is in memory, and a hash
// table finds the IDs in it. A full page without open forms is sealed. Sealed pages are stored, each under its digest,
// and may go out of memory. What remains of one is where to find it: its digest, the times of its IDs and the versions
// of its changes, 90 bytes together. The caller reads a page back when Find or a list needs it.
//
// The IDs in sealed pages are found by the times in them. The time in an ID may be far from that of its message. It
// would widen the range of its page, and more pages would have to be read to find other IDs. Such IDs are kept in
// memory instead, 8 bytes each.
//
// Changes are the newest changes, for readers that follow a mailbox. Numbers are lists of messages with something in
// common.
//
// IDs are known by digests. Two different message IDs have the same digest by chance only, with a probability of one
// in 2^64. The short digests of promises and resolvers are no proof: the message itself has to be compared.
//
// The package is pure. It does not know what messages are, and it is not safe for concurrent use.
package index
