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
// # Mandates
//
// A mandate is leave that ends: rules, and limits for all calls that they cover together. A rule is a mandate without an end. So both are
// matched by the same engine, Decide: rules that deny first, then those that allow, then the rules of mandates. What a mandate has beside its
// rules:
//
//   - calls: so many at most, 1000 where nothing else is said;
//   - sums: what a member of the inputs of one tool adds up to, in exact millionths. See Amount for what is no amount: such a call is asked about;
//   - until: a time;
//   - a session of a coding agent: that which asked for the approval. It alone makes the calls.
//
// A call that a mandate has no room for is not covered by it. Nor is one of high risk, unless a rule of the mandate is for that very call.
// Rules of mandates may be wider than those that approvals offer, since somebody has written them: the commands of a line as they are, a glob,
// all calls of a tool. All calls of a tool that runs command lines or edits files are never covered.
//
// The events are in the mailbox of the agent, which is that of the folder for a coding agent:
//
//	MandateGiven    in the commit of the FormAnswered that gives it, with the decision once
//	MandateCharged  a call that it covers. The call is allowed when that is on disk
//	MandateEnded    by the agent's host
//	SessionEnded    ends those of the session; so does SessionMoved to another conversation
//	RunsHeld, AgentArchived    end all. RunEnded by somebody ends those of the agent itself
//
// Who decides: the host gives one and ends it, the mailbox alone decides whether a call is within it. Calls of one agent are decided one
// after another, so of two at once at the last use one passes. A call that is asked about again, with its key, is charged once: the mailbox
// knows the keys of all calls that it has charged, 1000 of a mandate at most.
//
// What fails: a node that ends between the charge and the answer to the caller has charged a call that the caller may not make. Asked again
// with its key it is allowed, and charged no second time; without a key it is another call. A call that is allowed and then fails is charged
// too. A call whose answer was on its way when the mandate ended is made.
//
// The package is pure.
package rule
