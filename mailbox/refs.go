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
	x.add(l.refFrom(m), m.From())
	if l.Sent(m) { // other recipients are known, not held
		x.add(l.refTo(m), capabilities.ID{})
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
// Absent.
func (l *Mail) formRef(target capabilities.ID, kind capabilities.Kind) (capabilities.Ref, bool, error) {
	r := capabilities.Ref{Target: target, Kind: kind}
	if kind != capabilities.KindPromise && kind != capabilities.KindResolver {
		return r, false, nil
	}
	for n := range l.history.findOther(target) {
		m, err := l.at(n)
		if err != nil {
			return r, false, err
		}
		if kind == capabilities.KindPromise && m.Form.Promise == target || kind == capabilities.KindResolver && m.Form.Resolver == target {
			return r, true, nil
		}
	}
	return r, false, nil
}
