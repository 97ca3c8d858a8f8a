// Package mcp offers the operations of one agent to a language model, as tools of the Model Context Protocol. The SDK
// implements the protocol. This package defines the tools and maps them to operations.
//
// Promised: a tool does what its operation does, with no more authority than the agent's. A refusal is a tool's error
// with a code, a message and a hint, never an error of the protocol. No call waits longer than 50 seconds. The result
// for a form without an answer by then has a handle. Another call continues the wait with it, also after a restart of
// the node. Texts of others are data within structured content, bounded, with invisible characters escaped.
//
// # Handles
//
// A handle is the ID of a form. It needs no seal: an ID gives no authority, and the mailbox knows which forms the agent
// may wait for. A wait for another agent's form is refused with NO_SUCH_MESSAGE.
//
// A call that its client cancels (notifications/cancelled) withdraws the form that it has sent, unless the caller gave a
// key: other calls may wait for such a form. A lost connection withdraws nothing.
//
// # Tasks
//
// A client of 2026-07-28 may accept tasks with a request. A question of ask_user to anybody but @me is then a task,
// unless the call has a timeout. The task's ID is the form's, so the task lasts as long as the form. An open form is
// working, a cancelled one is cancelled, and any other outcome is a result. The methods of the extension fail with
// errors of the protocol, and serve the agent that asked the form alone. No task asks for input: what a client sends
// for one is ignored.
//
// # Elicitation
//
// A form addressed to @me is for the person at the client. It is mail from the agent to itself, never to the host. The
// client acts for the agent. So an answer through it is the agent's own, and must not count as the host's. A client
// never shows an approval, which is addressed to the host. Of forms to others the tools only await the outcome.
//
// A client of 2026-07-28 gets the form in a result, and calls again with the person's response. The state between the two
// calls passes through the client, so it is sealed: bound to the agent and the form, good once and for a day. An older
// client is asked over its session, and its response counts even after the call has ended. In both cases the node
// validates the answer, and the client is asked again with the errors. The page accepts an answer too; the first one
// settles the form. If the client cannot show the form or refuses to, the call ends with the reason and the page's link.
//
// Not promised: that a client shows a form to a person, or that a person answers it and not a program.
package mcp
