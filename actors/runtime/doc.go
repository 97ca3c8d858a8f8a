// Package program runs the programs of agents.
//
// A program is a command that a node runs for the messages that an agent gets. There are two ways to talk to one, the
// runtimes: exec, where each side writes one JSON object a line, and acp, the Agent Client Protocol. Both are behind
// Runtime, and whatever a program wants of its node goes through a Desk.
//
// Promised: a program gets a prompt only after Run was called for it, and one at a time; no process of a program is
// left when Run or Close has returned that ended it, nor, on Linux, anything that it has started; what it puts out
// is bounded in size before it is held, and never dropped while a run goes on; on Linux it dies with its node, and so does all
// that it has started; its environment has nothing of the node's but what is listed. Not promised: that a program does what its
// prompt says, that elsewhere one that left its process group is found, or that a program which runs as the node's own user does
// not have another process act for it.
package runtime
