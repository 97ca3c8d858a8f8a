// Package mailboxtest runs several mailboxes together, on one node or several, without a disk, a network or a clock.
//
// A Harness applies the commands of a test or a transcript, and delivers mail between the mailboxes. After each step it
// checks that each state is the fold of its events, and that a snapshot restores it. It promises the same run for the
// same commands. It has no journal, no scheduler and no connections: what those add is tested where they are.
package mailboxtest
