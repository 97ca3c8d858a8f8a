package mailbox

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/table"
)

// Names holds the agent's own names for values. Those of the node's agents that the agent holds in full are in tables,
// since they may be very many. Methods that need a page of these that is not in memory fail with PagedOut.
type Names struct {
	self    capabilities.ID
	profile *Profile

	values  map[string]capabilities.Value // all others
	byAgent map[capabilities.ID][]string  // names of references among values, by their targets
	order   table.Table                   // keys alone: the names of values. It is not stored
	agents  table.Table                   // the node's agents by their names: their ULIDs
	byULID  table.Table                   // keys alone: ULIDs with names behind them, and ULIDs of agents made by the agent
}

func newNames(self capabilities.ID, p *Profile) Names {
	return Names{self: self, profile: p, values: map[string]capabilities.Value{}, byAgent: map[capabilities.ID][]string{}}
}

// ulidKey returns the key of an agent of the node in the tables.
func ulidKey(id capabilities.ID) string { return string(id.ULID[:]) }

// keyOfAgent returns the key of an agent that is in the tables, and whether the value is such an agent.
func (l *Names) keyOfAgent(v capabilities.Value) (string, bool) {
	r, ok := v.AsRef()
	if !ok || r.Target.Node != l.self.Node || r != agentRef(r.Target) {
		return "", false
	}
	return ulidKey(r.Target), true
}

// agentOf returns the agent with a key.
func (l *Names) agentOf(key string) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID([]byte(key)), Node: l.self.Node}
}

// Other returns the values of the names that are not of agents which the agent holds in full. The map belongs to the state.
func (l *Names) Other() map[string]capabilities.Value { return l.values }

// bind binds a name to a value, in place of the value that it had.
func (l *Names) bind(name string, v capabilities.Value) {
	l.unbind(name)
	if key, ok := l.keyOfAgent(v); ok {
		l.agents.Put(name, key)
		l.byULID.Put(key+name, "")
		return
	}
	l.values[name] = v
	l.order.Put(name, "")
	if r, ok := v.AsRef(); ok {
		l.byAgent[r.Target] = append(l.byAgent[r.Target], name)
	}
}

// unbind frees a name.
func (l *Names) unbind(name string) {
	if key, bound, _ := l.agents.Get(name); bound { // its page is there: see needs
		l.agents.Delete(name)
		l.byULID.Delete(key + name)
		return
	}
	if r, ok := l.values[name].AsRef(); ok {
		left := slices.DeleteFunc(l.byAgent[r.Target], func(n string) bool { return n == name })
		if l.byAgent[r.Target] = left; len(left) == 0 {
			delete(l.byAgent, r.Target)
		}
	}
	delete(l.values, name)
	l.order.Delete(name)
}

// needs fails with PagedOut if a name cannot be bound to a value, or freed, with the pages in memory.
func (l *Names) needs(name string, v capabilities.Value) error {
	old, bound, err := l.agents.Get(name)
	if bound && err == nil {
		err = l.byULID.Need(old + name)
	}
	if r, ok := v.AsRef(); ok && err == nil {
		err = cmp.Or(l.byULID.Need(ulidKey(r.Target)), l.byULID.Need(ulidKey(r.Target)+name))
	}
	return absentTable(err)
}

// get returns the value of a name, and whether it has one. It fails with PagedOut.
func (l *Names) get(name string) (capabilities.Value, bool, error) {
	name = capabilities.Normal(name)
	if v, bound := l.values[name]; bound {
		return v, true, nil
	}
	key, bound, err := l.agents.Get(name)
	if err != nil || !bound {
		return capabilities.Value{}, false, absentTable(err)
	}
	return capabilities.Reference(agentRef(l.agentOf(key))), true, nil
}

// bound returns the value of a name. It refuses with INVALID_NAME or UNKNOWN_NAME, and fails with PagedOut.
func (l *Names) bound(name string) (capabilities.Value, error) {
	if err := capabilities.CheckName(name); err != nil {
		return capabilities.Value{}, err
	}
	v, ok, err := l.get(name)
	if err == nil && !ok {
		err = unknownName(name)
	}
	return v, err
}

// all returns all names with their values. It fails with PagedOut.
func (l *Names) all() (map[string]capabilities.Value, error) {
	if pages := l.agents.PagedOut(); len(pages) > 0 {
		return nil, &PagedOut{Tables: pages}
	}
	all := maps.Clone(l.values)
	for e := range l.agents.From("") {
		all[e.Key] = capabilities.Reference(agentRef(l.agentOf(e.Value)))
	}
	return all, nil
}

// inTable returns the first name of an agent in the tables; "" if there is none. It fails with PagedOut.
func (l *Names) inTable(id capabilities.ID) (string, error) {
	if id.Node != l.self.Node {
		return "", nil
	}
	key := ulidKey(id)
	for e, err := range l.byULID.From(key) {
		if err != nil {
			return "", absentTable(err)
		}
		name, ok := strings.CutPrefix(e.Key, key)
		if !ok {
			break
		}
		if name != "" { // or the agent made it
			return name, nil
		}
	}
	return "", nil
}

// hostName is how agents name their host.
const hostName = "HOST"

// Of returns the agent's own name for another agent; "" if it has none. HOST and SELF come first. It fails with PagedOut.
func (l *Names) Of(id capabilities.ID) (string, error) {
	switch id {
	case l.profile.Host:
		return hostName, nil
	case l.self:
		return "SELF", nil
	}
	name, err := l.inTable(id)
	if names := l.byAgent[id]; err == nil && len(names) > 0 {
		if least := slices.Min(names); name == "" || least < name {
			name = least
		}
	}
	return name, err
}

// describe returns an agent as error messages show it: by the agent's own name for it, or else by the end of its ID. It fails with
// PagedOut.
func (l *Names) describe(id capabilities.ID) (string, error) {
	name, err := l.Of(id)
	if name != "" || err != nil {
		return strconv.Quote(name), err
	}
	text := id.ULID.String()
	return "agent …" + text[len(text)-8:], nil
}

// grantName returns the agent's name for a reference that it gives; without one, the field or edge of the reference. It
// fails with PagedOut.
func (l *Names) grantName(ref capabilities.Ref, edge string) (string, error) {
	if ref.Kind.IsResource() {
		return cmp.Or(l.closest(ref, edge), edge), nil
	}
	name, err := l.Of(ref.Target)
	return cmp.Or(name, edge), err
}

// closest returns the agent's name for a reference to a resource, of which it may hold more and less: the name that is given, if it has as
// much, or else the one that has no more than it must; "" if there is none.
func (l *Names) closest(ref capabilities.Ref, given string) (name string) {
	var least capabilities.Facet
	for _, n := range slices.Sorted(slices.Values(l.byAgent[ref.Target])) {
		held, ok := l.values[n].AsRef()
		if !ok || held.Grant != ref.Grant || !held.Facet.Covers(ref.Facet) || n == name {
			continue
		}
		closer := name == "" || least != held.Facet && least.Covers(held.Facet) || least == held.Facet && n == capabilities.Normal(given)
		if closer {
			name, least = n, held.Facet
		}
	}
	return name
}

// addMade notes that the agent made another. It reports whether that is new. The page has to be in memory.
func (l *Names) addMade(id capabilities.ID) bool {
	if _, before, _ := l.byULID.Get(ulidKey(id)); before {
		return false
	}
	l.byULID.Put(ulidKey(id), "")
	return true
}

// Made returns the agents that this one has made and has or had a name for. It fails with PagedOut.
func (l *Names) Made() ([]capabilities.ID, error) {
	if pages := l.byULID.PagedOut(); len(pages) > 0 {
		return nil, &PagedOut{Tables: pages}
	}
	made := []capabilities.ID{}
	for e := range l.byULID.From("") {
		if len(e.Key) == len(ulid.ULID{}) {
			made = append(made, l.agentOf(e.Key))
		}
	}
	return made, nil
}

// absentTable returns the error of a table as the mailbox's.
func absentTable(err error) error {
	if page, ok := errors.AsType[table.PagedOut](err); ok {
		return &PagedOut{Tables: []table.Sum{table.Sum(page)}}
	}
	return err
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

// checkFree refuses with INVALID_NAME or NAME_TAKEN a name that cannot be bound now. It may look like one that is bound.
func (s *State) checkFree(name string) error {
	if err := capabilities.CheckName(name); err != nil {
		return err
	}
	if capabilities.MixesScripts(name) {
		return parley.Refuse(parley.InvalidName, "%s cannot be a name: it mixes letters of two scripts that look alike", parley.Quoted(name, 80))
	}
	for _, other := range capabilities.Lookalikes(name) {
		if _, taken, err := s.Names.get(other); err != nil {
			return err
		} else if taken || capabilities.Special(other) != "" {
			return parley.Refuse(parley.NameTaken, "the name %s looks like %s, which is another and is taken", parley.Quoted(name, 80), parley.Quoted(other, 80)).
				WithHint("choose a name that people can tell apart")
		}
	}
	if _, taken, err := s.Names.get(name); err != nil {
		return err
	} else if taken {
		return parley.Refuse(parley.NameTaken, "the name %.80q is taken", name).WithHint("parley name rename %s OTHER frees it, and keeps what it stands for", name)
	}
	if n, awaited := s.Mail.asks.results[capabilities.Normal(name)]; awaited {
		return parley.Refuse(parley.NameTaken, "the name %.80q awaits the answer of form %d", name, n)
	}
	if s.Peers.invited(name) >= 0 {
		return parley.Refuse(parley.NameTaken, "the name %.80q awaits whom an invitation is for", name).
			WithHint("parley node invite --revoke %s ends it", name)
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
	if v, err = narrowedAll(s, v, c.Facet); err != nil {
		return nil, err
	}
	return bindEvents(c.To, v)
}

// narrowedAll returns a value with the references in it narrowed.
func narrowedAll(s *State, v capabilities.Value, f capabilities.Facet) (capabilities.Value, error) {
	if err := f.Check(); err != nil {
		return v, err
	}
	return v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		ref, ok := leaf.AsRef()
		if !ok {
			return leaf, nil
		}
		ref, err := narrowed(s, ref, f)
		return capabilities.Reference(ref), err
	})
}

// narrowed returns a reference with no more than a facet of it.
func narrowed(s *State, ref capabilities.Ref, f capabilities.Facet) (capabilities.Ref, error) {
	if f.Ask && !ref.Facet.Ask && s.isRemote(ref.Target) {
		return ref, parley.Refuse(parley.NotPermitted, "only a giver on the resource's own node can be asked at each use")
	}
	ref.Facet = ref.Facet.Narrow(f)
	if f.IsFull() {
		return ref, nil
	}
	return ref, ref.Facet.CheckFor(ref.Kind)
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
	if c.Force && capabilities.Normal(c.From) == capabilities.Normal(c.To) {
		return nil, nil
	}
	if _, taken, err := s.Names.get(c.To); err != nil {
		return nil, err
	} else if !taken || !c.Force {
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
	v, ok := m.edges(s.ID)[c.Edge]
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

// Namespace resolves the paths of an agent: its names, and the special ones. It reads the state.
type Namespace struct{ s *State }

// Namespace returns the namespace of the mailbox's agent.
func (s *State) Namespace() Namespace { return Namespace{s} }

// Lookup returns the value at a path of the agent's names: a name, then fields of records. The first part may be a
// special name. Below @mail are message numbers, and below those the edges of the message. It refuses with
// INVALID_NAME or UNKNOWN_NAME.
func (n Namespace) Lookup(path string) (capabilities.Value, error) {
	p, err := capabilities.ParsePath(path)
	if err != nil {
		return capabilities.Value{}, err
	}
	v, rest, err := n.root(p)
	if err != nil {
		return capabilities.Value{}, err
	}
	return below(v, p, rest)
}

// below returns what is at the rest of a path, below a value.
func below(v capabilities.Value, p, rest capabilities.Path) (capabilities.Value, error) {
	for i, part := range rest {
		r, ok := v.AsRecord()
		if !ok {
			return capabilities.Value{}, parley.Refuse(parley.UnknownName, "%.200q is a %s and has no parts", p[:len(p)-len(rest)+i], v.TypeName())
		}
		if _, ok := r[part]; !ok {
			part = capabilities.Normal(part)
		}
		if v, ok = r[part]; !ok {
			return capabilities.Value{}, unknownName(p.String())
		}
	}
	return v, nil
}

func unknownName(path string) error {
	return parley.Refuse(parley.UnknownName, "no name %.300q", path).WithHint("parley names lists the names")
}

// root returns the value at the start of a path, and the rest of the path.
func (n Namespace) root(p capabilities.Path) (capabilities.Value, capabilities.Path, error) {
	switch p[0] {
	case capabilities.NameSelf:
		return capabilities.Reference(agentRef(n.s.ID)), p[1:], nil
	case capabilities.NameHost:
		return capabilities.Reference(agentRef(n.s.Profile.Host)), p[1:], nil
	case capabilities.NameMail:
		if len(p) < 2 {
			return capabilities.Value{}, nil, parley.Refuse(parley.UnknownName, "@mail has messages below it: @mail/0")
		}
		ref, err := capabilities.ParseFormRef(p[1])
		if err != nil {
			return capabilities.Value{}, nil, err
		}
		m, err := n.s.Mail.Find(ref)
		if err != nil {
			return capabilities.Value{}, nil, err
		}
		return capabilities.Record(m.edges(n.s.ID)), p[2:], nil
	case capabilities.NameNodes:
		return capabilities.Record(peerHosts(n.s)), p[1:], nil
	}
	v, ok, err := n.s.Names.get(p[0])
	if err == nil && !ok {
		err = unknownName(p.String())
	}
	return v, p[1:], err
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

// List returns names below a path, sorted, from behind a name on. "" is before all. Most is their largest number, or 0 for no
// limit. For the path "" it returns the agent's own, the special ones first. Pages of tables with other names need not be in
// memory.
func (n Namespace) List(path, after string, most int) ([]string, error) {
	switch path {
	case "":
		return n.own(after, most)
	case capabilities.NameMail:
		first := uint64(0)
		if last, err := strconv.ParseUint(after, 10, 32); err == nil {
			first = last + 1
		}
		names := []string{}
		for i := first; i < n.s.Mail.Index.Len() && (most <= 0 || len(names) < most); i++ {
			names = append(names, strconv.FormatUint(i, 10))
		}
		return names, nil
	}
	v, err := n.Lookup(path)
	if err != nil {
		return nil, err
	}
	r, ok := v.AsRecord()
	if !ok {
		return nil, parley.Refuse(parley.UnknownName, "%.200q is a %s and has no names below it", path, v.TypeName())
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(r)), func(name string) bool { return after != "" && name <= after })
	if most > 0 {
		names = names[:min(len(names), most)]
	}
	return names, nil
}

// own returns the agent's own names from behind one on.
func (n Namespace) own(after string, most int) ([]string, error) {
	l := &n.s.Names
	names := []string{capabilities.NameHost, capabilities.NameSelf}
	if i := slices.Index(names, after); i >= 0 || after != "" {
		if names = names[i+1:]; i < 0 {
			names = names[:0]
		}
	}
	from := ""
	if !strings.HasPrefix(after, "@") {
		from = after
	}
	next, stop := iter.Pull2(l.order.From(from))
	defer stop()
	other, _, more := next() // all of it is in memory
	for e, err := range l.agents.From(from) {
		if err != nil {
			return nil, absentTable(err)
		}
		for ; more && other.Key < e.Key; other, _, more = next() {
			names = append(names, other.Key)
		}
		if names = append(names, e.Key); most > 0 && len(names) > most+1 { // the first may be the one before
			break
		}
	}
	for ; more && (most <= 0 || len(names) <= most+1); other, _, more = next() {
		names = append(names, other.Key)
	}
	if from != "" && len(names) > 0 && names[0] == from {
		names = names[1:]
	}
	if most > 0 {
		names = names[:min(len(names), most)]
	}
	return names, nil
}

// LookupVisible returns the value at a path as it may be shown now. It refuses with NOT_PERMITTED a reference that was
// revoked or has expired. Within a value, such a reference becomes null.
func (n Namespace) LookupVisible(path string, now capabilities.Time) (capabilities.Value, error) {
	v, err := n.Lookup(path)
	if err != nil || !v.Has(capabilities.Value.IsRef) {
		return v, err
	}
	if ref, ok := v.AsRef(); ok {
		if err := n.s.permit(ref, capabilities.UseRead, now); err != nil {
			return capabilities.Value{}, err
		}
		return v, nil
	}
	return v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		if ref, ok := leaf.AsRef(); ok && n.s.permit(ref, capabilities.UseRead, now) != nil {
			return capabilities.Null(), nil
		}
		return leaf, nil
	})
}
