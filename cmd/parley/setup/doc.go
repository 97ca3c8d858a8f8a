// Package setup enters Parley's hooks and MCP server in the settings of coding agents, takes them out, and checks them.
//
// It edits text in place, so that all other settings stay as they are written. The file from before the first entry is kept
// beside the changed one. A file that has the entries already stays unchanged. A file that cannot be read, or has another
// server of the same name, is left alone with an error. The package does not ask the node. For the check it asks coding
// agents for their version. It has each make a call that does nothing, with a model that it plays.
package setup
