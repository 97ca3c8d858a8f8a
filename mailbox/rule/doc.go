// Package rule parses the calls that agents need permission for. It offers standing rules for a call, matches rules
// against calls, and describes rules in words.
//
// A rule covers one of three things:
//
//   - the very call: the same input in the same folder. The description of a command line is ignored, since agents
//     word it anew each time. A rule for an input of more than 32 KiB stores its SHA-256 digest;
//   - commands: each simple command of a line begins with the words of a pattern, and has only options and operands
//     after them that the pattern lists;
//   - files: a file, or a glob within the folder, for tools that read or edit files. Files of which git could make a
//     repository are never covered where they are written.
//
// A call that is not fully understood is matched exactly. A command line is understood if it consists of simple
// commands of literal words, joined by |, &&, || or ;. Expansions, substitutions, globs, redirections, assignments,
// background commands, functions and comments are not understood, nor is text that shells parse differently.
//
// Wider rules are offered from a table of commands that read and display, and of git push and git fetch. The table
// lists allowed options. It has no programs that run other programs. Programs in it follow the settings of the
// repository and the user. So an agent that can change a program which these name can run it.
//
// The log holds each pattern in full, so a later table changes no rule. Matching compares text alone: it does not
// resolve symbolic links, which may lead out of the folder.
//
// The package is pure.
package rule
