// Package call reads the tool call of an approval into blocks for showing: command lines, diffs, files and values.
//
// The form follows from the input. A command is shown with a line for each part of a pipeline or list. An edit is a diff
// under its path, with the changed words marked. A written file is shown whole. Any other input is shown by its keys.
// Package risk tells what is risky, with the words of a command. A phrase describes the call in plain words, and a Brief is the second
// line of its row in a list.
//
// Promised: each key of an input is in a block, and a reading says so if lines were left out. A long run of blanks, which could
// push the rest out of sight, is told by its length. All places that show a call show its reading. The result and the time are
// bounded for any input. The package is pure. Not promised: that all risks are found. They help a reader and decide
// nothing.
//
// The texts are those of the input. They are neither HTML nor safe for a terminal: whoever shows them escapes them.
package call
