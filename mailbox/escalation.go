package mailbox

import (
	"errors"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// escalation returns who gets the message if it is not acknowledged in time; nil for nobody.
func (c PostMessage) escalation(s *State, to []capabilities.Ref, now capabilities.Time) (*events.Recipient, error) {
	if c.Escalate == "" {
		return nil, nil
	}
	if c.AckBy == 0 {
		return nil, parley.Refuse(parley.InvalidArgument, "a message is escalated when it was not acknowledged by a time").WithHint("give that time: --ack 10m")
	}
	ref, err := s.holder(capabilities.UseSend, now).reach(c.Escalate)
	if err != nil {
		return nil, unreachable(err, c.Escalate, 2)
	}
	if ref.Target == s.ID || slices.ContainsFunc(to, func(o capabilities.Ref) bool { return o.Target == ref.Target }) {
		return nil, parley.Refuse(parley.InvalidArgument, "a message is escalated to another agent than its sender and its recipients")
	}
	name, err := s.Names.said(ref.Target)
	return &events.Recipient{Agent: ref.Target, Name: name, Via: ref.Grant, Facet: ref.Facet}, err
}

// escalate returns the message by which one that was not acknowledged goes on to another agent, or what says that it cannot. It has
// the text alone: what the message hands over is for its recipients.
func (s *State) escalate(m *Message, number uint64, now capabilities.Time, ids IDs) (events.Event, error) {
	p := m.Posted
	ref := agentRef(p.Escalate.Agent)
	ref.Grant, ref.Facet = p.Escalate.Via, p.Escalate.Facet
	err := s.permit(ref, capabilities.UseSend, now)
	if _, absent := errors.AsType[*PagedOut](err); absent {
		return nil, err
	}
	if err != nil {
		return s.unreached(m.ID(), ref.Target, string(parley.CodeOf(err))+": "+parley.AsError(err).Message, now)
	}
	header := p.Header
	header.AckBy = 0
	e := &events.MessagePosted{
		Number: number, Message: ids(), From: s.ID, To: ref.Target, Via: ref.Grant, Facet: ref.Facet, Header: header,
		Text: []events.Span{{Words: ShowText(p.Text)}}, Thread: m.Thread(), Date: now, Sender: s.Profile.called(),
	}
	for _, to := range m.Recipients() {
		if slices.ContainsFunc(m.Receipts, func(r Receipt) bool { return r.By == to && r.acknowledges() }) {
			continue
		}
		name, err := s.Names.said(to)
		if err != nil {
			return nil, err
		}
		e.Late = append(e.Late, events.Recipient{Agent: to, Name: name})
	}
	return e, nil
}
