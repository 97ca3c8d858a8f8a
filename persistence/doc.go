// Package persistence keeps a node's journal: the events of all its mailboxes, in one order, on disk.
//
// The journal is one JetStream stream. Each message is one commit: the events of one or many mailboxes as a frame of
// package events. The number of a commit is the sequence of its message. Append adds sections to the order and returns
// at once. While one commit is written, the next one gathers, so one flush serves all callers that wait. The server is
// embedded in the process, or external at a URL. It flushes a commit before it acknowledges it. What is derived, it does
// not flush.
//
// JetStream is the store, and all is done through its own interface, with two exceptions for the embedded server:
//   - blocks.go checks the lengths, numbers and hashes of the records in older blocks, and reads nothing else. Without it
//     the server would allocate without end for one changed bit of a number, and cut a damaged block that it only reads.
//   - flush.go flushes the folder of the blocks when a block was made, which the server does not do.
//
// It also knows the names of the server's files, to copy and flush them whole. After a kill the server's own index of a
// stream is left out of the copy, and made of it: to make it, the server reads all blocks. That takes 0.6 ms of
// processor for each MB. The start goes on with what the copy has taught, and spares 0.3 s: it is faster up to some 500 MB.
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
//   - A slow disk blocks appends. Readers have what is in memory and in groups. While the embedded server is in a write that
//     hangs, a commit that is in neither cannot be read: that is TIMEOUT, and names the disk.
//   - A commit that the server could not write is not acknowledged. It has failed when a later message is answered first.
//   - The beginning of the log can leave the stream for an archive (package archive), while the journal is in use: first
//     its segments and the checkpoint are on disk, then the caller's record is, then the stream is purged. A process that
//     ends between two of these leaves a whole log, and what the next archiving uses or removes. Appends and reads go on. On
//     an external server the manifest and the checkpoint are there too, for another process that takes over.
//   - Archived commits are read as any. One in a segment that is elsewhere is ARCHIVED, and fails nothing else. Damage of
//     the archive fails only what reads it. The states of a damaged checkpoint are made again from the segments.
//
// It does not promise that the events of a mailbox are consistent, only that their versions follow each other. It does
// not detect a log that was cut together with its high-water mark, which equals an older log. It decides nothing about the
// age of what is archived.
//
// A commit fits one message, and one Append is never divided: it has at most MaxAppend bytes.
package persistence
