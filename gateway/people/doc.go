// Package people has the names of agents as a person reads them, and what state each is in. The page, the terminal and notices
// use it, so that an agent has one name and one state.
//
// A coding agent is called after its program and its folder, as in "Claude Code · shop". Further sessions of a folder add a
// number, and folders of one name their parent. Other agents have the reader's own name for them. Only the node makes coding
// agents: labels and titles that an agent gives itself, or another one, make it look like nothing else.
//
// Names have words of others. They are neither HTML nor safe for a terminal: whoever shows them escapes them. The package is
// pure.
package people
