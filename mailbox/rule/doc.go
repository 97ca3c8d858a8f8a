// Package rule reads the calls that agents ask permission for, says which standing rules a person may choose for
// one, matches rules against calls, and puts rules into words.
//
// A rule covers one of three things:
//
//   - the very call: the same input in the same folder. For a tool that runs command lines its description is left
//     out, as agents word it anew each time;
//   - commands: each simple command of a line begins with the words of a pattern, and has nothing behind them but
//     options and operands that the pattern lists;
//   - files: a file, or a glob within the folder, for tools that read or edit files.
//
// Everything that is not wholly understood is matched as the very call only. A command line is understood if it is
// simple commands of literal words, joined by |, &&, || or ;. Expansions, substitutions, globs, redirections,
// assignments, background commands, functions and comments are not, nor is what shells read differently. Wider
// rules are offered from a table of commands that read and display, and of git push and git fetch. The table lists
// what is allowed; programs that run what they are given are not in it. Programs in it do what the repository's and
// the user's own settings say, so an agent that can write to .git/config can have git run something.
//
// A pattern is written into the log whole: a later table changes no rule. Matching looks at text alone. A symbolic
// link within the folder is followed by whoever makes the call, wherever it leads.
//
// The package is pure.
package rule
