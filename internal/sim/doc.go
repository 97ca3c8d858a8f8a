// Package sim runs nodes with their mailboxes, journals and links in one goroutine, in an order that a seed decides.
// After each step it checks the promises of Parley.
//
// The mailboxes are those of package mailbox, and the order of packets is that of package window. The lines and acks
// within a node are those of package outbox. The journals, the queues of messages and the links are small models in
// memory. They do what packages persistence, actors and peers do: what is appended may be stored, lost or in doubt.
// What is on its way may be lost, doubled and late. Clocks step, disks are full, and mailboxes and nodes crash at any
// point.
//
// Checked is, from what the durable logs say: a form is settled once and for all its holders alike. The settlement is
// of the question that its agent was shown; reminders and escalations come once, when they are due, and never after the
// deadline; a form that needs several answers is answered by as many principals on its last question. All see the same
// votes; nobody who may answer a form is taken away from it; mail arrives in order and once; what was acknowledged is
// durable; nobody is reached without a grant, or by a revoked one; quotas are kept; a state is the fold of its log; and
// when the world comes to rest, every client has its result. Every outbox is empty then, and every waiter knows the
// outcome.
//
// A failure prints its seed and the fewest steps that show it:
//
//	go test ./internal/sim -run TestSchedules -sim.for 8h
//	go test ./internal/sim -run TestSchedules -sim.seed 4711
//
// The steps and their choices are made fewer. What nodes without a part in the failure did is left out.
//
// Archiving is not modelled. What leaves the log is moved between files by package persistence, without a mailbox: old
// messages are read back by version from both alike. A model of it would test itself. An archive that meets a crash is
// a rare state of TestPowerCuts of package persistence instead. It has seven forms, from a segment without a manifest
// to a journal cut in half: the test fails if one of them is never left. Other crashes are in
// TestKilledArchiverLeavesAWholeLog and TestFullDiskWhileArchiving of package persistence, and in
// TestKilledWhileItArchives and TestPowerCutsOfANode of package actors.
//
// It does not promise that actors and persistence do what the models do. Their own tests, with kills, partitions and
// failing disks, are for that.
package sim
