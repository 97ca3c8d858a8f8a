// Package editor serves an editor that speaks the Agent Client Protocol. Parley is the protocol's agent.
//
// An approval that waits for the mailbox is a permission request, and a form is an elicitation. A form that the editor
// cannot show is a message that says how to answer it. What is settled elsewhere is withdrawn from the editor. A prompt
// is a command, or a message to the agent of the session. The agent's output is shown until it is idle.
//
// A question that the person leaves without an answer stays open. The package decides nothing by itself.
package editor
