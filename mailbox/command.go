package mailbox

import (
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// IDs returns a new ID at each call.
type IDs func() capabilities.ID

// Command is a request to a mailbox, by its agent, by another mailbox or by the node. The commands are the structs of
// this package with a decide method. Those whose names begin with Remote come from another node, and are checked
// accordingly; all others come from this node.
type Command interface {
	decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error)
}

// Decide returns the events that should follow a command at a time. No events and no error mean that nothing is to be
// done: what was wanted is so already. It changes nothing in the state, not even a cache.
func (s *State) Decide(c Command, now capabilities.Time, ids IDs) ([]events.Event, error) {
	return c.decide(s, now, ids)
}

// Bounds of what an agent may say, in bytes.
const (
	maxDescription = 16 << 10
	maxTitle       = 1 << 10
	maxReason      = 4 << 10
	maxText        = 128 << 10
	maxKey         = 255
	maxGrantName   = 1 << 10
	maxMessage     = 256 << 10 // with all that it carries
)

func checkText(what, text string, limit int) error {
	if len(text) > limit {
		return parley.Refuse(parley.TooLarge, "%s of %d bytes is over the limit of %d", what, len(text), limit)
	}
	if !utf8.ValidString(text) {
		return parley.Refuse(parley.InvalidArgument, "%s is not valid UTF-8", what)
	}
	return nil
}

func (s *State) checkActive() error {
	if s.Profile.Archived {
		return parley.Refuse(parley.AgentArchived, "the agent is archived")
	}
	return nil
}
