// Package runtime supervises the programs of agents: their processes, environment and output.
//
// A program is a command that a node runs for the messages of an agent. Packages exec and acp below implement Program
// for the two protocols that programs speak. A program reaches its node through a Host.
//
// The package promises:
//   - A program gets a prompt only from Run, and one at a time.
//   - When Run or Close returns and has ended a program, none of its processes is left. On Linux that includes all that
//     it has started.
//   - Output is bounded in size before it is held, and none is dropped during a run.
//   - On Linux a program, and all that it has started, ends with its node.
//   - The environment of a program has no variables of the node but the listed ones.
//
// It does not promise that a program follows its prompt. On systems other than Linux, a process outside of the
// program's group may not be found. A program of the node's own user may act through another process.
package runtime
