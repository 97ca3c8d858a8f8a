// Package show turns messages, and the calls that agents want to make, into lines for a terminal.
//
// A message is one line, cut to the width of the screen if that is a terminal. A call is several: a command as a shell
// line, an edit as a unified diff under its path. A written file is shown as added lines. Any other input is shown by
// its keys. Every key of an input is shown. The form follows from the input alone, so a tool's name promises nothing.
// All lines are safe to print: characters that hide or move the cursor are escaped. The package writes nothing itself.
package show
