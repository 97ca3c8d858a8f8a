// Package events defines the events of mailboxes and their encoding in the log.
//
// An Event is a fact about one mailbox. A Commit is one durable step of a node: the events of one or many mailboxes,
// numbered, timed, and chained by hash to the commit before it. Both have one binary form. The length in front of each
// section of a commit lets a reader skip it, and the section has a hash of its own, so that one mailbox's events can be
// proven without those of others.
//
// Promised: every event that a release has encoded can be decoded (testdata/golden holds one of each); equal events have
// equal encodings; a frame that was cut, changed or moved in the chain does not decode; an event of a newer version of the
// program is an *UnknownError.
//
// Not promised: that a sequence of events is consistent. Package mailbox checks that.
package events
