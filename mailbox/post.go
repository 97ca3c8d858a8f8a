package mailbox

import (
	"parley"
	"parley/capabilities"
	"parley/events"
)

// PostMessage sends a message. To is a path, ID or locator; or Reply is the message to reply to, and the other
// party to that gets it.
type PostMessage struct {
	To    string
	Reply string
	Text  string
	Plain bool   // an @ in it is a plain one
	Key   string // idempotency key
}

func (c PostMessage) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	if _, ok, err := c.FindExisting(s); ok || err != nil {
		return nil, err
	}
	if err := checkText("a key", c.Key, maxKey); err != nil {
		return nil, err
	}
	if err := checkText("a message", c.Text, maxText); err != nil {
		return nil, err
	}
	to, replyTo, err := s.addressee(c, now)
	if err != nil {
		return nil, err
	}
	marks, err := c.parts()
	if err != nil {
		return nil, err
	}
	id := ids()
	g := gift{to: to.Target, message: id, now: now, ids: ids}
	spans, err := s.span(&g, marks)
	if err != nil {
		return nil, err
	}
	evs := []events.Event{&events.MessagePosted{
		Number: uint64(len(s.messages)), Message: id, From: s.ID, To: to.Target, Via: to.Grant, Facet: to.Facet,
		Text: spans, ReplyTo: replyTo, Date: now, Key: c.Key,
	}}
	return append(evs, granted(g.grants)...), nil
}

// parts parses the text, unless it is plain.
func (c PostMessage) parts() ([]TextPart, error) {
	if c.Plain {
		return []TextPart{{Words: c.Text}}, nil
	}
	return ParseText(c.Text)
}

// addressee gives whom a message is for. Mail from somebody is authority to reply to it, unless that came of a
// grant which was revoked.
func (s *State) addressee(c PostMessage, now capabilities.Time) (to capabilities.Ref, replyTo capabilities.ID, err error) {
	if c.Reply == "" {
		to, err = s.reach(c.To, capabilities.UseSend, now)
		return to, replyTo, err
	}
	m, err := s.Find(c.Reply)
	if err != nil {
		return to, replyTo, err
	}
	if m.From() != s.ID {
		return agentRef(m.From()), m.ID(), s.checkLive(s.refFrom(m))
	}
	to = s.refTo(m)
	return to, m.ID(), s.permit(to, capabilities.UseSend, now)
}

// span looks up what a text refers to, and gives it away under its edge names.
func (s *State) span(g *gift, marks []TextPart) ([]events.Span, error) {
	spans := make([]events.Span, len(marks))
	given := map[string]capabilities.Value{}
	var all tally
	for i, m := range marks {
		if v, again := given[m.Edge]; m.Edge == "" || again {
			spans[i] = events.Span{Words: m.Words, Edge: m.Edge, Value: v}
			if err := all.add(spans[i]); err != nil {
				return nil, err
			}
			continue
		}
		v, err := s.referred(m)
		if err == nil && inMail(m.Path) {
			v, err = s.claimKnown(v, capabilities.UseGive, g.now)
		}
		if err != nil {
			return nil, err
		}
		if err := all.add(events.Span{Edge: m.Edge, Value: v}); err != nil {
			return nil, err
		}
		if v, err = s.give(g, m.Edge, v); err != nil {
			return nil, err
		}
		given[m.Edge] = v
		spans[i] = events.Span{Edge: m.Edge, Value: v}
	}
	return spans, nil
}

// referred returns the value that a mark in a text refers to.
func (s *State) referred(m TextPart) (capabilities.Value, error) {
	v, err := s.Lookup(m.Path)
	if sp := capabilities.Special("@" + m.Path); parley.CodeOf(err) == parley.UnknownName && sp != "" {
		v, err = s.Lookup(sp)
	}
	if err != nil {
		e := *parley.AsError(err)
		return v, e.WithHint(`write \@ for a plain @`)
	}
	return v, nil
}

// tally adds up a message, span by span. An edge may stand many times, and its value is written down each time.
type tally struct{ bytes int }

// add refuses a span with a value that cannot be written down, and with TOO_LARGE one too much.
func (t *tally) add(sp events.Span) error {
	if err := sp.Value.Check(); err != nil {
		return err
	}
	t.bytes += 10 + len(sp.Words) + len(sp.Edge) + sp.Value.Extent().Bytes
	if t.bytes > maxMessage {
		return parley.Refuse(parley.TooLarge, "a message with all that it carries is over the limit of %d bytes", maxMessage)
	}
	return nil
}
