package actors

import (
	"context"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// AttentionOf returns what an agent has set of how mail reaches the sessions of its coding agent, of a session that of its address.
func AttentionOf(ctx context.Context, a *Agent) (view.Attention, error) {
	set, err := query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (view.Attention, error) {
		return view.Attention{Agent: s.Profile.Of, Attention: s.Attention}, nil
	})
	if err == nil && !set.Agent.IsZero() {
		return AttentionOf(ctx, AgentOf(a.node, set.Agent)) // an address is no session
	}
	set.Agent = a.id
	set.IsQuiet, set.QuietUntil = quietAt(set.Attention, a.node.clock())
	return set, err
}

// SetAttention changes it. It refuses with INVALID_ARGUMENT what is none.
func SetAttention(ctx context.Context, a *Agent, c mailbox.SetAttention) (view.Attention, error) {
	if c.Zone != nil && *c.Zone != "" {
		if _, err := zoneOf(*c.Zone); err != nil {
			return view.Attention{}, err
		}
	}
	set, err := AttentionOf(ctx, a)
	if err != nil {
		return set, err
	}
	address := AgentOf(a.node, set.Agent)
	if err := address.do(ctx, c); err != nil {
		return set, err
	}
	return AttentionOf(ctx, address)
}

// zoneOf returns a time zone; the node's for "". It refuses with INVALID_ARGUMENT an unknown one.
func zoneOf(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "unknown time zone %s", parley.Quoted(name, 40)).WithHint("as in Europe/Berlin")
	}
	return zone, nil
}

// quietAt reports whether a time is one of quiet, and until when: 0 if that has no end. A zone that this machine does not know any more
// is read as the node's.
func quietAt(a parley.Attention, now capabilities.Time) (quiet bool, until capabilities.Time) {
	zone, err := zoneOf(a.Zone)
	if err != nil {
		zone = time.Local
	}
	at := now.Std().In(zone)
	switch lasts := parley.QuietFor(a.Quiet, at.Hour()*60+at.Minute()); {
	case lasts == 0:
		return false, 0
	case lasts < 0:
		return true, 0
	default:
		end := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute()+lasts, 0, 0, zone)
		return true, capabilities.At(end)
	}
}
