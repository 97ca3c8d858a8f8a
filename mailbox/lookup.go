package mailbox

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Find gives the message that a person or a program means: its number here, or the ID of a message, form,
// promise or resolver. It refuses with NO_SUCH_MESSAGE, or INVALID_ARGUMENT for what is neither.
func (s *State) Find(which string) (*Message, error) {
	which = strings.TrimPrefix(which, "#")
	if n, ok := messageNumber(which); ok {
		if n >= uint64(len(s.messages)) {
			return nil, parley.Refuse(parley.NoSuchMessage, "no message %d", n).
				WithHint("parley inbox --all lists the messages")
		}
		return s.messages[n], nil
	}
	id, err := s.parseOwn(which)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "%.120q is neither a message's number nor an ID", which)
	}
	return s.FindID(id)
}

// messageNumber reads a number as it is shown, without leading zeros: an ID or a digest that is cut off is none.
func messageNumber(s string) (uint64, bool) {
	if len(s) > 20 || len(s) > 1 && s[0] == '0' { // the digits of 64 bits; an ID has more letters
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// FindID gives the message with an ID, of its own or of its promise or resolver. It refuses with
// NO_SUCH_MESSAGE.
func (s *State) FindID(id capabilities.ID) (*Message, error) {
	if m, err := s.byOwnID(id); err == nil {
		return m, nil
	}
	for _, m := range s.messages { // rarely asked for, and dear to index
		if m.Form != nil && (m.Form.Promise == id || m.Form.Resolver == id) {
			return m, nil
		}
	}
	return nil, noMessage(id)
}

// byOwnID gives the message that has an ID itself.
func (s *State) byOwnID(id capabilities.ID) (*Message, error) {
	n, ok := s.byID.get(id)
	if !ok {
		return nil, noMessage(id)
	}
	return s.messages[n], nil
}

func noMessage(id capabilities.ID) error {
	return parley.Refuse(parley.NoSuchMessage, "no message %s", id)
}

// FindForm is Find for what must be a form. It refuses with NOT_A_FORM too.
func (s *State) FindForm(which string) (*Message, error) {
	m, err := s.Find(which)
	return mustBeForm(m, err)
}

// Has reports whether a message or form is here.
func (s *State) Has(id capabilities.ID) bool { return s.byID.has(id) }

// FindFormID gives the form with an ID of its own. It refuses with NO_SUCH_MESSAGE and NOT_A_FORM.
func (s *State) FindFormID(id capabilities.ID) (*Message, error) {
	m, err := s.byOwnID(id)
	return mustBeForm(m, err)
}

func mustBeForm(m *Message, err error) (*Message, error) {
	if err == nil && m.Form == nil {
		return nil, parley.Refuse(parley.NotAForm, "message %d is not a form (is %q)", m.Number, "message")
	}
	return m, err
}

// parseOwn is parseTarget for what is most likely an ID of this node, whose key need not be read each time.
func (s *State) parseOwn(which string) (capabilities.ID, error) {
	if s.nodeText == "" {
		s.nodeText = "@" + s.ID.Node.String()
	}
	if u, ours := strings.CutSuffix(which, s.nodeText); ours {
		return capabilities.ParseLocalID(u, s.ID.Node)
	}
	return parseTarget(which)
}

func parseTarget(s string) (capabilities.ID, error) {
	if capabilities.IsLocator(s) {
		l, err := capabilities.ParseLocator(s)
		return l.ID, err
	}
	return capabilities.ParseID(s)
}

// Lookup gives the value at a path of the agent's names: a name, then fields of records. The first may be
// a special name; below @mail stand message numbers, and below those what the message brought. It refuses
// with INVALID_NAME or UNKNOWN_NAME.
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

// root gives the value at the start of a path, and what of the path is left.
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
	m, err := s.Find(p[1])
	if err != nil {
		return capabilities.Value{}, nil, err
	}
	return capabilities.Record(s.edges(m)), p[2:], nil
}

// nodeHosts gives the hosts of other nodes that the agent has names for, by those names. Only a node's host knows
// which they are.
func (s *State) nodeHosts() map[string]capabilities.Value {
	hosts := map[string]capabilities.Value{}
	for _, n := range s.peers.nodes {
		for _, name := range s.called[n.Host] {
			hosts[name] = s.names[name]
		}
	}
	return hosts
}

// edges gives what a message brought, by name: the standard edges start with "@", those of its text do not.
func (s *State) edges(m *Message) map[string]capabilities.Value {
	edges := map[string]capabilities.Value{
		"@date":    capabilities.String(m.Date().String()),
		"@message": capabilities.String(m.ID().String()),
		"@type":    capabilities.String(m.Type()),
	}
	if r := m.ReplyTo(); !r.IsZero() {
		edges["@reply"] = capabilities.String(r.String())
	}
	if m.Posted != nil {
		edges["@strings"] = capabilities.Strings(words(m.Posted.Text)...)
	} else {
		edges["@description"] = capabilities.String(m.Form.Description)
	}
	for _, e := range s.carried(m) {
		edges[e.name] = e.value
	}
	return edges
}

type edge struct {
	name  string
	value capabilities.Value
}

// carried gives the edges of a message that may hold references, always in the same order.
func (s *State) carried(m *Message) []edge {
	all := []edge{
		{"@from", capabilities.Reference(s.refFrom(m))},
		{"@to", capabilities.Reference(s.refTo(m))},
	}
	if m.Posted != nil {
		for _, sp := range m.Posted.Text {
			if sp.Edge != "" {
				all = append(all, edge{sp.Edge, sp.Value})
			}
		}
		return all
	}
	f := m.Form
	all = append(all,
		edge{"@promise", capabilities.Reference(capabilities.Ref{Target: f.Promise, Kind: capabilities.KindPromise})},
		edge{"@resolver", capabilities.Reference(capabilities.Ref{Target: f.Resolver, Kind: capabilities.KindResolver})},
	)
	if f.Answered != nil && !f.Answered.Withheld {
		all = append(all, edge{"@value", f.value(s.forReader(f))})
	}
	return all
}

// forReader gives the values that a form was answered with as they are of use to the agent: what is sealed is so for who
// asked, and for others only seen to be there.
func (s *State) forReader(f *Form) capabilities.Value {
	if f.From == s.ID || !f.Answered.Values.Has(capabilities.Value.IsSealed) {
		return f.Answered.Values
	}
	shut, _ := f.Answered.Values.Map(shutLeaf) // the function returns no error, so neither does Map
	return shut
}

// shutLeaf gives a sealed value of which nothing is left but that it was sealed, and any other as it is.
func shutLeaf(leaf capabilities.Value) (capabilities.Value, error) {
	if leaf.IsSealed() {
		return capabilities.Sealed(nil), nil
	}
	return leaf, nil
}

// refTo is the reference by which the message was sent, as its sender held it. To others it is a name.
func (s *State) refTo(m *Message) capabilities.Ref {
	r := agentRef(m.To())
	switch {
	case m.From() != s.ID:
	case m.along != nil:
		return s.refTo(m.along)
	case m.Form != nil:
		r.Grant, r.Facet = m.Form.Via, m.Form.Facet
	default:
		r.Grant, r.Facet = m.Posted.Via, m.Posted.Facet
	}
	return r
}

// refFrom is the reference to who sent the message. Of a reply it is the one by which that was reached: what came of a
// grant ends with the grant, and is no wider.
func (s *State) refFrom(m *Message) capabilities.Ref {
	if m.along != nil {
		return s.refTo(m.along)
	}
	return agentRef(m.From())
}

// alongOf returns the message by whose reference the other party of a reply was reached, or nil if that was by none
// but its own mail.
func (s *State) alongOf(m *Message) *Message {
	n, ok := s.byID.get(m.ReplyTo())
	if !ok {
		return nil
	}
	first := s.messages[n]
	if first.along != nil {
		first = first.along
	}
	other := m.From()
	if other == s.ID {
		if other = m.To(); s.refTo(m) != agentRef(other) {
			return nil // it was sent by a reference of its own
		}
	}
	if first.From() != s.ID || first.To() != other || s.refTo(first) == agentRef(other) {
		return nil
	}
	return first
}

// value is what a form's answer is as a value: of a request, the capability itself.
func (f *Form) value(values capabilities.Value) capabilities.Value {
	if f.Kind == events.Request {
		if r, ok := values.AsRecord(); ok {
			return r[requestField]
		}
	}
	return values
}

// Type names the kind of message: form, request or message.
func (m *Message) Type() string {
	switch {
	case m.Form == nil:
		return "message"
	case m.Form.Kind != events.PlainForm:
		return string(m.Form.Kind)
	}
	return "form"
}

// Names lists the names below a path, sorted; "" lists the agent's own, the special ones first.
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

// NameOf gives the agent's own name of today for another agent, "" if it has none. HOST and SELF come first.
func (s *State) NameOf(id capabilities.ID) string {
	switch id {
	case s.Profile.Host:
		return "HOST"
	case s.ID:
		return "SELF"
	}
	if names := s.called[id]; len(names) > 0 {
		return slices.Min(names)
	}
	return ""
}

// LookupVisible returns the value at a path as it may be shown now. A reference that was revoked, or whose time is over, is refused
// with NOT_PERMITTED; within a value null stands in its place.
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

// NamedAgents returns the agents that the agent has names for which are good now, and for each the name that NameOf gives.
func (s *State) NamedAgents(now capabilities.Time) map[capabilities.ID]string {
	all := make(map[capabilities.ID]string, len(s.called)+1)
	for id, names := range s.called {
		if slices.ContainsFunc(names, func(name string) bool { return s.isGood(name, now) }) {
			all[id] = s.NameOf(id)
		}
	}
	all[s.Profile.Host] = s.NameOf(s.Profile.Host)
	return all
}

// isGood reports whether the reference under a name may be used for anything now.
func (s *State) isGood(name string, now capabilities.Time) bool {
	ref, ok := s.names[name].AsRef()
	return ok && s.permit(ref, capabilities.UseRead, now) == nil
}

// RevokedNames returns the names whose references are good for nothing any more, sorted.
func (s *State) RevokedNames(now capabilities.Time) []string {
	var gone []string
	for _, names := range s.called {
		for _, name := range names {
			if !s.isGood(name, now) {
				gone = append(gone, name)
			}
		}
	}
	slices.Sort(gone)
	return gone
}

// call and uncall keep the names by which agents are known, as names are bound and freed.
func (s *State) call(name string) {
	if r, ok := s.names[name].AsRef(); ok {
		s.called[r.Target] = append(s.called[r.Target], name)
	}
}

func (s *State) uncall(name string) {
	r, ok := s.names[name].AsRef()
	if !ok {
		return
	}
	left := slices.DeleteFunc(s.called[r.Target], func(n string) bool { return n == name })
	if s.called[r.Target] = left; len(left) == 0 {
		delete(s.called, r.Target)
	}
}

// calls names an agent in an error message: by the agent's own name for it, or by its ID.
func (s *State) calls(id capabilities.ID) string {
	if n := s.NameOf(id); n != "" {
		return strconv.Quote(n)
	}
	return id.String()
}

// CheckRequest refuses with NOT_A_REQUEST a message that is not a request.
func (s *State) CheckRequest(which string) error {
	m, err := s.Find(which)
	if err != nil {
		return err
	}
	if t := m.Type(); t != "request" {
		return parley.Refuse(parley.NotARequest, "message %d is not a request (is %q)", m.Number, t)
	}
	return nil
}

// Undelivered gives the messages that have not arrived where they were sent first.
func (s *State) Undelivered() map[*Message]bool {
	waiting := map[*Message]bool{}
	for _, p := range s.outbox {
		if p.Kind != events.OutboxCopy {
			continue
		}
		if n, ok := s.byID.get(p.Subject); ok && s.messages[n].To() == p.To {
			waiting[s.messages[n]] = true
		}
	}
	return waiting
}
