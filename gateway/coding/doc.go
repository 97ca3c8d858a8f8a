// Package coding has the sessions of coding agents: which live, in which process each works, and what reaches its model.
//
// A session is an agent below its address, the agent of the folder that the coding agent works in. Hooks register it, ask what
// to carry to it, and tell what its transcript proves.
package coding
