// Package setup enters Parley's hooks and MCP server in the settings of coding agents, and checks them.
//
// It keeps all other settings, and the former file beside a changed one. A file that has the entries already stays
// unchanged. A file that cannot be read, or has another server of the same name, is left alone with an error. The package
// does not ask the node. Of the coding agents it runs only "claude --version", for the check.
package setup
