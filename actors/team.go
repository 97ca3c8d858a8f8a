package actors

import (
	"context"
	"errors"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Teams are the teams of a host, as an agent sees them.
type Teams struct{ agent *Agent }

// TeamsOf returns the teams of an agent's host, as the agent sees them.
func TeamsOf(a *Agent) Teams { return Teams{a} }

// LabelTeam is the label of the agent to which mail for all members of a team is sent.
const LabelTeam = "team"

// Set adds agents to a team, which it makes if there is none with the name, and removes others. The agent is the host. The same call
// again does what a call before may not have done: the node may have ended in between. A session stands for its address.
func (t Teams) Set(ctx context.Context, name string, add, remove []*Agent) error {
	team, err := t.named(ctx, name)
	if err == nil && team == nil {
		if len(add) == 0 {
			return parley.Refuse(parley.UnknownName, "no team %s", parley.Quoted(name, 80)).WithHint("parley team ls lists the teams")
		}
		team, err = t.make(ctx, name)
	}
	if err != nil {
		return err
	}
	for _, one := range remove {
		id, err := t.member(ctx, one)
		if err != nil {
			return err
		}
		lost := slices.DeleteFunc(team.Grants(), func(g events.TeamGrant) bool { return g.To != id && g.Target != id })
		if err := t.leave(ctx, name, team.ID, id, lost); err != nil {
			return err
		}
	}
	for _, one := range add {
		id, err := t.member(ctx, one)
		if err != nil {
			return err
		}
		if err := t.agent.do(ctx, mailbox.SetTeamMember{Team: name, Agent: id, In: true}); err != nil {
			return err
		}
		if err := t.hold(ctx, name, id); err != nil {
			return err
		}
	}
	return nil
}

// leave has a member leave a team.
func (t Teams) leave(ctx context.Context, name string, team, member capabilities.ID, lost []events.TeamGrant) error {
	group := AgentOf(t.agent.node, team)
	if _, err := group.SetMember(ctx, mailbox.SetMember{Agent: member.String()}); err != nil {
		return err
	}
	if err := t.agent.do(ctx, mailbox.SetTeamMember{Team: name, Agent: member}); err != nil {
		return err
	}
	if err := leaveTopics(ctx, t.agent, team, member); err != nil {
		return err
	}
	return t.lose(ctx, lost)
}

// lose takes from members the names that they had by grants that are revoked.
func (t Teams) lose(ctx context.Context, lost []events.TeamGrant) error {
	for _, g := range lost {
		if err := AgentOf(t.agent.node, g.To).do(ctx, mailbox.LoseMember{Grant: g.Grant, Target: g.Target}); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere returns the refusal for what is no team or topic of the agent's host: refused, or that it is of another node, if the agent's own
// name leads there. The hint says how it is reached from here.
func elsewhere(ctx context.Context, a *Agent, name, noun, hint string, refused error) error {
	if code := parley.CodeOf(refused); code != parley.UnknownName && code != parley.NotPermitted {
		return refused
	}
	if id, err := a.Agents().find(ctx, name); err != nil || id.Node == a.node.id {
		return refused
	}
	return parley.Refuse(parley.NotPermitted, "%s is of another node, and a %s is of agents of one host", parley.Quoted(name, 80), noun).WithHint("%s", hint)
}

// named returns a team of the host's by its name, or nil.
func (t Teams) named(ctx context.Context, name string) (*mailbox.Team, error) {
	return query(ctx, t.agent, func(s *mailbox.State, _ capabilities.Time) (*mailbox.Team, error) {
		if one := s.Teams.Named(name); one != nil {
			copied := *one
			return &copied, nil
		}
		return nil, nil
	})
}

// make makes a team and its agent. One that an earlier call has made without getting further is taken.
func (t Teams) make(ctx context.Context, name string) (*mailbox.Team, error) {
	_, err := query(ctx, t.agent, func(s *mailbox.State, _ capabilities.Time) (none, error) {
		return none{}, mailbox.CheckTeamName(s, name)
	})
	if err != nil {
		return nil, err
	}
	made, err := t.agent.Make(ctx, NewAgent{Kind: events.Guest, Name: name, Title: name, Labels: map[string]string{LabelTeam: name}})
	if parley.CodeOf(err) == parley.NameTaken {
		there, failed := t.agent.Agents().Find(ctx, name)
		if failed != nil {
			return nil, err
		}
		status, failed := there.Status(ctx)
		if failed != nil || status.Labels[LabelTeam] != name || status.Maker != t.agent.id || t.agent.node.isArchived(there.id) {
			return nil, err
		}
		made, err = there, nil
	}
	if err != nil {
		return nil, err
	}
	if err := t.agent.do(ctx, mailbox.MakeTeam{Team: made.id, Name: name}); err != nil {
		return nil, err
	}
	return &mailbox.Team{ID: made.id, Name: name}, nil
}

// member returns the agent that is in a team for one: itself, or the address of a session. It refuses an agent of another host.
func (t Teams) member(ctx context.Context, one *Agent) (id capabilities.ID, err error) {
	if one.id.Node != t.agent.node.id {
		return id, parley.Refuse(parley.NotPermitted, "a team is of agents of one host").WithHint("introductions are for agents of other nodes: parley node invite")
	}
	return query(ctx, one, func(s *mailbox.State, _ capabilities.Time) (capabilities.ID, error) {
		switch {
		case s.Profile.Host != t.agent.id && s.ID != t.agent.id:
			return id, parley.Refuse(parley.NotPermitted, "a team is of agents of one host")
		case s.Profile.Archived:
			return id, errArchived()
		case !s.Profile.Of.IsZero():
			return s.Profile.Of, nil
		}
		return s.ID, nil
	})
}

// heldMember is what a member of a team holds by a grant of the team's.
type heldMember struct {
	to, target capabilities.ID
	command    mailbox.HoldMember
}

// hold has a new member and the others hold each other, and the team's agent pass mail on to it.
func (t Teams) hold(ctx context.Context, name string, member capabilities.ID) error {
	all, err := query(ctx, t.agent, func(s *mailbox.State, _ capabilities.Time) (all []heldMember, err error) {
		team := s.Teams.Named(name)
		if team == nil {
			return nil, nil
		}
		for _, g := range team.Grants() {
			if g.To != member && g.Target != member || s.Grants.IsRevoked(g.Grant) {
				continue
			}
			value, err := mailbox.TeamReference(g).Reference(s)
			if err != nil {
				return nil, err
			}
			called, err := s.Names.Of(g.Target)
			if err != nil {
				return nil, err
			}
			all = append(all, heldMember{g.To, g.Target, mailbox.HoldMember{Name: called, Value: value}})
		}
		return all, nil
	})
	if err != nil {
		return err
	}
	team, err := t.named(ctx, name)
	if err != nil || team == nil {
		return err
	}
	for _, one := range all {
		if err := AgentOf(t.agent.node, one.to).do(ctx, one.command); err != nil {
			return err
		}
	}
	_, err = AgentOf(t.agent.node, team.ID).SetMember(ctx, mailbox.SetMember{Agent: member.String(), In: true})
	return err
}

// End ends a team, and archives its agent. The agent is the host.
func (t Teams) End(ctx context.Context, name string) error {
	team, err := t.named(ctx, name)
	if err != nil {
		return err
	}
	if team == nil {
		return parley.Refuse(parley.UnknownName, "no team %s", parley.Quoted(name, 80)).WithHint("parley team ls lists the teams")
	}
	if err := t.agent.do(ctx, mailbox.EndTeam{Team: name}); err != nil {
		return err
	}
	if err := t.lose(ctx, team.Grants()); err != nil {
		return err
	}
	if err := t.agent.Agents().Archive(ctx, AgentOf(t.agent.node, team.ID)); err != nil {
		return err
	}
	called, err := t.agent.Names().Of(ctx, team.ID)
	if err == nil && called != "" {
		err = t.agent.Names().Remove(ctx, called)
	}
	return err
}

// Joining returns an agent of this node that a team is to have, by a name of the agent's.
func (t Teams) Joining(ctx context.Context, name string) (*Agent, error) {
	one, err := t.agent.Agents().Find(ctx, name)
	if err != nil {
		err = elsewhere(ctx, t.agent, name, "team", "give it the team instead: parley send "+name+" 'write to @TEAM'", err)
	}
	return one, err
}

// List returns the teams that the agent is in, or that one; of the host all. Who is there are its members and their living sessions.
func (t Teams) List(ctx context.Context, name string) (view.Teams, error) {
	all := view.Teams{Teams: []view.Team{}}
	who, err := LeasesOf(t.agent).holder(ctx)
	if err != nil {
		return all, err
	}
	type found struct {
		teams  []mailbox.Team
		leases []mailbox.Lease
	}
	got, err := query(ctx, who.home, func(s *mailbox.State, _ capabilities.Time) (f found, _ error) {
		f.teams = slices.Clone(s.Teams.All())
		if who.id != s.ID {
			f.teams = s.Teams.With(who.id, who.of)
		}
		if name != "" {
			one := s.Teams.Named(name)
			f.teams = slices.DeleteFunc(slices.Clone(f.teams), func(t mailbox.Team) bool { return one == nil || t.ID != one.ID })
			if len(f.teams) == 0 {
				return f, parley.Refuse(parley.UnknownName, "no team %s", parley.Quoted(name, 80)).WithHint("parley team ls lists the teams")
			}
		}
		f.leases = slices.Clone(s.Leases.All())
		return f, nil
	})
	if err != nil {
		return all, elsewhere(ctx, t.agent, name, "team", "mail to it goes to all of them, who alone see who is there", err)
	}
	for _, one := range got.teams {
		shown := view.Team{Team: one.Name, Agent: one.ID, Members: []view.TeamMember{}}
		for _, m := range one.Members {
			some, err := t.present(ctx, who, one, m, got.leases)
			if err != nil {
				return all, err
			}
			shown.Members = append(shown.Members, some...)
		}
		all.Teams = append(all.Teams, shown)
	}
	return all, nil
}

// present returns a member of a team and its living sessions, if it is the address of any.
func (t Teams) present(ctx context.Context, who leaseholder, team mailbox.Team, m mailbox.TeamMember, leases []mailbox.Lease) ([]view.TeamMember, error) {
	node := t.agent.node
	sessions, err := SessionsOf(AgentOf(node, m.Agent)).List(ctx)
	if err != nil {
		return nil, err
	}
	one := func(id, of capabilities.ID, joined capabilities.Time) (view.TeamMember, error) {
		shown := view.TeamMember{Agent: id, Of: of, Joined: joined, Own: id == who.id}
		status, err := AgentOf(node, id).Status(ctx)
		if err != nil {
			return shown, err
		}
		shown.Title, shown.Status = status.Title, status.Status
		shown.Name, err = who.home.Names().Of(ctx, id)
		for _, l := range leases {
			if l.Asked.Holder == id && l.Asked.Team == team.ID {
				shown.Leases = append(shown.Leases, l.Number())
			}
		}
		return shown, err
	}
	first, err := one(m.Agent, capabilities.ID{}, m.Joined)
	all := []view.TeamMember{first}
	for _, s := range sessions {
		if s.IsLiving() && err == nil {
			var next view.TeamMember
			next, err = one(s.Agent, m.Agent, s.Began)
			all = append(all, next)
		}
	}
	return all, err
}

// leaveTeams has an agent that is archived leave its teams.
func leaveTeams(ctx context.Context, a *Agent) error {
	host, err := query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (capabilities.ID, error) { return s.Profile.Host, nil })
	if err != nil {
		return err
	}
	t := TeamsOf(AgentOf(a.node, host))
	in, err := query(ctx, t.agent, func(s *mailbox.State, _ capabilities.Time) ([]mailbox.Team, error) {
		return s.Teams.With(a.id, capabilities.ID{}), nil
	})
	for _, one := range in {
		lost := slices.DeleteFunc(one.Grants(), func(g events.TeamGrant) bool { return g.To != a.id && g.Target != a.id })
		err = errors.Join(err, t.leave(ctx, one.Name, one.ID, a.id, lost))
	}
	return err
}
