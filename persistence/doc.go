// Package persistence keeps a node's journal: the events of all its mailboxes, in one order, on disk.
//
// The journal is one JetStream stream. Each message is one commit: the events of one or many mailboxes as a frame of
// package events. The number of a commit is the sequence of its message. Append adds sections to the order and returns
// at once. While one commit is written, the next one gathers, so one flush serves all callers that wait. The server is
// embedded in the process, or external at a URL. The embedded server only writes: the journal flushes its files,
// outside the server's locks. It checks the heads of its records before the server reads them.
//
// The package promises:
//   - A position that Release reports as durable is on disk, and so are all appends before it. An external server must
//     run with sync_interval: always. Callbacks run once each, in order of position.
//   - A commit is stored whole or not at all, under the next number, by one writer. A second process that writes as the
//     same node is detected at the next commit of either. That failure is permanent.
//   - If a commit cannot be stored, it and all later appends fail, and the journal accepts no more until Reopen. A
//     position that was reported as lost stays lost. The log may still have its commit.
//   - Loss and damage are found, by the numbers of commits, the chain of their hashes, and a high-water mark beside the
//     log. The newest part of the log is checked before the journal opens, the rest in the background, and all of it by
//     Verify. Nothing is skipped silently.
//   - A start that is refused, and a look at a copy (OpenCopy), leave every byte as it was. The embedded server cuts what it
//     cannot read; what it may cut is first opened as a copy, and itself only if the log is whole there.
//   - A log, an archive and a backup of a newer program are NEWER_LOG, and not damage.
//   - Snapshots, groups and the stored index are derived. Their loss or damage only makes reading slower.
//   - The note of a mailbox is the newest that its sections have. A commit that is lost changes no note.
//   - Readers of output see where pieces of it were lost to damage.
//   - A slow disk blocks appends, and not readers. While the embedded server is in a write that hangs, a commit that is
//     not in memory cannot be read: that is TIMEOUT, and names the disk.
//   - The beginning of the log can leave the stream for an archive (package archive), while the journal is in use: first
//     its segments and the checkpoint are on disk, then the caller's record is, then whole files of the stream are
//     removed. A process that ends between two of these leaves a whole log, and files that the next archiving uses or
//     removes. Appends and reads wait while the server is started again, and none fails.
//   - Archived commits are read as any. One in a segment that is elsewhere is ARCHIVED, and fails nothing else. Damage of
//     the archive fails only what reads it. The states of a damaged checkpoint are made again from the segments.
//
// It does not promise that the events of a mailbox are consistent, only that their versions follow each other. It does
// not detect a log that was cut together with its high-water mark, which equals an older log. It does not archive
// a log on an external server, and decides nothing about the age of what is archived.
//
// A commit fits one message, and one Append is never divided: it has at most MaxAppend bytes.
package persistence
