package mailbox

import (
	"parley"
	"parley/capabilities"
	"parley/events"
)

// SetAttention changes how mail reaches the sessions of the agent. What is nil stays. A time of quiet without a zone is in the node's.
// The caller has looked up the zone.
type SetAttention struct {
	AllSessions   *bool
	Quiet         *string // as in parley.Attention, or never
	Zone          *string
	Interruptions *string // a priority, or none
}

// maxZoneName bounds the name of a time zone, in bytes.
const maxZoneName = 100

func (c SetAttention) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if !s.Profile.Of.IsZero() {
		return nil, parley.Refuse(parley.InvalidArgument, "how mail reaches a session is set at its address")
	}
	set := s.Attention
	if c.AllSessions != nil {
		set.AllSessions = *c.AllSessions
	}
	if c.Quiet != nil {
		set.Zone = ""
		if set.Quiet = *c.Quiet; set.Quiet == parley.QuietNever {
			set.Quiet = ""
		}
		if set.Quiet != "" && set.Quiet != parley.QuietAlways {
			if _, _, err := parley.QuietHours(set.Quiet); err != nil {
				return nil, err
			}
		}
	}
	if c.Zone != nil {
		set.Zone = *c.Zone
	}
	switch {
	case len(set.Zone) > maxZoneName:
		return nil, parley.Refuse(parley.TooLarge, "the name of a time zone has %d bytes at most", maxZoneName)
	case set.Zone != "" && (set.Quiet == "" || set.Quiet == parley.QuietAlways):
		return nil, parley.Refuse(parley.InvalidArgument, "a time zone is one of hours of quiet")
	}
	if c.Interruptions != nil {
		switch *c.Interruptions {
		case string(events.Urgent):
			set.Interruptions = ""
		case string(events.Normal), string(events.Low), parley.NoInterruptions:
			set.Interruptions = *c.Interruptions
		default:
			return nil, parley.Refuse(parley.InvalidArgument, "%s is no priority", parley.Quoted(*c.Interruptions, 40)).
				WithHint("the least priority that may come in the middle of a turn is urgent, normal or low; none is nothing")
		}
	}
	if set == s.Attention {
		return nil, nil
	}
	return []events.Event{&events.AttentionSet{Attention: set}}, nil
}

// attentionSet folds what was set. Where the sessions are not each offered all mail any more, what none of them was offered is for
// all of them again.
func attentionSet(f fold, e *events.AttentionSet) {
	f.Attention = e.Attention
	if u := f.Mail.Index.unoffered; u != nil && !e.AllSessions {
		clear(u.each)
	}
}
