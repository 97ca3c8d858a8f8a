package actors

import (
	"cmp"
	"context"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Sessions are the sessions of a coding agent that an agent is the address of.
type Sessions struct{ agent *Agent }

// SessionsOf returns the sessions of an agent.
func SessionsOf(a *Agent) Sessions { return Sessions{a} }

// List returns them, the first one begun first. Ended ones stay until they are archived.
func (ss Sessions) List(ctx context.Context) ([]mailbox.Session, error) {
	return query(ctx, ss.agent, func(s *mailbox.State, _ capabilities.Time) ([]mailbox.Session, error) { return s.Sessions.All(), nil })
}

// SessionID returns the ID that a coding agent has for a session of an address; "" if the address does not know it any more.
func SessionID(ctx context.Context, session *Agent, address capabilities.ID) (string, error) {
	return query(ctx, AgentOf(session.node, address), func(s *mailbox.State, _ capabilities.Time) (string, error) {
		known, _ := s.Sessions.Of(session.id)
		return known.Session, nil
	})
}

// Start records that a session lives: a new one, or one that goes on. Its agent says so too.
func (ss Sessions) Start(ctx context.Context, c mailbox.StartSession) error {
	if err := ss.agent.do(ctx, c); err != nil {
		return err
	}
	return ss.session(c.Agent).do(ctx, mailbox.SetSession{Living: true})
}

// End records that a session has ended. Its leases end.
func (ss Sessions) End(ctx context.Context, session capabilities.ID) error {
	if err := ss.session(session).do(ctx, mailbox.SetSession{}); err != nil {
		return err
	}
	if err := LeasesOf(ss.session(session)).EndAll(ctx); err != nil { // before the session has ended: else nobody would do it again
		return err
	}
	return ss.agent.do(ctx, mailbox.EndSession{Agent: session})
}

// Forget takes a session from the list.
func (ss Sessions) Forget(ctx context.Context, session capabilities.ID) error {
	return ss.agent.do(ctx, mailbox.EndSession{Agent: session, Forget: true})
}

func (ss Sessions) session(id capabilities.ID) *Agent { return &Agent{node: ss.agent.node, id: id} }

// Owes reports whether an agent has something open with others: see mailbox.Owes.
func Owes(ctx context.Context, a *Agent, passedOn bool) (bool, error) {
	return query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (bool, error) { return mailbox.Owes(s, passedOn), nil })
}

// Holds reports whether an agent reaches something by a path, an ID or a locator.
func Holds(ctx context.Context, a *Agent, path string) (bool, error) {
	return query(ctx, a, func(s *mailbox.State, now capabilities.Time) (bool, error) {
		switch err := mailbox.Reaches(s, path, now); parley.CodeOf(err) {
		case parley.UnknownRecipient, parley.NotPermitted:
			return false, nil
		default:
			return err == nil, err
		}
	})
}

// lentName is the beginning of the name of what a session was lent and its address has no name for.
const lentName = "lent-"

// ShareWith has a session hold an agent that its address holds under a path, or by an ID or a locator. The grant is the address's:
// it is in the log, and ends with what the address itself was granted. It refuses as a message to that recipient.
func (ss Sessions) ShareWith(ctx context.Context, session *Agent, path string) error {
	got, err := call(ctx, ss.agent, lend{session.id, path})
	if err != nil {
		return err
	}
	return session.do(ctx, mailbox.Inherit{Name: got.name, Value: got.value})
}

type lend struct {
	session capabilities.ID
	path    string
}

// lent is what a session was lent, and its name for it.
type lent struct {
	name  string
	value capabilities.Value
}

func (m lend) handle(b *mailboxActor) (got lent, err error) {
	now := b.node.now()
	evs, err := recalled(b.old, func() (evs []events.Event, err error) {
		got.name, got.value, evs, err = mailbox.ShareWith(b.state, m.session, m.path, now, b.node.newID)
		return evs, err
	})
	if err != nil {
		return got, err
	}
	if ref, ok := got.value.AsRef(); ok {
		id := ref.Target.ULID.String()
		got.name = cmp.Or(got.name, lentName+id[len(id)-endLength:])
	}
	return got, b.commit(now, evs)
}

// AgentOf returns the handle of an agent of a node, which has to be there.
func AgentOf(n *Node, id capabilities.ID) *Agent { return &Agent{node: n, id: id} }

// HasMessage reports whether an agent has a message.
func HasMessage(ctx context.Context, a *Agent, ref capabilities.FormRef) (bool, error) {
	_, err := a.Message(ctx, ref)
	if parley.CodeOf(err) == parley.NoSuchMessage {
		return false, nil
	}
	return err == nil, err
}

// Titled returns the agent with a title among those that the agent sees, and that are not archived. It refuses with AGENT_NOT_FOUND and AMBIGUOUS.
func (as Agents) Titled(ctx context.Context, title string) (id capabilities.ID, err error) {
	seen, err := as.visibility(ctx)
	if err != nil {
		return id, err
	}
	found, err := as.titled(ctx, title, seen)
	// One that lives goes before a session that has ended.
	found = slices.DeleteFunc(found, func(s view.AgentStatus) bool { return s.Status == mailbox.Closed && !s.Ended })
	if living := slices.DeleteFunc(slices.Clone(found), func(s view.AgentStatus) bool { return s.Status == mailbox.Closed }); len(living) > 0 {
		found = living
	}
	switch {
	case err != nil:
		return id, err
	case len(found) == 0:
		return id, parley.Refuse(parley.AgentNotFound, "no agent %.200q", title)
	case len(found) > 1:
		if seen, err = as.visibility(ctx, idsOf(found[:min(len(found), maxOffered)])...); err != nil {
			return id, err
		}
		return id, ambiguous(title, found, seen)
	}
	return found[0].ID, nil
}

// familyOf returns an agent and its sessions.
func familyOf(ctx context.Context, a *Agent) ([]capabilities.ID, error) {
	sessions, err := SessionsOf(a).List(ctx)
	family := []capabilities.ID{a.id}
	for _, s := range sessions {
		family = append(family, s.Agent)
	}
	return family, err
}

// withSessions adds to the agents that one sees the sessions of its folder, and their address, by the host's names. They reach
// each other by these.
func withSessions(ctx context.Context, a *Agent, names map[capabilities.ID]string) error {
	address, err := query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (capabilities.ID, error) {
		if len(s.Sessions.All()) > 0 {
			return s.ID, nil
		}
		return s.Profile.Of, nil
	})
	if err != nil || address.IsZero() {
		return err
	}
	family, err := familyOf(ctx, AgentOf(a.node, address))
	if err != nil {
		return err
	}
	for _, id := range family {
		if names[id] != "" {
			continue
		}
		if names[id], err = a.node.Host().Names().Of(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
