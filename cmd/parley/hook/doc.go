// Package hook answers the permission requests that coding agents hand to hooks.
//
// A hook reads one request, asks for approval in Parley, and waits. It returns what the coding agent reads as a
// decision. It allows a call only where an answer or a standing rule allows it. Everything else leaves the call
// undecided, and the coding agent asks at its own prompt. An approval lives as long as its hook: a connection to the
// node holds it. Of the agents' settings the package reads the permission rules of Claude Code, whose calls it leaves.
// It prints nothing.
package hook
