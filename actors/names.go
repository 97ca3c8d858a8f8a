package actors

import (
	"context"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/right"
)

// NewAgent describes an agent to be made. The maker holds it under Name.
type NewAgent struct {
	Kind   events.AgentKind  `json:"kind"`
	Name   string            `json:"name"`
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`

	Program *events.ProgramSet `json:"program,omitempty"` // runs for its messages; nil if a client serves it
	Policy  string             `json:"policy,omitempty"`  // see mailbox.SetPolicy; "" is on-miss
	Wait    bool               `json:"wait,omitempty"`    // its program does not begin before the first message

	Of capabilities.ID `json:"of,omitzero"` // for a session of a coding agent: its address
}

// Make makes an agent, which this one holds under a name. Both are in one commit: there is never a name
// without its agent. A program that is given with it begins at once.
func (a *Agent) Make(ctx context.Context, m NewAgent) (*Agent, error) {
	if m.Program != nil && !a.IsHost() {
		return nil, parley.Refuse(parley.NotPermitted, "only the node's host runs programs on it")
	}
	if m.Program != nil && a.node.supervisor.isHeld() {
		return nil, errHeld()
	}
	if m.Program != nil && !m.Wait && !getsReady(*m.Program) && a.node.supervisor.full() { // its first run could not begin, and nothing would begin it later
		return nil, errFull()
	}
	if m.Program != nil {
		if err := a.node.supervisor.check(*m.Program); err != nil {
			return nil, err
		}
	}
	id, err := call(ctx, a, createAgent{m})
	if err != nil {
		return nil, err
	}
	return &Agent{node: a.node, id: id, by: a.by}, nil
}

// createAgent makes an agent in the same commit as its name, and returns its ID.
type createAgent struct{ NewAgent }

func (m createAgent) handle(b *mailboxActor) (id capabilities.ID, err error) {
	now := b.node.now()
	c := mailbox.CreateAgent{Agent: b.node.newID(), Kind: m.Kind, Name: m.Name, Title: m.Title, Labels: m.Labels, Program: m.Program, Policy: m.Policy, Of: m.Of}
	evs, err := b.propose(c, now)
	if err != nil {
		return id, err
	}
	child, genesis := mailbox.New(c.Agent), c.Genesis(b.state)
	section, err := firstSection(child, now, genesis...)
	if err != nil {
		return id, err
	}
	for _, e := range genesis {
		if err := child.Apply(events.Recorded{At: now, Event: e}); err != nil {
			return id, err
		}
	}
	status := statusOf(child)
	section.Summary, section.Note = child.Summary(), noteOf(status, b.node.host, false, false)
	if err := b.commit(now, evs, section); err != nil {
		return id, err
	}
	b.release(func(lost error) {
		if lost == nil {
			b.node.directory.put(status)
		}
	})
	b.node.accounts.put(child)
	b.node.registry.register(child, b.last)
	if m.Program != nil {
		b.node.registry.tell(c.Agent, b.last, startProgram{m.Wait})
	}
	return c.Agent, nil
}

// List lists what the agent has under a path, sorted, from behind a name on; "" lists its own names, the special ones first.
// Most is the largest number, or 0 for no limit.
func (n Names) List(ctx context.Context, path, after string, most int) ([]string, error) {
	return queryListing(ctx, n.agent, func(s *mailbox.State, _ capabilities.Time) ([]string, error) {
		return s.Namespace().List(path, after, most)
	})
}

// Revoked returns those of some of the agent's names that can no longer be used: their references were revoked or have expired.
func (n Names) Revoked(ctx context.Context, names []string) ([]string, error) {
	return queryListing(ctx, n.agent, func(s *mailbox.State, now capabilities.Time) ([]string, error) {
		return s.Namespace().Revoked(names, now), nil
	})
}

// Of returns the agent's name for another agent; "" if it has none.
func (n Names) Of(ctx context.Context, id capabilities.ID) (string, error) {
	return query(ctx, n.agent, func(s *mailbox.State, _ capabilities.Time) (string, error) { return s.Names.Of(id) })
}

// Show returns the value at a path. With reveal, sealed values in it are opened. It refuses with NOT_PERMITTED to open
// values that are sealed for another, and by a token without the scope reveal.
func (n Names) Show(ctx context.Context, path string, reveal bool) (capabilities.Value, error) {
	if reveal && !n.agent.reveals() {
		return capabilities.Value{}, parley.Refuse(parley.NotPermitted, "the token opens no secrets: it lacks the scope reveal")
	}
	return query(ctx, n.agent, func(s *mailbox.State, now capabilities.Time) (capabilities.Value, error) {
		v, err := s.Namespace().LookupVisible(path, now)
		if err != nil || !reveal {
			return v, err
		}
		return n.agent.node.secrets.Open(v)
	})
}

// Locate returns the locator of the target of a path.
func (n Names) Locate(ctx context.Context, path string) (capabilities.Locator, error) {
	v, err := n.Show(ctx, path, false)
	if err != nil {
		return capabilities.Locator{}, err
	}
	ref, ok := v.AsRef()
	if !ok {
		return capabilities.Locator{}, parley.Refuse(parley.InvalidArgument, "%.200q is a %s, which has no locator", path, v.TypeName())
	}
	return capabilities.Locator{ID: ref.Target, Kind: ref.Kind}, nil
}

// Store binds a name to a JSON document or to the locator of something that the agent holds.
func (n Names) Store(ctx context.Context, name, locatorOrJSON string) error {
	return n.agent.do(ctx, mailbox.BindName{Name: name, Value: locatorOrJSON})
}

// Rename moves a value to another name, which has to be free.
func (n Names) Rename(ctx context.Context, from, to string) error {
	return n.agent.do(ctx, mailbox.MoveName{From: from, To: to})
}

// Replace moves a value to another name. A value under that name is lost.
func (n Names) Replace(ctx context.Context, from, to string) error {
	return n.agent.do(ctx, mailbox.MoveName{From: from, To: to, Force: true})
}

// Remove frees a name.
func (n Names) Remove(ctx context.Context, name string) error {
	return n.agent.do(ctx, mailbox.UnbindName{Name: name})
}

// Copy binds another name to the value at a path, with the references in it narrowed to a facet.
func (n Names) Copy(ctx context.Context, from, to string, f capabilities.Facet) error {
	return n.agent.do(ctx, mailbox.CopyName{From: from, To: to, Facet: f})
}

// Grants lists grants that the agent gave to others, the oldest first: those of references, then the rights to answer open forms. A
// part of a long list costs little more than what it has.
func (n Names) Grants(ctx context.Context, f view.GrantFilter) ([]view.Granted, error) {
	return queryListing(ctx, n.agent, func(s *mailbox.State, _ capabilities.Time) ([]view.Granted, error) {
		found := []view.Granted{}
		for _, g := range grantsBehind(s, f) {
			if len(found) == f.Most && f.Most > 0 {
				break
			}
			if !f.Has(g.grant) {
				continue
			}
			one := view.Granted{Grant: *g.grant, ToName: capabilities.NameSelf}
			if g.right != nil {
				one.Outcomes, one.Used = g.right.Outcomes, g.right.Used
			} else {
				var err error
				if one.ToName, err = s.Names.Of(g.grant.To); err != nil {
					return nil, err
				}
			}
			found = append(found, one)
		}
		return found, nil
	})
}

// given is a grant that an agent gave, and the right to answer that it is, if it is one.
type given struct {
	grant *capabilities.Grant
	right *right.Right
}

// grantsBehind returns the grants behind the one that a filter names. If that has gone, they begin with the first of a larger ID.
func grantsBehind(s *mailbox.State, f view.GrantFilter) (all []given) {
	rights := s.Grants.Answers.Open()
	all = make([]given, 0, s.Grants.Len()+len(rights))
	for g := range s.Grants.Each() {
		all = append(all, given{grant: g})
	}
	for _, r := range rights {
		all = append(all, given{&r.Grant, &r})
	}
	if f.Newest {
		slices.Reverse(all)
	}
	if f.After.IsZero() {
		return all
	}
	if i := slices.IndexFunc(all, func(g given) bool { return g.grant.ID == f.After }); i >= 0 {
		return all[i+1:]
	}
	if i := slices.IndexFunc(all, func(g given) bool { return g.grant.ID.Compare(f.After) > 0 }); i >= 0 {
		return all[i:]
	}
	return nil
}

// Revoke revokes a grant and all grants derived from it.
func (n Names) Revoke(ctx context.Context, grant capabilities.ID) error {
	if err := n.agent.do(ctx, mailbox.RevokeCapability{Grant: grant}); err != nil {
		return err
	}
	return revokeAtHome(ctx, n.agent, grant)
}

// Names are what an agent holds, by name, and what it has given to others.
type Names struct{ agent *Agent }

// Names returns the agent's names.
func (a *Agent) Names() Names { return Names{a} }
