package mcp

import (
	"context"
	"errors"
	"time"

	"parley"
	"parley/gateway/api"
)

// Agent performs the operations of one agent on its node, for the tools. It is safe for concurrent use.
type Agent interface {
	// Client sets the agent that a request is made for. NOT_RUNNING means that the node could not be reached, so that the
	// operation may have been performed or not.
	api.Client

	// Identity returns the same text at every call, unique among the agents that the Server serves.
	Identity() string

	// May refuses with NOT_PERMITTED an operation that Call would refuse for every request.
	May(operation string) error

	// Link returns the address of the page where the host, acting as the agent, settles a form of the agent. It returns ""
	// if there is none.
	Link(ctx context.Context, form string) string
}

// Client is an Agent whose tools a program calls. A Server may have several.
type Client interface {
	Agent

	// IsHost reports whether the agent is the node's host. Sessions of other agents never replace the host's.
	IsHost() bool

	// Enter takes a place for one call of a tool, or refuses with RATE_LIMITED. Leave releases the place.
	Enter() error
	Leave()
}

// lone is the only Client, on a pair of streams.
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
	patience = 15 * time.Second // the time in which a node restarts
	pause    = 100 * time.Millisecond
)

// steady performs operations that may be repeated, and repeats them through a restart of the node.
type steady struct{ api.Client }

// Call implements api.Client.
func (s steady) Call(ctx context.Context, operation string, request, response any) error {
	for end := time.Now().Add(patience); ; {
		err := s.Client.Call(ctx, operation, request, response)
		if parley.CodeOf(err) != parley.NotRunning || time.Now().After(end) || !rest(ctx) {
			return err
		}
	}
}

// rest pauses, and reports whether time remains.
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
