// Package demo demonstrates Parley by the commands that a user would type.
//
// It runs a node in a temporary folder and a process of its own, which it kills and starts again. Every step is a command
// of this program, printed before it runs. The package fails if a step does not come out as it says. It leaves nothing
// behind.
package demo
