// Package events defines the events of mailboxes and their encoding in the log.
//
// An Event is a fact about one mailbox. A Commit is one durable step of a node: the events of one or many mailboxes,
// numbered, timed, and chained by hash to the commit before it. Both have one binary form. A table of contents in front
// of a commit lets a reader skip what it does not need.
//
// Promised: every event that was ever encoded can be decoded (earlier versions are upcast; testdata holds one of each);
// equal events have equal encodings; a frame that was cut, changed or moved in the chain does not decode; an event of a
// newer version of the program is an *UnknownError.
//
// Not promised: that a sequence of events is consistent. Package mailbox checks that.
package events
