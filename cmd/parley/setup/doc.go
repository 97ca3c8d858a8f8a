// Package setup enters Parley's permission hook and MCP server in the settings of coding agents.
//
// It keeps all other settings, and the former file beside a changed one. A file that has the entries already stays
// unchanged. A file that cannot be read, or has another server of the same name, is left alone with an error. The package
// neither asks the node nor runs the coding agents.
package setup
