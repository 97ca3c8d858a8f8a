package mailbox

import (
	"maps"
	"slices"
	"strconv"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// BindName binds a name to a value: a JSON document, or the locator of something that the agent holds.
type BindName struct {
	Name  string
	Value string
}

func (c BindName) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.checkFree(c.Name); err != nil {
		return nil, err
	}
	v, err := s.readValue(c.Value, now)
	if err != nil {
		return nil, err
	}
	return bind(c.Name, v)
}

func (s *State) readValue(text string, now capabilities.Time) (capabilities.Value, error) {
	if !capabilities.IsLocator(text) {
		v, err := capabilities.ParseJSON([]byte(text))
		if err != nil {
			return v, err
		}
		return s.claimAll(v, capabilities.UseRead, now)
	}
	l, err := capabilities.ParseLocator(text)
	if err != nil {
		return capabilities.Value{}, err
	}
	kind := l.Kind
	if kind == "" {
		kind = capabilities.KindAgent
	}
	ref, err := s.claim(capabilities.Ref{Target: l.ID, Kind: kind}, capabilities.UseRead, now)
	return capabilities.Reference(ref), err
}

func bind(name string, v capabilities.Value) ([]events.Event, error) {
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
	if _, taken := s.names[name]; taken {
		return parley.Refuse(parley.NameTaken, "the name %.80q is taken", name).WithHint("parley remove %s frees it", name)
	}
	if n, awaited := s.results[name]; awaited {
		return parley.Refuse(parley.NameTaken, "the name %.80q awaits the answer of form %d", name, n)
	}
	if s.peers.invited(name) >= 0 {
		return parley.Refuse(parley.NameTaken, "the name %.80q awaits whom an invitation is for", name).
			WithHint("parley invite --revoke %s ends it", name)
	}
	return nil
}

// CopyName binds a second name to a value. With a facet, the references in it are narrowed to that.
//
// Uses are counted by grant. A reference that nobody gave to the agent has none: narrowed to so many uses, it
// is what others will have when it is given to them, each so many; the agent's own uses of it do not count.
// One by a grant is good until that grant was used so many times, by whatever name, and cannot be given on.
type CopyName struct {
	From, To string
	Facet    capabilities.Facet
}

func (c CopyName) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := c.Facet.Check(); err != nil {
		return nil, err
	}
	v, err := s.at(c.From, capabilities.UseRead, now)
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
	return bind(c.To, v)
}

// MoveName moves a value from one name to another.
type MoveName struct{ From, To string }

func (c MoveName) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	v, err := s.bound(c.From)
	if err != nil {
		return nil, err
	}
	if err := s.checkFree(c.To); err != nil {
		return nil, err
	}
	return []events.Event{&events.NameBound{Name: c.To, Value: v}, &events.NameUnbound{Name: c.From}}, nil
}

// UnbindName frees a name.
type UnbindName struct{ Name string }

func (c UnbindName) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if _, err := s.bound(c.Name); err != nil {
		return nil, err
	}
	return []events.Event{&events.NameUnbound{Name: c.Name}}, nil
}

func (s *State) bound(name string) (capabilities.Value, error) {
	if err := capabilities.CheckName(name); err != nil {
		return capabilities.Value{}, err
	}
	v, ok := s.names[name]
	if !ok {
		return v, unknownName(name)
	}
	return v, nil
}

// AdoptName binds a name to what a message brought under an edge.
type AdoptName struct {
	Message    capabilities.FormRef
	Edge, Name string
}

func (c AdoptName) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Find(c.Message)
	if err != nil {
		return nil, err
	}
	v, ok := s.edges(m)[c.Edge]
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
	if v, err = s.claimKnown(v, capabilities.UseRead, now); err != nil {
		return nil, err
	}
	return bind(name, v)
}

// Lookup returns the value at a path of the agent's names: a name, then fields of records. The first part may be a
// special name. Below @mail are message numbers, and below those what the message brought. It refuses with
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
		return s.mailRoot(p)
	case capabilities.NameNodes:
		return capabilities.Record(s.nodeHosts()), p[1:], nil
	}
	v, ok := s.names[p[0]]
	if !ok {
		return v, nil, unknownName(p.String())
	}
	return v, p[1:], nil
}

func agentRef(id capabilities.ID) capabilities.Ref {
	return capabilities.Ref{Target: id, Kind: capabilities.KindAgent}
}

// mailRoot reads @mail/{number}/{edge}.
func (s *State) mailRoot(p capabilities.Path) (capabilities.Value, capabilities.Path, error) {
	if len(p) < 2 {
		return capabilities.Value{}, nil, parley.Refuse(parley.UnknownName, "@mail has messages below it: @mail/0")
	}
	ref, err := capabilities.ParseFormRef(p[1])
	if err != nil {
		return capabilities.Value{}, nil, err
	}
	m, err := s.Find(ref)
	if err != nil {
		return capabilities.Value{}, nil, err
	}
	return capabilities.Record(s.edges(m)), p[2:], nil
}

// nodeHosts returns the hosts of other nodes by the agent's names for them. Only a node's host knows which they are.
func (s *State) nodeHosts() map[string]capabilities.Value {
	hosts := map[string]capabilities.Value{}
	for _, n := range s.peers.nodes {
		for _, name := range s.namesOf[n.Host] {
			hosts[name] = s.names[name]
		}
	}
	return hosts
}

// Names returns the names below a path, sorted. For "" it returns the agent's own, the special ones first.
func (s *State) Names(path string) ([]string, error) {
	switch path {
	case "":
		return append([]string{capabilities.NameHost, capabilities.NameSelf}, slices.Sorted(maps.Keys(s.names))...), nil
	case capabilities.NameMail:
		names := make([]string, len(s.messages))
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

// NameOf returns the agent's own name for another agent; "" if it has none. HOST and SELF come first.
func (s *State) NameOf(id capabilities.ID) string {
	switch id {
	case s.Profile.Host:
		return "HOST"
	case s.ID:
		return "SELF"
	}
	if names := s.namesOf[id]; len(names) > 0 {
		return slices.Min(names)
	}
	return ""
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

// NamedAgents returns the agents for which the agent has a usable name, each with the name that NameOf returns.
func (s *State) NamedAgents(now capabilities.Time) map[capabilities.ID]string {
	all := make(map[capabilities.ID]string, len(s.namesOf)+1)
	for id, names := range s.namesOf {
		if slices.ContainsFunc(names, func(name string) bool { return s.isUsable(name, now) }) {
			all[id] = s.NameOf(id)
		}
	}
	all[s.Profile.Host] = s.NameOf(s.Profile.Host)
	return all
}

// isUsable reports whether the reference under a name can be used now.
func (s *State) isUsable(name string, now capabilities.Time) bool {
	ref, ok := s.names[name].AsRef()
	return ok && s.permit(ref, capabilities.UseRead, now) == nil
}

// RevokedNames returns the names whose references can no longer be used, sorted.
func (s *State) RevokedNames(now capabilities.Time) []string {
	var gone []string
	for _, names := range s.namesOf {
		for _, name := range names {
			if !s.isUsable(name, now) {
				gone = append(gone, name)
			}
		}
	}
	slices.Sort(gone)
	return gone
}

// indexName and uncall keep the names by which agents are known, as names are bound and freed.
func (s *State) indexName(name string) {
	if r, ok := s.names[name].AsRef(); ok {
		s.namesOf[r.Target] = append(s.namesOf[r.Target], name)
	}
}

func (s *State) unindexName(name string) {
	r, ok := s.names[name].AsRef()
	if !ok {
		return
	}
	left := slices.DeleteFunc(s.namesOf[r.Target], func(n string) bool { return n == name })
	if s.namesOf[r.Target] = left; len(left) == 0 {
		delete(s.namesOf, r.Target)
	}
}

// describe returns the name of an agent for an error message: the agent's own name for it, or its ID.
func (s *State) describe(id capabilities.ID) string {
	if n := s.NameOf(id); n != "" {
		return strconv.Quote(n)
	}
	return id.String()
}
