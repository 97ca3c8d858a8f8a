package mailbox

import (
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
type AdoptName struct{ Which, Edge, Name string }

func (c AdoptName) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Find(c.Which)
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

// RevokeCapability takes back what the agent gave, and with it all that was derived from it.
type RevokeCapability struct{ Grant capabilities.ID }

func (c RevokeCapability) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	g, ok := s.grant(c.Grant)
	if !ok {
		return nil, parley.Refuse(parley.NotPermitted, "this agent gave no grant %s", c.Grant).
			WithHint("parley grants lists what it gave")
	}
	if g.Revoked != 0 {
		return nil, nil
	}
	return []events.Event{&events.CapabilityRevoked{Grant: c.Grant, By: s.ID, Date: now}}, nil
}

// CreateAgent binds a name to a new agent. Genesis makes the agent's own first events.
type CreateAgent struct {
	Agent   capabilities.ID
	Kind    events.AgentKind
	Name    string
	Title   string
	Labels  map[string]string
	Program *events.ProgramSet // nil for none
	Policy  string             // "" is on-miss
}

const (
	maxLabels    = 64
	maxLabelText = 255
)

func (c CreateAgent) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	if c.Kind != events.Host && c.Kind != events.Guest {
		return nil, parley.Refuse(parley.InvalidArgument, "unknown kind of agent %.40q", c.Kind)
	}
	if err := s.checkFree(c.Name); err != nil {
		return nil, err
	}
	if err := checkProfile(c.Title, c.Labels); err != nil {
		return nil, err
	}
	if c.Program != nil {
		if err := CheckProgram(*c.Program); err != nil {
			return nil, err
		}
	}
	if c.Policy != "" {
		if err := CheckPolicy(c.Policy); err != nil {
			return nil, err
		}
	}
	return []events.Event{&events.NameBound{Name: c.Name, Value: capabilities.Reference(agentRef(c.Agent))}}, nil
}

// Genesis are the first events of the mailbox of an agent that by makes. A host's @host is itself, a guest's is that
// of its maker.
func (c CreateAgent) Genesis(by *State) []events.Event {
	made := &events.AgentCreated{Agent: c.Agent, Kind: c.Kind, Host: by.Profile.Host, By: by.ID, Name: c.Name, Title: c.Title, Labels: c.Labels}
	if c.Kind == events.Host {
		made.Host = c.Agent
	}
	evs := []events.Event{made}
	if c.Program != nil {
		evs = append(evs, c.Program)
	}
	if c.Policy != "" {
		evs = append(evs, &events.PolicySet{Policy: c.Policy})
	}
	return evs
}
