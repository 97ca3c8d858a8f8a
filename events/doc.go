// Package events says what Parley writes down.
//
// An Event is a fact about one mailbox. A Commit is one durable step of a node: the events of one or many
// mailboxes, numbered, timed, and chained to the commit before it by hash. Both have one binary form, and
// a table of contents in front lets a reader skip what it does not want.
//
// Promised: what was ever encoded decodes for ever (older versions of an event are upcast; testdata has
// one of each); equal events have equal encodings; a frame that was cut, changed, or belongs elsewhere in
// the chain does not decode; an event newer than this program is an *UnknownError, never a guess.
//
// Not promised: that a sequence of events makes sense. That is the mailbox's to say.
package events
