// Package a2a serves the Agent2Agent protocol, version 1.0, over JSON-RPC and HTTP+JSON. The protocol's own library reads
// and writes it. This package maps its tasks to forms, by package exchange.
//
// # Tasks
//
// A task is an exchange: a form between the caller and another agent. Its ID is the form's, and its context the ID of the
// other agent. The first message asks the agent a form with one field. Its ID is the form's key, so that a repeated message
// begins nothing new.
//
//	the caller's form is not delivered yet  SUBMITTED
//	it is open                              WORKING
//	it is open, and the agent asks          INPUT_REQUIRED: the question's text and schema are in the status
//	it is open, and an approval waits       AUTH_REQUIRED: the caller decides on the node's pages
//	answered                                COMPLETED: the values are an artifact
//	declined                                REJECTED
//	cancelled                               CANCELED
//	expired                                 FAILED
//
// A form that another agent asked the caller is a task too: INPUT_REQUIRED while it is open, COMPLETED with the caller's
// answer, and CANCELED if the caller declines it. The agent is named by the tenant of the request, as a name that the
// caller holds or an ID; without one it is the caller's host.
//
// The next message with the task's ID answers its question: an object in a data part has the values by field, and a
// text answers a form with one field. A refused answer leaves the task INPUT_REQUIRED, with the reasons in the status.
// Metadata under the key Extension may name the form and revision that were shown. So an answer meets no other
// question.
//
// # Push
//
// A push configuration names an address to which each state of a task is posted. The client, schedule and network rules
// are those of package bridge. Each configuration is a file and a goroutine. It acts by the token that made it. It ends
// with the token, or once the receiver has the end of the task.
//
// # Promises
//
// Promised: a task that was returned is on disk, and is the same after a restart. A caller sees its own tasks alone, and
// has the rights and limits of its token. A repeated answer is applied once, if its node was not restarted meanwhile or
// the answer names its form. Texts of others have invisible characters escaped.
//
// A receiver gets the states in order, each once. A state that is replaced before the receiver accepts it is skipped.
// One may be sent again if the node ends meanwhile. A dead receiver delays no other.
//
// A stream ends with its task, or once the task requires input. The client answers, and opens the next.
//
// A response that waits for the end of a task comes after 50 seconds at the latest. It has the present state then. No
// history is kept but the first message.
package a2a
