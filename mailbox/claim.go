package mailbox

import (
	"iter"
	"maps"
	"slices"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/text"
)

// holder finds the references by which the agent holds what it names, for one use at a time. Knowing an ID gives no
// authority: a reference from outside is replaced by the one that is held.
type holder struct {
	s   *State
	use capabilities.Use
	now capabilities.Time
}

func (s *State) holder(use capabilities.Use, now capabilities.Time) holder {
	return holder{s: s, use: use, now: now}
}

// reach returns the agent at a path, or with an ID or locator that the agent holds. It refuses with UNKNOWN_RECIPIENT a
// path that leads to no agent. It refuses with NOT_PERMITTED an agent that may not be used.
func (h holder) reach(to string) (capabilities.Ref, error) {
	ref, err := h.recipient(to)
	if err != nil {
		return ref, err
	}
	return ref, h.s.permit(ref, h.use, h.now)
}

func (h holder) recipient(to string) (capabilities.Ref, error) {
	if id, ok := targetOf(to); ok {
		return h.claim(agentRef(id))
	}
	ref, err := h.s.Namespace().agentAt(to)
	if err != nil || !isBare(ref) || !inMail(to) {
		return ref, err
	}
	return h.claim(ref)
}

// at returns the value at a path. A bare reference in mail is replaced by the one that is held.
func (h holder) at(path string) (capabilities.Value, error) {
	v, err := h.s.Namespace().Lookup(path)
	if err != nil || !inMail(path) {
		return v, err
	}
	return h.claimBare(v)
}

// CheckHeld refuses with NOT_PERMITTED a path into mail to what the agent knows by that alone, and does not hold.
func (n Namespace) CheckHeld(path string, now capabilities.Time) error {
	_, err := n.s.holder(capabilities.UseRead, now).at(path)
	return err
}

// inMail reports whether a path leads into mail.
func inMail(path string) bool {
	p, err := capabilities.ParsePath(path)
	return err == nil && p[0] == capabilities.NameMail
}

// isBare reports whether a reference has neither a grant nor a facet.
func isBare(r capabilities.Ref) bool { return r.Grant.IsZero() && r.Facet.IsFull() }

// claim returns the reference by which the agent holds a target, under its names or from its mail. Of several it
// prefers one that permits the use now, then the widest, then the first. It refuses with NOT_PERMITTED a target that
// is not held. The reference need not permit the use: see State.permit.
func (h holder) claim(want capabilities.Ref) (capabilities.Ref, error) {
	s := h.s
	var best, revoked *capabilities.Ref
	bestPermits := false
	if _, err := s.Names.inTable(want.Target); err != nil {
		return want, err
	}
	for r := range h.refs(want.Target) {
		if r.Target != want.Target || r.Kind != want.Kind || !want.Grant.IsZero() && r.Grant != want.Grant {
			continue
		}
		if _, gone := s.Grants.revoked[r.Grant]; gone {
			revoked = &r
			continue
		}
		permits := s.permit(r, h.use, h.now) == nil
		if best == nil || permits && !bestPermits || permits == bestPermits && r.Facet.Wider(best.Facet) {
			best, bestPermits = &r, permits
		}
		if bestPermits && best.Facet.IsFull() {
			break // there is no better one
		}
	}
	if want.Grant.IsZero() && !(bestPermits && best.Facet.IsFull()) {
		if r, held, err := s.Mail.formRef(want.Target, want.Kind); held || err != nil {
			return r, err
		}
	}
	switch {
	case best != nil:
		return *best, nil
	case revoked != nil:
		return *revoked, s.permit(*revoked, h.use, h.now)
	}
	return capabilities.Ref{}, parley.Refuse(parley.NotPermitted, "this agent does not hold %s", want.Target).
		WithHint("knowing an ID gives no authority: ask whoever holds it to give it")
}

// refs yields the references that the agent holds, always in the same order: those that it was made with, those under
// its names, and those to the target from its mail. The target's own names come first.
func (h holder) refs(target capabilities.ID) iter.Seq[capabilities.Ref] {
	s := h.s
	return func(yield func(capabilities.Ref) bool) {
		if !yield(agentRef(s.ID)) || !yield(agentRef(s.Profile.Host)) {
			return
		}
		if s.Resource.made != nil && s.Grants.gave(target) && !yield(agentRef(target)) { // whom it has to ask about uses
			return
		}
		names := slices.Clone(s.Names.byAgent[target])
		bare, _ := s.Names.inTable(target) // claim has seen to the page
		if bare != "" {
			names = append(names, bare)
		}
		slices.Sort(names)
		for _, n := range names {
			v := s.Names.values[n]
			if n == bare {
				v = capabilities.Reference(agentRef(target))
			}
			if !visitRefs(v, yield) {
				return
			}
		}
		for _, n := range slices.Sorted(maps.Keys(s.Names.values)) { // those in the tables are of other targets
			if !visitRefs(s.Names.values[n], yield) {
				return
			}
		}
		for r := range s.Mail.refs.of(target) {
			if !yield(r) {
				return
			}
		}
	}
}

// visitRefs calls yield for the references within a value until it returns false.
func visitRefs(v capabilities.Value, yield func(capabilities.Ref) bool) bool {
	if r, ok := v.AsRef(); ok {
		return yield(r)
	}
	for _, r := range v.Refs() {
		if !yield(r) {
			return false
		}
	}
	return true
}

// claimBare replaces each bare reference in a value by the one that the agent holds.
func (h holder) claimBare(v capabilities.Value) (capabilities.Value, error) {
	return v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		ref, ok := leaf.AsRef()
		if !ok || !isBare(ref) {
			return leaf, nil
		}
		held, err := h.claim(ref)
		return capabilities.Reference(held), err
	})
}

// claimAll replaces each reference in a value from outside by the one that the agent holds.
func (h holder) claimAll(v capabilities.Value) (capabilities.Value, error) {
	if !v.Has(capabilities.Value.IsRef) {
		return v, nil
	}
	return v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		ref, ok := leaf.AsRef()
		if !ok {
			return leaf, nil
		}
		held, err := h.claim(ref)
		return capabilities.Reference(held), err
	})
}

// claimEach is claimAll for values by name. It does not change the given map.
func (h holder) claimEach(values map[string]capabilities.Value) (map[string]capabilities.Value, error) {
	claimed, copied := values, false
	for k, v := range values {
		if !v.Has(capabilities.Value.IsRef) {
			continue
		}
		held, err := h.claimAll(v)
		if err != nil {
			return nil, err
		}
		if !copied {
			claimed, copied = maps.Clone(values), true
		}
		claimed[k] = held
	}
	return claimed, nil
}

// read parses a value from outside: a JSON document, or the locator of something that the agent holds.
func (h holder) read(text string) (capabilities.Value, error) {
	if !capabilities.IsLocator(text) {
		v, err := capabilities.ParseJSON([]byte(text))
		if err != nil {
			return v, err
		}
		return h.claimAll(v)
	}
	l, err := capabilities.ParseLocator(text)
	if err != nil {
		return capabilities.Value{}, err
	}
	kind := l.Kind
	if kind == "" {
		kind = capabilities.KindAgent
	}
	ref, err := h.claim(capabilities.Ref{Target: l.ID, Kind: kind})
	return capabilities.Reference(ref), err
}

// delegation is a value on its way to a receiver: each reference in it becomes one by a new grant to the receiver.
type delegation struct {
	s       *State
	to      capabilities.ID
	message capabilities.ID
	now     capabilities.Time
	ids     IDs
	grants  []capabilities.Grant
	later   bool // nothing is given yet: the receiver is not known
}

// give returns a value as its receiver will hold it. It refuses with NOT_PERMITTED references that the giver may not
// pass on.
func (d *delegation) give(name string, v capabilities.Value) (capabilities.Value, error) {
	if !v.Has(capabilities.Value.IsRef) {
		return v, nil
	}
	s := d.s
	return v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		ref, ok := leaf.AsRef()
		if !ok {
			return leaf, nil
		}
		if err := s.permit(ref, capabilities.UseGive, d.now); err != nil {
			return leaf, err
		}
		if ref.Facet.Uses != 0 && !ref.Grant.IsZero() && !ref.Kind.IsResource() { // those of a resource are counted at its home
			return leaf, parley.Refuse(parley.NotPermitted, "a reference for %d uses cannot be given on", ref.Facet.Uses)
		}
		called, err := s.Names.grantName(ref, name)
		if err != nil {
			return leaf, err
		}
		grant := capabilities.Grant{
			ID: d.ids(), Parent: ref.Grant, Target: ref.Target, Kind: ref.Kind, Facet: ref.Facet,
			Name: called, To: d.to, By: s.ID, Message: d.message, At: d.now,
		}
		d.grants = append(d.grants, grant)
		given := grant.Ref()
		if !s.isRemote(d.to) && !ref.Kind.IsResource() { // the target's home, if that is another node or has it from one, knows this grant
			given.Root = s.Grants.presented(ref.Known(), ref.Target)
		}
		return capabilities.Reference(given), nil
	})
}

// parts returns the parts of a text with the values that they refer to, given under their edge names.
func (d *delegation) parts(parts []text.Part) ([]events.Span, error) {
	values, paths := map[string]capabilities.Value{}, map[string]string{}
	for i, part := range parts {
		if part.Edge == "" {
			continue
		}
		v, known, err := resolve(d.s, part)
		if err == nil && known && inMail(part.Path) {
			v, err = d.s.holder(capabilities.UseGive, d.now).claimBare(v)
		}
		if err != nil {
			return nil, err
		}
		if !known {
			parts[i].Edge = ""
			continue
		}
		if path, again := paths[part.Edge]; again && path != part.Path || !again && len(paths) == text.MaxEdges {
			return nil, parley.Refuse(parley.InvalidArgument, "the message has two values under @%.80s, or more than %d in all", part.Edge, text.MaxEdges).
				WithHint("give each an edge name of its own: @edge:name")
		}
		values[part.Edge], paths[part.Edge] = v, part.Path
	}
	var spans []events.Span
	for _, part := range text.Joined(parts) {
		sp := events.Span{Words: part.Words}
		if part.Edge != "" {
			sp = events.Span{Edge: part.Edge, Value: values[part.Edge]}
		}
		spans = append(spans, sp)
	}
	if d.later {
		_, err := d.given(slices.Clone(spans)) // what could not be given now is not promised for later
		return spans, err
	}
	return d.given(spans)
}

// given returns the spans of a text with the values under their edges given, each once. It changes the slice.
func (d *delegation) given(spans []events.Span) ([]events.Span, error) {
	values := map[string]capabilities.Value{}
	var size messageSize
	for i := range spans {
		sp := &spans[i]
		v, known := values[sp.Edge]
		if known && sp.Edge != "" {
			sp.Value = v
		}
		if err := size.add(*sp); err != nil {
			return nil, err
		}
		if sp.Edge == "" || known {
			continue
		}
		v, err := d.give(sp.Edge, sp.Value)
		if err != nil {
			return nil, err
		}
		values[sp.Edge], sp.Value = v, v
	}
	return spans, nil
}

// grantEvents returns the events that record grants which the agent gave.
func grantEvents(grants []capabilities.Grant) []events.Event {
	evs := make([]events.Event, len(grants))
	for i, g := range grants {
		evs[i] = &events.CapabilityGranted{Grant: g}
	}
	return evs
}

// Agents returns the agents for which the agent has a usable name, each with the name that Names.Of returns. It
// fails with PagedOut.
func (n Namespace) Agents(now capabilities.Time) (map[capabilities.ID]string, error) {
	l := &n.s.Names
	if pages := l.byULID.PagedOut(); len(pages) > 0 {
		return nil, &PagedOut{Tables: pages}
	}
	all := map[capabilities.ID]string{}
	add := func(id capabilities.ID) {
		if isResource(n.s, id) {
			return
		}
		if name, _ := n.NameOf(id, now); name != "" {
			all[id] = name
		}
	}
	last := ""
	for e := range l.byULID.From("") {
		if key := e.Key[:len(ulid.ULID{})]; key != last {
			add(l.agentOf(key))
			last = key
		}
	}
	for id := range l.byAgent {
		add(id)
	}
	all[n.s.Profile.Host], _ = l.Of(n.s.Profile.Host)
	return all, nil
}

// isResource reports whether the names of an ID lead to a resource.
func isResource(s *State, id capabilities.ID) bool {
	return slices.ContainsFunc(s.Names.byAgent[id], func(name string) bool {
		ref, ok := s.Names.values[name].AsRef()
		return ok && ref.Kind.IsResource()
	})
}

// NameOf returns the name that Names.Of returns, if the agent has a usable name for another; otherwise "". It fails
// with PagedOut.
func (n Namespace) NameOf(id capabilities.ID, now capabilities.Time) (string, error) {
	name, err := n.s.Names.inTable(id) // it is usable
	if err == nil && (name != "" || slices.ContainsFunc(n.s.Names.byAgent[id], func(name string) bool { return isUsable(n.s, name, now) })) {
		return n.s.Names.Of(id)
	}
	return "", err
}

// Revoked returns those of some names whose references can no longer be used.
func (n Namespace) Revoked(names []string, now capabilities.Time) (gone []string) {
	for _, name := range names {
		if v, bound := n.s.Names.values[name]; bound && v.IsRef() && !isUsable(n.s, name, now) {
			gone = append(gone, name)
		}
	}
	return gone
}

// isUsable reports whether the reference under a name can be used now. The name is not in the tables.
func isUsable(s *State, name string, now capabilities.Time) bool {
	ref, ok := s.Names.values[name].AsRef()
	return ok && s.permit(ref, capabilities.UseRead, now) == nil
}

// permit refuses with NOT_PERMITTED a use of a reference that was revoked or does not permit it.
func (s *State) permit(ref capabilities.Ref, use capabilities.Use, now capabilities.Time) error {
	if err := s.checkLive(ref); err != nil {
		return err
	}
	return ref.Facet.Permits(use, reached(s, now), s.Grants.uses[ref.Grant])
}

// checkLive refuses with NOT_PERMITTED a reference that was revoked.
func (s *State) checkLive(ref capabilities.Ref) error {
	at, gone := s.Grants.revoked[ref.Grant]
	if !gone || ref.Grant.IsZero() {
		return nil
	}
	who, err := s.Names.describe(ref.Target)
	if err != nil {
		return err
	}
	return refuseRevoked(who, at)
}

func refuseRevoked(who string, at capabilities.Time) error {
	return parley.Refuse(parley.NotPermitted, "the reference to %s was revoked at %s", who, at)
}

// addressed returns the agent at a path, or with an ID or locator. It does not check that the agent may be used.
func (n Namespace) addressed(to string) (capabilities.ID, error) {
	if id, ok := targetOf(to); ok {
		return id, nil
	}
	ref, err := n.agentAt(to)
	return ref.Target, err
}

// agentAt returns the reference to an agent at a path.
func (n Namespace) agentAt(to string) (capabilities.Ref, error) {
	v, err := n.Lookup(to)
	switch parley.CodeOf(err) {
	case "":
	case parley.UnknownName:
		return capabilities.Ref{}, parley.Refuse(parley.UnknownRecipient, "unknown recipient %.200q", to).
			WithHint("parley names lists whom this agent can reach; who holds both introduces them, as by parley send AGENT 'meet @NAME', and parley adopt keeps the name")
	default:
		return capabilities.Ref{}, err
	}
	return agentIn(to, v)
}

// agentIn returns the reference to an agent that a value is, which is at a path.
func agentIn(to string, v capabilities.Value) (capabilities.Ref, error) {
	ref, ok := v.AsRef()
	if !ok || ref.Kind != capabilities.KindAgent {
		e := parley.Refuse(parley.UnknownRecipient, "%.200q is not an agent", to)
		if ok && ref.Kind.IsResource() {
			e = parley.Refuse(parley.UnknownRecipient, "%.200q is a %s, which gets no mail", to, ref.Kind).WithHint("parley use NAME says how it is used")
		}
		return ref, e
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
