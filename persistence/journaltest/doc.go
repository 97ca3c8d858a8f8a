// Package journaltest holds what every journal of a node has to do, as tests for any of them.
//
// Run takes a Log, which opens the same log again and again and can make its storage fail. It checks order, durability,
// losses, reads at versions, reopening and a second writer. It also checks refusals after the end, and snapshots with
// their parts. It promises that a journal which passes can carry the actors' rule: inside a node nothing waits for the
// disk, and what leaves it waits.
//
// It does not test speed, damage or archives.
package journaltest
