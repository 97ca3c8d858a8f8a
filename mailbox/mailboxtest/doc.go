// Package mailboxtest runs several mailboxes together, on one node or several, without a disk, a network or a clock.
//
// A Harness applies the commands of a test or a transcript, delivers mail between the mailboxes, and checks after each
// step that a state is the fold of its events and survives a snapshot. It promises the same run for the same commands.
// It has no journal, no scheduler and no connections: what those add is tested where they are.
package mailboxtest
