// Package persistence keeps a node's journal: what every mailbox has decided, in one order, on disk.
//
// The journal is one JetStream stream and every message in it is one commit: the events of one or many
// mailboxes as a frame of package events, whose number is the message's sequence. Append puts sections in
// the order and returns at once; while one commit is on its way to disk the next gathers, and so one
// flush serves every caller who waits. The server runs inside the process, or elsewhere, by its URL. The one inside
// only writes: the journal flushes its files, outside the server's locks, and looks at the heads of its
// records before the server does.
//
// Promised:
//   - What Release has called durable is on disk (an external server must run with sync_interval: always),
//     and so is all that was appended before. Callbacks run once each, in order of position.
//   - A commit is stored whole or not at all, under the next number, by one writer: a second process that
//     writes as the same node is found out at its first commit, or at ours, and that is permanent.
//   - When a commit cannot be stored, it and all after it fail, and the journal takes no more until Reopen
//     has found out what the log holds. A position that was called lost stays lost, even where Reopen finds
//     that its commit was stored after all: read the log to learn what happened.
//   - Loss and damage are found: the commits' own numbers, the chain of their hashes and a high-water mark
//     kept beside the log show what the server does not. The newest part of the log is checked before the
//     journal opens, the rest in the background, and all of it by Verify. Nothing is skipped silently.
//   - Snapshots are derived. Losing or damaging one only makes reading slower. Where programs' output was
//     lost to damage, who reads it is told so in its place.
//   - A disk that is slow is waited for, and nobody who reads waits with it.
//
// Not promised: that the events of a mailbox make sense together, only that their versions follow each
// other; that a log that was cut and whose high-water mark was cut with it is noticed (nothing can tell it
// from a younger log); that space is ever given back.
//
// A commit fits one message, and one Append is never divided: it may take MaxAppend bytes.
package persistence
