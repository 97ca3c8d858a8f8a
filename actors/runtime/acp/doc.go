// Package acp runs programs that speak the Agent Client Protocol. The node is the protocol's client.
//
// One process with one session serves one prompt after the other. The agent's messages are output. Its thoughts, plans
// and tool calls are notices. A request for permission becomes an approval of the node, and an elicitation becomes a
// form. Files and terminals are available as far as the agent's access allows.
//
// The package promises that what an agent sends is bounded before the protocol library holds it; that files outside of
// the agent's folder are not opened; and that a person decides about one call, never about an option of the agent that
// reaches further. It does not promise that a session survives the process: that depends on the agent.
package acp
