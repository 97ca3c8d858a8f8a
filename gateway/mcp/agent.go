package mcp

import (
	"context"
	"errors"
	"time"

	"parley"
)

// Agent is what the tools act through: the operations of one agent, on its node. It is used by many goroutines.
type Agent interface {
	// Identity names the agent, the same at every call, and unlike any other's that the Server serves.
	Identity() string

	// Call performs an operation with a request of its type in package api, and stores the response, of its type, in what
	// response points to, unless that is nil. It sets the agent that the request is made for.
	// Errors are those of the operation. NOT_RUNNING says that the node was away, and that it is not known whether the
	// operation was performed.
	Call(ctx context.Context, operation string, request, response any) error

	// May refuses with NOT_PERMITTED an operation that Call would refuse whatever the request.
	May(operation string) error

	// Link gives the address of the page where the host settles, as the agent, a form that the agent has; "" if there
	// is none.
	Link(ctx context.Context, form string) string
}

// Client is an Agent for which a program calls tools, beside others.
type Client interface {
	Agent

	// IsHost reports whether it is the node's host, whose sessions no other agent's take the place of.
	IsHost() bool

	// Enter takes a place for one call of a tool, or refuses with RATE_LIMITED. Leave gives the place back.
	Enter() error
	Leave()
}

// lone is the Client on a pair of streams.
type lone struct {
	Agent
	places chan struct{}
}

// IsHost implements Client. There is no other client.
func (a *lone) IsHost() bool { return true }

// Enter implements Client.
func (a *lone) Enter() error {
	select {
	case a.places <- struct{}{}:
		return nil
	default:
		return parley.Refuse(parley.RateLimited, "%d calls of tools are under way already", cap(a.places)).WithHint("try again in a moment")
	}
}

// Leave implements Client.
func (a *lone) Leave() { <-a.places }

const (
	patience = 15 * time.Second // how long a node may be away: long enough for a restart
	pause    = 100 * time.Millisecond
)

// steadily performs an operation that may be repeated, through a restart of the node.
func steadily(ctx context.Context, a Agent, operation string, request, response any) error {
	for end := time.Now().Add(patience); ; {
		err := a.Call(ctx, operation, request, response)
		if parley.CodeOf(err) != parley.NotRunning || time.Now().After(end) || !rest(ctx) {
			return err
		}
	}
}

// rest pauses, and reports whether there is time to go on.
func rest(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

func isContextEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
