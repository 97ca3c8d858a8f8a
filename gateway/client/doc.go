// Package client calls a running node from a Go program: it asks, waits, answers, follows, and looks at
// agents. It links the types of what a node takes and shows, and no part of the node itself.
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
// Promised: an ask, request, approval or prompt carries an idempotency key, one of its own if none is given, and is made
// again after a lost connection until it is known to be accepted: it arrives once. What only reads is made again too.
// A wait goes on through restarts of the node until its context ends. Follow and FollowOutput miss nothing and show nothing twice,
// also for a program that comes back with the last cursor that it has; FollowAgents tells each agent as it is in the end. Every error is, or wraps, a *parley.Error: errors.As gives
// its code, message, hint and, of a refused answer or form, what is wrong with each field; one for which a context ended wraps that
// context's error too.
//
// A node that was there and is away is waited for, by every call that was not sent yet, for as long as its context or Options.Patience
// allows: give a context with an end to what should not wait. One that was not there when connecting is NOT_RUNNING at once.
//
// Not promised: that any other change (an answer, a message, a name) is made when its connection breaks before the node
// has answered. It is not made again: the error has the code NOT_RUNNING, says that it is not known, and to look is
// the way to find out. An answer that was there in time is safe to give again: the node says ALREADY_ANSWERED, and by whom.
//
// A Client acts for one agent: the one its token is for, or, on the node's own socket, the host or the one that
// the host holds under Options.As. Everything that a node shows may come from strangers: escape it wherever it is shown.
package client
