package mailbox

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Bounds of teams.
const (
	maxTeams       = 64 // of a host
	maxTeamMembers = 16 // of a team: each has a grant for each other
	maxTeamName    = 64 // bytes
)

// Team is a team of agents of one host.
type Team struct {
	ID      capabilities.ID // of the agent to which mail for all is sent
	Name    string
	Members []TeamMember // the first that joined first
}

// TeamMember is an agent of a team. The sessions of a coding agent are in the teams of their address.
type TeamMember struct {
	Agent  capabilities.ID
	Joined capabilities.Time
	Grants []events.TeamGrant // made when it joined
}

// Has reports whether an agent is a member.
func (t *Team) Has(agent capabilities.ID) bool {
	return slices.ContainsFunc(t.Members, func(m TeamMember) bool { return m.Agent == agent })
}

// Grants returns the grants by which members reach each other, in the order in which they were made.
func (t *Team) Grants() (all []events.TeamGrant) {
	for _, m := range t.Members {
		all = append(all, m.Grants...)
	}
	return all
}

// Teams are the teams of a host.
type Teams struct{ all []Team }

// All returns the teams, the first made first. The slice belongs to the state.
func (l *Teams) All() []Team { return l.all }

// Named returns the team with a name; nil if there is none. Case makes no difference: members would be told apart by it as two teams, of which
// the leases of one do not bind the other. A log may have two such from before, of which each has its exact name.
func (l *Teams) Named(name string) *Team {
	name = capabilities.Normal(name)
	if t := l.where(func(t *Team) bool { return t.Name == name }); t != nil {
		return t
	}
	return l.where(func(t *Team) bool { return strings.EqualFold(t.Name, name) })
}

// Of returns the team of an agent to which mail for all is sent; nil if it is none.
func (l *Teams) Of(id capabilities.ID) *Team {
	return l.where(func(t *Team) bool { return t.ID == id })
}

func (l *Teams) where(is func(*Team) bool) *Team {
	for i := range l.all {
		if is(&l.all[i]) {
			return &l.all[i]
		}
	}
	return nil
}

// With returns the teams that an agent is in, itself or by its address.
func (l *Teams) With(agent, of capabilities.ID) (some []Team) {
	for _, t := range l.all {
		if t.Has(agent) || !of.IsZero() && t.Has(of) {
			some = append(some, t)
		}
	}
	return some
}

// scopes returns the teams whose leases bind an agent: its own, and the zero one for all that are in none.
func (l *Teams) scopes(agent, of capabilities.ID) []capabilities.ID {
	var ids []capabilities.ID
	for _, t := range l.With(agent, of) {
		ids = append(ids, t.ID)
	}
	if len(ids) == 0 {
		ids = append(ids, capabilities.ID{})
	}
	return ids
}

// chosen returns the team of which a lease is: the one that is named, or the one that its holder is in. The host leases among those
// that are in no team, unless it names one.
func (l *Teams) chosen(host capabilities.ID, c AskLease) (none capabilities.ID, err error) {
	in := l.With(c.Holder, c.Of)
	if c.Team != "" {
		t := l.Named(c.Team)
		if t == nil || c.Holder != host && !slices.ContainsFunc(in, func(o Team) bool { return o.ID == t.ID }) {
			return none, unknownTeam(c.Team)
		}
		return t.ID, nil
	}
	switch len(in) {
	case 0:
		return none, nil
	case 1:
		return in[0].ID, nil
	}
	names := make([]string, len(in))
	for i, t := range in {
		names[i] = t.Name
	}
	return none, parley.Refuse(parley.Ambiguous, "of which team? it is in %s", strings.Join(names, ", ")).WithHint("--team NAME says it")
}

func unknownTeam(name string) error {
	return parley.Refuse(parley.UnknownName, "no team %s", parley.Quoted(name, 80)).WithHint("parley team ls lists the teams")
}

// MakeTeam makes a team of the host's agents. Team is an agent that the host has made for it.
type MakeTeam struct {
	Team capabilities.ID
	Name string
}

// CheckTeamName refuses a name that a team cannot have, and more teams than a host has.
func CheckTeamName(s *State, name string) error {
	if err := checkLeaseHome(s); err != nil {
		return err
	}
	if len(name) > maxTeamName {
		return parley.Refuse(parley.InvalidName, "the name of a team has %d bytes at most", maxTeamName)
	}
	if err := checkAgentName(name); err != nil {
		return err
	}
	if s.Teams.Named(name) != nil {
		return parley.Refuse(parley.NameTaken, "there is a team %s already", parley.Quoted(s.Teams.Named(name).Name, 80))
	}
	if len(s.Teams.all) >= maxTeams {
		return parley.Refuse(parley.QuotaExceeded, "a host has %d teams at most", maxTeams).WithHint("parley team rm ends one")
	}
	return nil
}

func (c MakeTeam) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := CheckTeamName(s, c.Name); err != nil {
		return nil, err
	}
	return []events.Event{&events.TeamMade{Team: c.Team, Name: capabilities.Normal(c.Name)}}, nil
}

// SetTeamMember adds an agent to a team of the host's, or removes it. A new member is granted the others and the team, and they are
// granted it. One that leaves, or is removed, loses these grants and its leases in the team; what it was granted otherwise stays.
// An agent that is there, or is not, is no event.
type SetTeamMember struct {
	Team  string // its name
	Agent capabilities.ID
	In    bool
}

func (c SetTeamMember) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	t := s.Teams.Named(c.Team)
	switch {
	case t == nil:
		return nil, unknownTeam(c.Team)
	case t.Has(c.Agent) == c.In:
		return nil, nil
	case !c.In:
		return leaveTeam(s, t, c.Agent, now), nil
	case c.Agent == s.ID || c.Agent == t.ID || s.Teams.Of(c.Agent) != nil:
		return nil, parley.Refuse(parley.InvalidArgument, "neither the host nor a team is a member of a team").WithHint("the host reaches all of them as it is")
	case len(t.Members) >= maxTeamMembers:
		return nil, parley.Refuse(parley.TooLarge, "a team has %d members at most", maxTeamMembers)
	}
	e := &events.TeamMemberSet{Team: t.ID, Agent: c.Agent, In: true}
	var grants []capabilities.Grant
	grant := func(to, target capabilities.ID) error {
		made, err := introduce(s, to, target, now, ids)
		for _, g := range made {
			e.Grants = append(e.Grants, events.TeamGrant{Grant: g.ID, To: to, Target: target})
		}
		grants = append(grants, made...)
		return err
	}
	others := []capabilities.ID{t.ID}
	for _, m := range t.Members {
		others = append(others, m.Agent)
	}
	for _, other := range others {
		for _, pair := range [][2]capabilities.ID{{c.Agent, other}, {other, c.Agent}} {
			if err := grant(pair[0], pair[1]); err != nil {
				return nil, err
			}
		}
	}
	return append(grantEvents(grants), e), nil
}

// leaveTeam returns the events by which an agent leaves a team.
func leaveTeam(s *State, t *Team, agent capabilities.ID, now capabilities.Time) []events.Event {
	var evs []events.Event
	for _, g := range t.Grants() {
		if (g.To == agent || g.Target == agent) && !s.Grants.isRevoked(g.Grant) {
			evs = append(evs, &events.CapabilityRevoked{Grant: g.Grant, By: s.ID, Date: now})
		}
	}
	evs = append(evs, &events.TeamMemberSet{Team: t.ID, Agent: agent})
	return append(evs, s.Leases.left(now, func(l *events.LeaseAsked) bool { return l.Team == t.ID && (l.Holder == agent || l.Of == agent) })...)
}

// EndTeam ends a team of the host's, which all members leave.
type EndTeam struct{ Team string }

func (c EndTeam) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	t := s.Teams.Named(c.Team)
	if t == nil {
		return nil, unknownTeam(c.Team)
	}
	var evs []events.Event
	for _, g := range t.Grants() {
		if !s.Grants.isRevoked(g.Grant) {
			evs = append(evs, &events.CapabilityRevoked{Grant: g.Grant, By: s.ID, Date: now})
		}
	}
	evs = append(evs, s.Leases.left(now, func(l *events.LeaseAsked) bool { return l.Team == t.ID })...)
	return append(evs, &events.TeamEnded{Team: t.ID}), nil
}

// missingTeam returns the error of an event about a team that is not there.
func missingTeam(id capabilities.ID) error { return fmt.Errorf("%w: team %s", ErrNonsense, id) }

func teamMade(f fold, e *events.TeamMade) {
	f.Teams.all = append(f.Teams.all, Team{ID: e.Team, Name: e.Name})
}

func teamMemberSet(f fold, e *events.TeamMemberSet) error {
	t := f.Teams.Of(e.Team)
	if t == nil || t.Has(e.Agent) == e.In {
		return missingTeam(e.Team)
	}
	if e.In {
		t.Members = append(t.Members, TeamMember{Agent: e.Agent, Joined: f.at, Grants: e.Grants})
		return nil
	}
	t.Members = slices.DeleteFunc(t.Members, func(m TeamMember) bool { return m.Agent == e.Agent })
	for i := range t.Members {
		m := &t.Members[i]
		m.Grants = slices.DeleteFunc(slices.Clone(m.Grants), func(g events.TeamGrant) bool { return g.To == e.Agent || g.Target == e.Agent })
	}
	return nil
}

func teamEnded(f fold, e *events.TeamEnded) error {
	if f.Teams.Of(e.Team) == nil {
		return missingTeam(e.Team)
	}
	f.Teams.all = slices.DeleteFunc(f.Teams.all, func(t Team) bool { return t.ID == e.Team })
	if len(f.Teams.all) == 0 {
		f.Teams.all = nil // which is encoded otherwise
	}
	return nil
}

// Reference returns the reference that a grant of a team's is for.
func (g TeamReference) Reference(s *State) (capabilities.Value, error) {
	grant, ok := s.Grants.get(g.Grant)
	if !ok {
		return capabilities.Value{}, parley.Refuse(parley.NotPermitted, "the grant was never made")
	}
	return capabilities.Reference(grant.Ref()), nil
}

// TeamReference is a grant of a team's, for its reference.
type TeamReference events.TeamGrant

// HoldMember has a member hold another by a grant of its team's, under the name that the host has for it or, where that is taken or
// was another's, under one of its own. One that the member reaches already it goes on to reach as it does.
type HoldMember struct {
	Name  string
	Value capabilities.Value
}

func (c HoldMember) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	ref, ok := c.Value.AsRef()
	if !ok || s.Profile.Archived {
		return nil, nil
	}
	known, err := s.Names.Of(ref.Target)
	if err != nil {
		return nil, err
	}
	if known != "" {
		held, err := s.Names.bound(known)
		if err != nil {
			return nil, err
		}
		if has, ok := held.AsRef(); !ok || !s.Grants.isRevoked(has.Grant) {
			return nil, nil
		}
		return []events.Event{&events.NameUnbound{Name: known}, &events.NameBound{Name: known, Value: c.Value}}, nil
	}
	name := c.Name
	if s.checkFree(name) != nil {
		ulid := ref.Target.ULID.String()
		name = "member-" + ulid[len(ulid)-8:]
	}
	if err := s.checkFree(name); err != nil {
		return nil, err
	}
	return bindEvents(name, c.Value)
}

// LoseMember takes from a member the name that it held another by through a grant of its team's, which is revoked.
type LoseMember struct{ Grant, Target capabilities.ID }

func (c LoseMember) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	known, err := s.Names.Of(c.Target)
	if err != nil || known == "" {
		return nil, err
	}
	held, err := s.Names.bound(known)
	if err != nil {
		return nil, err
	}
	if has, ok := held.AsRef(); !ok || has.Grant != c.Grant {
		return nil, nil
	}
	return []events.Event{&events.NameUnbound{Name: known}}, nil
}
