// Package exec runs programs that exchange lines of JSON with their node, or that only print text.
//
// The node writes a prompt line to the program's input. Each line that the program prints is plain output, or a JSON
// object with a type: output, ask, ask_user, approval, send, error or done. The node writes answers to the program's
// input, in the order in which they are given.
//
// The package promises that a run ends with its process, or with a done line if the process is kept; that a line of
// JSON is bounded in size, depth and number of open questions; and that a program that does not read its input does not
// block the node. It does not promise that two runs share a process: one that has ended is started again.
package exec
