// Package client calls a running node from a Go program: it asks, waits, answers, follows mail and agents. It imports the
// node's types of requests and responses, and no part of the node itself.
//
//	c, err := client.Connect(ctx, client.Options{URL: "http://127.0.0.1:7420", Token: token})
//	asked, err := c.Ask(ctx, client.Form{To: "HOST", Description: "Which port?", Fields: []client.Field{{Name: "port", Type: "number"}}})
//	outcome, err := asked.Await(ctx)
//	var answer struct{ Port int }
//	err = outcome.Decode(&answer)
//
//	got, err := c.Prompt(ctx, client.Prompt{Agent: "builder", Text: "Make the tests pass."})
//	status, agent, err := c.WaitForAgent(ctx, string(got.Agent))
//
//	err = api.ForwardForm.Run(ctx, c, api.ForwardFormRequest{FormRef: api.RefTo("3"), Recipient: "bob"})
//
// A Client has methods for what takes several calls, a wait, a key or types of its own. All operations are in package api, by
// their names and with their types: a Client performs each.
//
// Promised: each ask, request, approval or prompt has an idempotency key, a new one if none is given. A message has one if it is
// given. What has a key is repeated after a lost connection until it is known to be accepted, and arrives once. Reads are repeated too. A wait continues
// through restarts of the node until its context ends. Follow and FollowOutput miss and repeat nothing, also for a
// program that resumes with its last cursor. FollowAgents yields the latest state of each agent. Every error is or
// wraps a *parley.Error with a code, a message and a hint. A refused answer or form also has an error for each field.
// An error for an ended context wraps the context's error too.
//
// A call that was not yet sent waits while the node, once reached, is unreachable. It waits until its context or
// Options.Patience ends. Use a context with a deadline where a call must not wait. If there is no node when the client
// connects, it refuses with NOT_RUNNING at once.
//
// Not promised: the result of another change (an answer, a message, a name) whose connection breaks before the response. It
// is not repeated. The error has the code NOT_RUNNING and says that the result is unknown; a read finds it out. An answer
// can safely be given again: if it was accepted, the node refuses with ALREADY_ANSWERED and the answerer.
//
// A Client acts for one agent: that of its token. On the node's own socket it is the host, or the agent that the host
// holds under Options.As. All texts from a node may be written by others: escape them wherever they are shown.
package client
