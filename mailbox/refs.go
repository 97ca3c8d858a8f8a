package mailbox

import (
	"iter"

	"parley/capabilities"
	"parley/events"
)

// heldRefs has the references that the agent holds by its mail, by their targets. References to promises and resolvers
// are left out: see Mail.formRef.
type heldRefs struct {
	plain map[capabilities.ID]uint64    // agents that are held without a grant, with their place in the order
	given map[capabilities.ID][]heldRef // all others, in order
	known map[givenRef]struct{}         // all in given
	count uint64
}

// heldRef is a reference with its place in the order in which the agent came to hold references.
type heldRef struct {
	givenRef
	Place uint64
}

// givenRef is a reference and its giver. The giver is zero for a reference that the agent itself used to send.
type givenRef struct {
	Ref   capabilities.Ref
	Giver capabilities.ID
}

func newHeldRefs() heldRefs {
	return heldRefs{plain: map[capabilities.ID]uint64{}, given: map[capabilities.ID][]heldRef{}, known: map[givenRef]struct{}{}}
}

// addMessage adds the references of a new message, but for those in an answer.
func (x *heldRefs) addMessage(l *Mail, m *Message) {
	x.add(m.refFrom(), m.From())
	if l.Sent(m) && !m.IsQueued() { // other recipients are known, not held
		for _, to := range m.Recipients() {
			x.add(m.refToOne(to, l.self), capabilities.ID{})
		}
	}
	if m.Posted == nil {
		return
	}
	for _, sp := range m.Posted.Text {
		if sp.Edge != "" {
			x.addValue(sp.Value, m.From())
		}
	}
}

// addAnswer adds the references in an answer.
func (x *heldRefs) addAnswer(a *events.FormAnswered) {
	if !a.Withheld {
		x.addValue(a.Values, a.By)
	}
}

func (x *heldRefs) addValue(v capabilities.Value, giver capabilities.ID) {
	if !v.Has(capabilities.Value.IsRef) {
		return
	}
	visitRefs(v, func(r capabilities.Ref) bool {
		x.add(r, giver)
		return true
	})
}

func (x *heldRefs) add(r capabilities.Ref, giver capabilities.ID) {
	if r == agentRef(r.Target) {
		if _, ok := x.plain[r.Target]; !ok {
			x.plain[r.Target] = x.count
			x.count++
		}
		return
	}
	g := givenRef{Ref: r, Giver: giver}
	if _, ok := x.known[g]; ok {
		return
	}
	x.put(heldRef{givenRef: g, Place: x.count})
	x.count++
}

func (x *heldRefs) put(h heldRef) {
	x.known[h.givenRef] = struct{}{}
	x.given[h.Ref.Target] = append(x.given[h.Ref.Target], h)
}

// of yields the references to a target, in order.
func (x *heldRefs) of(target capabilities.ID) iter.Seq[capabilities.Ref] {
	return func(yield func(capabilities.Ref) bool) {
		plain, ok := x.plain[target]
		for _, h := range x.given[target] {
			if ok && plain < h.Place {
				if ok = false; !yield(agentRef(target)) {
					return
				}
			}
			if !yield(h.Ref) {
				return
			}
		}
		if ok {
			yield(agentRef(target))
		}
	}
}

// concern reports whether a giver gave a reference by a grant, or the agent used one.
func (x *heldRefs) concern(grant, giver capabilities.ID) bool {
	for g := range x.known {
		if g.Ref.Grant == grant && (g.Giver.IsZero() || g.Giver == giver) {
			return true
		}
	}
	return false
}

// formRef returns the reference to a form's promise or resolver, and whether there is such a form. It fails with
// PagedOut.
func (l *Mail) formRef(target capabilities.ID, kind capabilities.Kind) (capabilities.Ref, bool, error) {
	r := capabilities.Ref{Target: target, Kind: kind}
	if kind != capabilities.KindPromise && kind != capabilities.KindResolver {
		return r, false, nil
	}
	numbers, pages := l.Index.entries.FindOther(target)
	for _, n := range numbers {
		m, err := l.at(n)
		if err != nil {
			return r, false, err
		}
		if kind == capabilities.KindPromise && m.Form.Promise == target || kind == capabilities.KindResolver && m.Form.Resolver == target {
			return r, true, nil
		}
	}
	if len(pages) > 0 {
		return r, false, l.Index.absent(pages...)
	}
	return r, false, nil
}

// edges returns the values of a message in an agent's mailbox by edge name. The standard edges begin with "@". Those of its text do not.
func (m *Message) edges(self capabilities.ID) map[string]capabilities.Value {
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
	for _, e := range m.refEdges(self) {
		edges[e.name] = e.value
	}
	return edges
}

type edge struct {
	name  string
	value capabilities.Value
}

// refEdges returns the edges of a message that may hold references, always in the same order.
func (m *Message) refEdges(self capabilities.ID) []edge {
	all := []edge{
		{"@from", capabilities.Reference(m.refFrom())},
		{"@to", capabilities.Reference(m.refTo(self))},
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
		all = append(all, edge{"@value", f.value(f.visibleValues(self))})
	}
	return all
}

// visibleValues returns the values of an answer as an agent may read them. For all but the asker, sealed values are
// masked.
func (f *Form) visibleValues(self capabilities.ID) capabilities.Value {
	if f.From == self || !f.Answered.Values.Has(capabilities.Value.IsSealed) {
		return f.Answered.Values
	}
	shut, _ := f.Answered.Values.Map(maskSealed) // maskSealed returns no error, so Map does not
	return shut
}

// maskSealed returns a sealed value without its ciphertext, and any other value unchanged.
func maskSealed(leaf capabilities.Value) (capabilities.Value, error) {
	if leaf.IsSealed() {
		return capabilities.Sealed(nil), nil
	}
	return leaf, nil
}

// refTo returns the reference by which the sender reached the recipient, in the mailbox of an agent.
func (m *Message) refTo(self capabilities.ID) capabilities.Ref {
	r := agentRef(m.To())
	switch {
	case m.From() != self:
	case m.reached != nil:
		return *m.reached
	case m.Form != nil:
		r.Grant, r.Facet = m.Form.Via, m.Form.Held()
	default:
		r.Grant, r.Facet = m.Posted.Via, m.Posted.Facet
	}
	return r
}

// refFrom returns the reference to the sender of the message. For a reply it is the reference by which the sender was
// reached. So a reply gives no more than that grant, and ends with it.
func (m *Message) refFrom() capabilities.Ref {
	if m.reached != nil {
		return *m.reached
	}
	return agentRef(m.From())
}

// setReached sets how the other party of a reply was reached. It fails with PagedOut.
func (l *Mail) setReached(m *Message) error {
	parent, err := l.parentOf(m.ReplyTo())
	if err != nil || parent == nil {
		return err
	}
	other := m.From()
	if other == l.self {
		if other = m.To(); m.refTo(l.self) != agentRef(other) || m.toSeveral(l.self) {
			return nil // it was sent by another reference
		}
	}
	ref := parent.reached
	if ref == nil {
		if parent.From() != l.self {
			return nil
		}
		to := parent.refToOne(other, l.self)
		ref = &to
	}
	if ref.Target != other || *ref == agentRef(other) {
		return nil
	}
	m.reached = ref
	l.reached.put(m.Number, *ref)
	return nil
}

// reachedRefs has how the other party of a reply was reached, by the reply's number.
type reachedRefs map[uint64]capabilities.Ref

func (x *reachedRefs) put(number uint64, ref capabilities.Ref) {
	if *x == nil {
		*x = reachedRefs{}
	}
	(*x)[number] = ref
}

// of returns how the other party of a reply was reached; nil for any other message.
func (x reachedRefs) of(number uint64) *capabilities.Ref {
	if r, ok := x[number]; ok {
		return &r
	}
	return nil
}
