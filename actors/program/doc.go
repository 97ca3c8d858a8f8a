// Package program runs the programs of agents.
//
// A program is a command that a node runs for the messages that an agent gets. There are two ways to talk to one, the
// runtimes: exec, where each side writes one JSON object a line, and acp, the Agent Client Protocol. Both are behind
// Runtime, and whatever a program wants of its node goes through a Desk.
//
// Promised: a program gets a prompt only after Run was called for it, and one at a time; no process of a program is
// left when Run or Close has returned that ended it, its children in the same process group included; what it puts out
// is bounded in size before it is held. Not promised: that a program does what its prompt says, or that one that left
// its process group is found.
package program
