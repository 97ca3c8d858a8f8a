// Package group keeps the sections of a range of commits in a file, those of each mailbox together.
//
// A commit of a busy node has the sections of a hundred mailboxes. Whoever reads one mailbox from commits reads a hundred
// times too much. From a group it reads what is the mailbox's, with one access to the disk for each 16 KiB.
//
// For example, commits 7 and 8 with sections of mailboxes A and B:
//
//	7: A1 B1    8: B2 A2 A3    become    A: 7 A1, 8 A2, 8 A3    B: 7 B1, 8 B2
//
// A group is derived from the log. One that is missing, damaged, or of another log costs time only. It is never flushed:
// what a power cut leaves of it has the wrong sum.
//
//	header: magic, node, first commit, last commit, its hash, number of blocks, bytes of the blocks
//	table:  for each block, by mailbox and commit: mailbox, first commit, offset, length, sum
//	sum of header and table
//	blocks: for each section: commit, first version, number of events, length of the body, as varints; the body
package group
