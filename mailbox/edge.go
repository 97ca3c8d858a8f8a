package mailbox

import "parley/capabilities"

// edges returns the values of a message by edge name. The standard edges begin with "@". Those of its text do not.
func (l *Mail) edges(m *Message) map[string]capabilities.Value {
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
	for _, e := range l.refEdges(m) {
		edges[e.name] = e.value
	}
	return edges
}

type edge struct {
	name  string
	value capabilities.Value
}

// refEdges returns the edges of a message that may hold references, always in the same order.
func (l *Mail) refEdges(m *Message) []edge {
	all := []edge{
		{"@from", capabilities.Reference(l.refFrom(m))},
		{"@to", capabilities.Reference(l.refTo(m))},
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
		all = append(all, edge{"@value", f.value(l.visibleValues(f))})
	}
	return all
}

// visibleValues returns the values of an answer as the agent may read them. For all but the asker, sealed values are
// masked.
func (l *Mail) visibleValues(f *Form) capabilities.Value {
	if f.From == l.self || !f.Answered.Values.Has(capabilities.Value.IsSealed) {
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

// refTo returns the reference by which the sender reached the recipient.
func (l *Mail) refTo(m *Message) capabilities.Ref {
	r := agentRef(m.To())
	switch {
	case m.From() != l.self:
	case m.reached != nil:
		return *m.reached
	case m.Form != nil:
		r.Grant, r.Facet = m.Form.Via, m.Form.Facet
	default:
		r.Grant, r.Facet = m.Posted.Via, m.Posted.Facet
	}
	return r
}

// refFrom returns the reference to the sender of the message. For a reply it is the reference by which the sender was
// reached. So a reply gives no more than that grant, and ends with it.
func (l *Mail) refFrom(m *Message) capabilities.Ref {
	if m.reached != nil {
		return *m.reached
	}
	return agentRef(m.From())
}

// setReached sets how the other party of a reply was reached. It fails with Absent.
func (l *Mail) setReached(m *Message) error {
	parent, err := l.parentOf(m.ReplyTo())
	if err != nil || parent == nil {
		return err
	}
	other := m.From()
	if other == l.self {
		if other = m.To(); l.refTo(m) != agentRef(other) {
			return nil // it was sent by another reference
		}
	}
	ref := parent.reached
	if ref == nil {
		if parent.From() != l.self {
			return nil
		}
		to := l.refTo(parent)
		ref = &to
	}
	if ref.Target != other || *ref == agentRef(other) {
		return nil
	}
	m.reached = ref
	l.setReachedBy(m.Number, *ref)
	return nil
}

func (l *Mail) setReachedBy(number uint64, ref capabilities.Ref) {
	if l.reached == nil {
		l.reached = map[uint64]capabilities.Ref{}
	}
	l.reached[number] = ref
}

// reachedOf returns how the other party of a reply was reached; nil for any other message.
func (l *Mail) reachedOf(number uint64) *capabilities.Ref {
	if r, ok := l.reached[number]; ok {
		return &r
	}
	return nil
}
