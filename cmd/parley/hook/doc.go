// Package hook answers the permission requests that coding agents hand to hooks.
//
// A hook reads one request, asks for approval in Parley, waits, and returns what the coding agent reads as a decision.
// It allows a call only where an answer or a standing rule allows it. Everything else leaves the call undecided, and the
// coding agent asks at its own prompt. The package reads no settings and prints nothing.
package hook
