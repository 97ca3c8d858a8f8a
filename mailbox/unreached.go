package mailbox

import (
	"errors"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Whom a message to several or to a group did not reach is recorded with the message, in the mailbox of the sender or of the group.
// A group tells where it had the message from, and so on up to its author. Each level records it as the word of the one below.

// maxUnreached bounds the agents that are noted for one message. Those beyond are not.
const maxUnreached = 32

// unreached returns the event of an agent that a message did not reach.
func (s *State) unreached(message, agent capabilities.ID, why string, now capabilities.Time) (*events.MessageUnreached, error) {
	name, err := s.Names.said(agent)
	if err != nil {
		return nil, err
	}
	return &events.MessageUnreached{Message: message, By: s.ID, Agent: agent, Name: name, Why: parley.Shown(why, maxRefused), Date: now}, nil
}

// unreached returns the event of a recipient that refused its copy of a message to several, or of one that a group passed on.
func (c RecordDelivery) unreached(s *State, p OutboxItem, now capabilities.Time) ([]events.Event, error) {
	if c.Refused == "" || p.Kind != events.OutboxCopy {
		return nil, nil
	}
	m, err := s.Mail.byOwnID(p.Subject)
	if _, absent := errors.AsType[*PagedOut](err); absent {
		return nil, err
	}
	if err != nil || m.Posted == nil {
		return nil, nil
	}
	message := m.ID()
	switch {
	case !m.Posted.Original.IsZero():
		message = takenID(m.Posted)
	case !m.toSeveral(s.ID):
		return nil, nil
	}
	noted, err := s.Mail.byOwnID(message)
	if parley.CodeOf(err) == parley.NoSuchMessage {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	counted, err := countMembers(s, noted, counting{number: m.Number, refused: true})
	if err != nil || len(noted.Unreached) >= maxUnreached {
		return counted, err
	}
	e, err := s.unreached(message, p.To, c.Refused, now)
	if err != nil {
		return nil, err
	}
	return append([]events.Event{e}, counted...), nil
}

// missed reports whether a message to several was refused by one of its recipients.
func (m *Message) missed(to capabilities.ID) bool {
	return slices.ContainsFunc(m.Unreached, func(e events.MessageUnreached) bool { return e.Agent == to && e.By == m.From() })
}

// addUnreached notes an agent that the message did not reach. A message to several that reached none of them was refused.
func (m *Message) addUnreached(e *events.MessageUnreached) {
	m.Unreached = append(slices.Clip(m.Unreached), *e)
	if to := m.Recipients(); len(to) > 1 && !slices.ContainsFunc(to, func(id capabilities.ID) bool { return !m.missed(id) }) {
		m.Refused = e.Why
	}
}

// messageUnreached notes an agent that a message did not reach. If the message came from another, that one is told.
func messageUnreached(f fold, e *events.MessageUnreached) error {
	m, err := f.Mail.byOwnID(e.Message)
	if err != nil {
		return err
	}
	m.addUnreached(e)
	if m.toSeveral(f.ID) {
		f.noted(m)
		return nil
	}
	f.Mail.Index.entries.Note(m.Number, f.Version)
	f.Mail.touch(m, f.Version)
	if m.From() != f.ID {
		f.tell(m, events.OutboxUnreached)
	}
	f.retire(m)
	return nil
}

// unreachedReport returns the command that tells the sender of a message whom it did not reach.
func (m *Message) unreachedReport(s *State) Command {
	c := RecordUnreached{Message: m.ID(), By: s.ID, Agents: slices.Clone(m.Unreached)}
	for i := range c.Agents {
		c.Agents[i].By = s.ID
	}
	return c
}

// RecordUnreached records whom a message that the agent sent did not reach, as its recipient By says: a group that could not pass it
// on to them. It comes from that one's mailbox on this node. What is known has no effect.
type RecordUnreached struct {
	Message capabilities.ID
	By      capabilities.ID
	Agents  []events.MessageUnreached
}

// RemoteUnreached is a RecordUnreached from another node.
type RemoteUnreached struct{ RecordUnreached }

func (c RecordUnreached) decide(s *State, _ capabilities.Time, _ IDs) (evs []events.Event, err error) {
	m, err := reportedOn(s, c.Message, c.By)
	if err != nil {
		return nil, err
	}
	known := m.Unreached
	for _, e := range c.Agents {
		if len(known) >= maxUnreached || slices.ContainsFunc(known, func(o events.MessageUnreached) bool { return o.Agent == e.Agent }) {
			continue
		}
		e.Message, e.By = m.ID(), c.By
		known = append(slices.Clip(known), e)
		evs = append(evs, &e)
	}
	return evs, nil
}

func (c RemoteUnreached) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if len(c.Agents) > maxUnreached {
		return nil, parley.Refuse(parley.TooLarge, "a report of %d agents that a message did not reach is over the limit of %d", len(c.Agents), maxUnreached)
	}
	for i := range c.Agents {
		e := &c.Agents[i]
		if e.Agent.IsZero() {
			return nil, parley.Refuse(parley.InvalidArgument, "the message did not reach nobody")
		}
		if err := checkRecipientName(e.Name); err != nil {
			return nil, err
		}
		e.Why, e.Date = parley.Shown(e.Why, maxRefused), clampDate(e.Date, now)
	}
	own, err := s.confirmOwn(c, nil)
	if err != nil {
		return nil, err
	}
	return own.(RemoteUnreached).RecordUnreached.decide(s, now, ids)
}

// isUnreached reports whether a message of another agent cannot have reached this one by a group of another node: the log has no copy of
// it, and has why the group's node can bring none. The agent is archived, or a reference to it that was given to that node was revoked.
// It fails with PagedOut.
func (s *State) isUnreached(e *events.MessageUnreached) (bool, error) {
	has, err := s.Mail.Index.Has(passedID(e.Message, s.ID, e.By.Node))
	if err != nil || has {
		return false, err
	}
	return s.Profile.Archived || s.Grants.minted.Any(func(g capabilities.Grant) bool {
		return g.Revoked != 0 && g.To.Node == e.By.Node
	}), nil
}

// events returns the events of the report.
func (c RecordUnreached) events() []events.Event {
	evs := make([]events.Event, len(c.Agents))
	for i := range c.Agents {
		c.Agents[i].Message = c.Message
		evs[i] = &c.Agents[i]
	}
	return evs
}

// unpackUnreached returns the command of a report from another node, and whether it is one.
func unpackUnreached(evs []events.Event, from capabilities.ID) (Command, bool) {
	c := RemoteUnreached{RecordUnreached{By: from}}
	for i, e := range evs {
		u, same := e.(*events.MessageUnreached)
		if !same || i > 0 && u.Message != c.Message || u.By != from {
			return nil, false
		}
		c.Message = u.Message
		c.Agents = append(c.Agents, *u)
	}
	return c, true
}
