// Package projection keeps what is searched for of mailboxes in SQLite, beside the log.
//
// An Index is derived: each mailbox's rows are the fold of its events up to a version that the index keeps, in the same
// transaction. So it can be removed at any time, and is made again by reading the log. A file that is damaged, of another
// form, or of another log is replaced by an empty one.
//
// It has a row for each message, with its sender, recipient, thread, kind and date, how a form ended and by whom,
// and the words in it. It also has the calls that a rule, a mandate or a policy has decided, in the order of their times over all mailboxes. Accents and case are folded. Values that are sealed or references are not in it. It keeps no
// names, since each agent has its own, and nothing that changes without an event about the message.
//
// A file that is found to be damaged while it is read is replaced too, and ErrOrder says so: the caller begins again.
//
// Promised: what Find returns fits the query as of the version that At returns; the cost of a search follows what it finds, and not
// how much the mailbox, or another one, holds.
//
// Not promised: that an index is up to date. Who searches first adds the events that are missing.
package projection
