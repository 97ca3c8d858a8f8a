// Package mcp shows the operations of one agent to a language model, as tools of the Model Context Protocol. The
// protocol is the SDK's; what is here is which tools there are, and what they stand for.
//
// Promised: a tool does what its operation does, with the authority of the agent and no more. A refusal is a tool's
// error with a code, a message and a hint, and never the protocol's. No call waits longer than 50 seconds: what is
// not answered by then has a handle, with which another call goes on, also after the node was restarted. What others
// wrote is data within structured content, bounded, with what hides in it escaped.
//
// # Handles
//
// A handle is the ID of a form. It needs no seal: knowing an ID gives no authority, and the mailbox's own log says
// which forms are the agent's to wait for. That of another agent is NO_SUCH_MESSAGE.
//
// # Elicitation
//
// A form addressed to @me is for the person at the client. It is mail from the agent to itself, and never to the
// host: whoever runs the client acts for the agent, so an answer that comes through it is the agent's word, and must
// not pass for the host's. An approval is asked of the host and is never shown by a client, however the client asks;
// what the tools await besides @me is only waited for.
//
// A client of 2026-07-28 is shown the form in a result and calls again with what the person did. What ties the two
// calls together travels through the client, so it is sealed: bound to the agent and to the form, good once and for
// a day. An older client is asked over its session, and may take longer than the call: the answer counts when it
// comes. Either way it is held to the form's fields by the node, and asked for again with what is wrong in it. The
// page takes the answer too; the first settles the form.
//
// Not promised: that a client shows what it is sent, or that a person and no program answers it.
package mcp
