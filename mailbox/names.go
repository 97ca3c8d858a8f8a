package mailbox

import (
	"maps"
	"slices"
	"strconv"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Names holds the agent's own names for values.
type Names struct {
	self    capabilities.ID
	profile *Profile

	values  map[string]capabilities.Value
	byAgent map[capabilities.ID][]string // names of references, by their targets
}

func newNames(self capabilities.ID, p *Profile) Names {
	return Names{self: self, profile: p, values: map[string]capabilities.Value{}, byAgent: map[capabilities.ID][]string{}}
}

// bind binds a name to a value, in place of the value that it had.
func (l *Names) bind(name string, v capabilities.Value) {
	l.unindex(name)
	l.values[name] = v
	if r, ok := v.AsRef(); ok {
		l.byAgent[r.Target] = append(l.byAgent[r.Target], name)
	}
}

// unbind frees a name.
func (l *Names) unbind(name string) {
	l.unindex(name)
	delete(l.values, name)
}

func (l *Names) unindex(name string) {
	r, ok := l.values[name].AsRef()
	if !ok {
		return
	}
	left := slices.DeleteFunc(l.byAgent[r.Target], func(n string) bool { return n == name })
	if l.byAgent[r.Target] = left; len(left) == 0 {
		delete(l.byAgent, r.Target)
	}
}

// bound returns the value of a name. It refuses with INVALID_NAME or UNKNOWN_NAME.
func (l *Names) bound(name string) (capabilities.Value, error) {
	if err := capabilities.CheckName(name); err != nil {
		return capabilities.Value{}, err
	}
	v, ok := l.values[name]
	if !ok {
		return v, unknownName(name)
	}
	return v, nil
}

// Of returns the agent's own name for another agent; "" if it has none. HOST and SELF come first.
func (l *Names) Of(id capabilities.ID) string {
	switch id {
	case l.profile.Host:
		return "HOST"
	case l.self:
		return "SELF"
	}
	if names := l.byAgent[id]; len(names) > 0 {
		return slices.Min(names)
	}
	return ""
}

// describe returns an agent as error messages show it: by the agent's own name for it, or else by its ID.
func (l *Names) describe(id capabilities.ID) string {
	if n := l.Of(id); n != "" {
		return strconv.Quote(n)
	}
	return id.String()
}

// grantName returns the agent's name for a reference that it gives; without one, the field or edge of the reference.
func (l *Names) grantName(ref capabilities.Ref, edge string) string {
	if n := l.Of(ref.Target); n != "" {
		return n
	}
	return edge
}

// BindName binds a name to a value: a JSON document, or the locator of something that the agent holds.
type BindName struct {
	Name  string
	Value string
}

func (c BindName) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.checkFree(c.Name); err != nil {
		return nil, err
	}
	v, err := s.holder(capabilities.UseRead, now).read(c.Value)
	if err != nil {
		return nil, err
	}
	return bindEvents(c.Name, v)
}

// bindEvents returns the event that binds a name to a value.
func bindEvents(name string, v capabilities.Value) ([]events.Event, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	return []events.Event{&events.NameBound{Name: name, Value: v}}, nil
}

// checkFree refuses with INVALID_NAME or NAME_TAKEN a name that cannot be bound now.
func (s *State) checkFree(name string) error {
	if err := capabilities.CheckName(name); err != nil {
		return err
	}
	if _, taken := s.Names.values[name]; taken {
		return parley.Refuse(parley.NameTaken, "the name %.80q is taken", name).WithHint("parley remove %s frees it", name)
	}
	if n, awaited := s.Mail.results[name]; awaited {
		return parley.Refuse(parley.NameTaken, "the name %.80q awaits the answer of form %d", name, n)
	}
	if s.Peers.invited(name) >= 0 {
		return parley.Refuse(parley.NameTaken, "the name %.80q awaits whom an invitation is for", name).
			WithHint("parley invite --revoke %s ends it", name)
	}
	return nil
}

// CopyName binds a second name to a value. With a facet, the references in it are narrowed to that.
//
// Uses are counted by grant. A reference without a grant counts none of the agent's own uses; each agent that it is
// given to gets the number of uses. A reference by a grant is valid until the grant has that number of uses, by any
// name. It cannot be given on.
type CopyName struct {
	From, To string
	Facet    capabilities.Facet
}

func (c CopyName) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := c.Facet.Check(); err != nil {
		return nil, err
	}
	v, err := s.holder(capabilities.UseRead, now).at(c.From)
	if err != nil {
		return nil, err
	}
	if err := s.checkFree(c.To); err != nil {
		return nil, err
	}
	v, err = v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		ref, ok := leaf.AsRef()
		if !ok {
			return leaf, nil
		}
		ref.Facet = ref.Facet.Narrow(c.Facet)
		return capabilities.Reference(ref), nil
	})
	if err != nil {
		return nil, err
	}
	return bindEvents(c.To, v)
}

// MoveName moves a value from one name to another. With Force the other may be taken, and loses its value.
type MoveName struct {
	From, To string
	Force    bool
}

func (c MoveName) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	v, err := s.Names.bound(c.From)
	if err != nil {
		return nil, err
	}
	if c.Force && c.From == c.To {
		return nil, nil
	}
	if _, taken := s.Names.values[c.To]; !taken || !c.Force {
		if err := s.checkFree(c.To); err != nil {
			return nil, err
		}
	}
	return []events.Event{&events.NameBound{Name: c.To, Value: v}, &events.NameUnbound{Name: c.From}}, nil
}

// UnbindName frees a name.
type UnbindName struct{ Name string }

func (c UnbindName) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if _, err := s.Names.bound(c.Name); err != nil {
		return nil, err
	}
	return []events.Event{&events.NameUnbound{Name: c.Name}}, nil
}

// AdoptName binds a name to the value of a message under an edge.
type AdoptName struct {
	Message    capabilities.FormRef
	Edge, Name string
}

func (c AdoptName) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.Find(c.Message)
	if err != nil {
		return nil, err
	}
	v, ok := s.Mail.edges(m)[c.Edge]
	if !ok {
		return nil, parley.Refuse(parley.UnknownName, "message %d has no edge %.80q", m.Number, c.Edge).
			WithHint("parley names @mail/%d lists its edges", m.Number)
	}
	name := c.Name
	if name == "" {
		name = c.Edge
	}
	if err := s.checkFree(name); err != nil {
		return nil, err
	}
	if v, err = s.holder(capabilities.UseRead, now).claimBare(v); err != nil {
		return nil, err
	}
	return bindEvents(name, v)
}

// Lookup returns the value at a path of the agent's names: a name, then fields of records. The first part may be a
// special name. Below @mail are message numbers, and below those the edges of the message. It refuses with
// INVALID_NAME or UNKNOWN_NAME.
func (s *State) Lookup(path string) (capabilities.Value, error) {
	p, err := capabilities.ParsePath(path)
	if err != nil {
		return capabilities.Value{}, err
	}
	v, rest, err := s.root(p)
	if err != nil {
		return capabilities.Value{}, err
	}
	for i, part := range rest {
		r, ok := v.AsRecord()
		if !ok {
			return capabilities.Value{}, parley.Refuse(parley.UnknownName, "%.200q is a %s and has no parts", p[:len(p)-len(rest)+i], v.TypeName())
		}
		if v, ok = r[part]; !ok {
			return capabilities.Value{}, unknownName(path)
		}
	}
	return v, nil
}

func unknownName(path string) error {
	return parley.Refuse(parley.UnknownName, "no name %.300q", path).WithHint("parley names lists the names")
}

// root returns the value at the start of a path, and the rest of the path.
func (s *State) root(p capabilities.Path) (capabilities.Value, capabilities.Path, error) {
	switch p[0] {
	case capabilities.NameSelf:
		return capabilities.Reference(agentRef(s.ID)), p[1:], nil
	case capabilities.NameHost:
		return capabilities.Reference(agentRef(s.Profile.Host)), p[1:], nil
	case capabilities.NameMail:
		if len(p) < 2 {
			return capabilities.Value{}, nil, parley.Refuse(parley.UnknownName, "@mail has messages below it: @mail/0")
		}
		ref, err := capabilities.ParseFormRef(p[1])
		if err != nil {
			return capabilities.Value{}, nil, err
		}
		m, err := s.Mail.Find(ref)
		if err != nil {
			return capabilities.Value{}, nil, err
		}
		return capabilities.Record(s.Mail.edges(m)), p[2:], nil
	case capabilities.NameNodes:
		return capabilities.Record(peerHosts(s)), p[1:], nil
	}
	v, ok := s.Names.values[p[0]]
	if !ok {
		return v, nil, unknownName(p.String())
	}
	return v, p[1:], nil
}

func agentRef(id capabilities.ID) capabilities.Ref {
	return capabilities.Ref{Target: id, Kind: capabilities.KindAgent}
}

// peerHosts returns the hosts of other nodes by the agent's names for them. Only a node's host knows other nodes.
func peerHosts(s *State) map[string]capabilities.Value {
	hosts := map[string]capabilities.Value{}
	for _, n := range s.Peers.nodes {
		for _, name := range s.Names.byAgent[n.Host] {
			hosts[name] = s.Names.values[name]
		}
	}
	return hosts
}

// ListNames returns the names below a path, sorted. For "" it returns the agent's own, the special ones first.
func (s *State) ListNames(path string) ([]string, error) {
	switch path {
	case "":
		return append([]string{capabilities.NameHost, capabilities.NameSelf}, slices.Sorted(maps.Keys(s.Names.values))...), nil
	case capabilities.NameMail:
		names := make([]string, s.Mail.Len())
		for i := range names {
			names[i] = strconv.Itoa(i)
		}
		return names, nil
	}
	v, err := s.Lookup(path)
	if err != nil {
		return nil, err
	}
	r, ok := v.AsRecord()
	if !ok {
		return nil, parley.Refuse(parley.UnknownName, "%.200q is a %s and has no names below it", path, v.TypeName())
	}
	return slices.Sorted(maps.Keys(r)), nil
}

// LookupVisible returns the value at a path as it may be shown now. It refuses with NOT_PERMITTED a reference that was
// revoked or has expired. Within a value, such a reference becomes null.
func (s *State) LookupVisible(path string, now capabilities.Time) (capabilities.Value, error) {
	v, err := s.Lookup(path)
	if err != nil || !v.Has(capabilities.Value.IsRef) {
		return v, err
	}
	if ref, ok := v.AsRef(); ok {
		if err := s.permit(ref, capabilities.UseRead, now); err != nil {
			return capabilities.Value{}, err
		}
		return v, nil
	}
	return v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		if ref, ok := leaf.AsRef(); ok && s.permit(ref, capabilities.UseRead, now) != nil {
			return capabilities.Null(), nil
		}
		return leaf, nil
	})
}

// NamedAgents returns the agents for which the agent has a usable name, each with the name that Names.Of returns.
func (s *State) NamedAgents(now capabilities.Time) map[capabilities.ID]string {
	all := make(map[capabilities.ID]string, len(s.Names.byAgent)+1)
	for id := range s.Names.byAgent {
		if name := s.NameOfAgent(id, now); name != "" {
			all[id] = name
		}
	}
	all[s.Profile.Host] = s.Names.Of(s.Profile.Host)
	return all
}

// NameOfAgent returns the name that Names.Of returns, if the agent has a usable name for another; otherwise "".
func (s *State) NameOfAgent(id capabilities.ID, now capabilities.Time) string {
	if slices.ContainsFunc(s.Names.byAgent[id], func(name string) bool { return isUsable(s, name, now) }) {
		return s.Names.Of(id)
	}
	return ""
}

// RevokedNames returns the names whose references can no longer be used, sorted.
func (s *State) RevokedNames(now capabilities.Time) []string {
	var gone []string
	for _, names := range s.Names.byAgent {
		for _, name := range names {
			if !isUsable(s, name, now) {
				gone = append(gone, name)
			}
		}
	}
	slices.Sort(gone)
	return gone
}

// isUsable reports whether the reference under a name can be used now.
func isUsable(s *State, name string, now capabilities.Time) bool {
	ref, ok := s.Names.values[name].AsRef()
	return ok && s.permit(ref, capabilities.UseRead, now) == nil
}

// permit refuses with NOT_PERMITTED a use of a reference that was revoked or does not permit it.
func (s *State) permit(ref capabilities.Ref, use capabilities.Use, now capabilities.Time) error {
	if err := s.checkLive(ref); err != nil {
		return err
	}
	return ref.Facet.Permits(use, now, s.Grants.uses[ref.Grant])
}

// checkLive refuses with NOT_PERMITTED a reference that was revoked.
func (s *State) checkLive(ref capabilities.Ref) error {
	if at, gone := s.Grants.revoked[ref.Grant]; gone && !ref.Grant.IsZero() {
		return parley.Refuse(parley.NotPermitted, "the reference to %s was revoked at %s", s.Names.describe(ref.Target), at)
	}
	return nil
}

// addressed returns the agent at a path, or with an ID or locator. It does not check that the agent may be used.
func (s *State) addressed(to string) (capabilities.ID, error) {
	if id, ok := targetOf(to); ok {
		return id, nil
	}
	ref, err := s.agentAt(to)
	return ref.Target, err
}

// agentAt returns the reference to an agent at a path.
func (s *State) agentAt(to string) (capabilities.Ref, error) {
	v, err := s.Lookup(to)
	switch parley.CodeOf(err) {
	case "":
	case parley.UnknownName:
		return capabilities.Ref{}, parley.Refuse(parley.UnknownRecipient, "unknown recipient %.200q", to).
			WithHint("parley names lists whom this agent can reach")
	default:
		return capabilities.Ref{}, err
	}
	ref, ok := v.AsRef()
	if !ok || ref.Kind != capabilities.KindAgent {
		return ref, parley.Refuse(parley.UnknownRecipient, "%.200q is not an agent", to)
	}
	return ref, nil
}

// targetOf returns the ID in a recipient that is an ID or a locator, and not a path.
func targetOf(to string) (capabilities.ID, bool) {
	if !capabilities.IsTarget(to) {
		return capabilities.ID{}, false // without an error to be written
	}
	id, err := capabilities.ParseTarget(to)
	return id, err == nil
}
