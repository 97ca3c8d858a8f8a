package mailbox

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// forwardedBy returns all forwards of the form by a holder.
func (f *Form) forwardedBy(by capabilities.ID) []events.FormForwarded {
	var handed []events.FormForwarded
	for _, h := range f.Forwarded {
		if h.By == by {
			handed = append(handed, h)
		}
	}
	return handed
}

// queuedForward returns the index of a queued forward by its grant; -1 if there is none.
func (f *Form) queuedForward(via capabilities.ID) int {
	return slices.IndexFunc(f.QueuedForwards, func(w events.ForwardQueued) bool { return w.Via == via })
}

func (f *Form) dropQueuedForward(via capabilities.ID) {
	if i := f.queuedForward(via); i >= 0 {
		f.QueuedForwards = slices.Delete(f.QueuedForwards, i, i+1)
	}
}

// wasForwarded reports whether the same forward was recorded before. Each forward from another node has its own grant.
func (f *Form) wasForwarded(c ForwardForm) bool {
	return !c.Via.IsZero() && slices.ContainsFunc(f.Forwarded, func(h events.FormForwarded) bool {
		return h.By == c.By && h.To == c.To && h.Via == c.Via
	})
}

// QueueForward records a forward in the forwarder's own log until the form's home, on another node, has decided on it.
// To is a path, ID or locator. The home gets a grant by which it can reach that agent.
type QueueForward struct {
	Form capabilities.FormRef
	To   string
}

func (c QueueForward) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	h, home, err := s.DraftForward(c.Form, c.To, now)
	if err != nil {
		return nil, err
	}
	ref, err := s.holder(capabilities.UseAsk, now).reach(c.To)
	if err != nil {
		return nil, err
	}
	if err := s.permit(ref, capabilities.UseGive, now); err != nil {
		return nil, err
	}
	called, err := s.Names.grantName(ref, "forward")
	if err != nil {
		return nil, err
	}
	g := capabilities.Grant{
		ID: ids(), Parent: ref.Grant, Target: ref.Target, Kind: ref.Kind, Facet: forwardFacet(ref.Facet),
		Name: called, To: home, By: s.ID, Message: h.Form, At: now,
	}
	return []events.Event{
		&events.CapabilityGranted{Grant: g},
		&events.ForwardQueued{Form: h.Form, To: h.To, Via: g.ID, Date: now},
	}, nil
}

// forwardFacet narrows a facet to asking one form.
func forwardFacet(held capabilities.Facet) capabilities.Facet {
	return held.Narrow(capabilities.Facet{Mode: capabilities.AskOnly, Uses: 1})
}

// ForwardForm lets another agent answer a form, for a holder. It is decided at the form's home.
type ForwardForm struct {
	Form capabilities.ID
	By   capabilities.ID
	To   capabilities.ID
	Via  capabilities.ID // the grant by which the home can reach To; zero if it needs none
}

// MaxHolders bounds the agents that may answer one form.
const MaxHolders = 32

// DraftForward returns the command that forwards a form to another agent, and the form's home.
func (s *State) DraftForward(form capabilities.FormRef, to string, now capabilities.Time) (ForwardForm, capabilities.ID, error) {
	m, err := s.answerable(form)
	if err != nil {
		return ForwardForm{}, capabilities.ID{}, err
	}
	if m.Form.NoForward {
		return ForwardForm{}, capabilities.ID{}, parley.Refuse(parley.NotPermitted, "the asker forbade forwarding form %d", m.Number)
	}
	ref, err := s.holder(capabilities.UseAsk, now).reach(to)
	if err != nil {
		return ForwardForm{}, capabilities.ID{}, err
	}
	if ref.Facet.Uses != 0 && !ref.Grant.IsZero() { // the home asks then, and cannot count the agent's uses
		return ForwardForm{}, capabilities.ID{}, parley.Refuse(parley.NotPermitted, "a form cannot be forwarded by a reference for %d uses", ref.Facet.Uses)
	}
	h := ForwardForm{Form: m.Form.ID, By: s.ID, To: ref.Target, Via: s.Grants.presented(ref.Known(), ref.Target)}
	return h, m.Form.From, nil
}

// RemoteForward is a ForwardForm from another node. It needs a grant that was made there. Without one, the form would
// be sent by a grant of this node.
type RemoteForward struct{ ForwardForm }

func (c RemoteForward) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	evs, err := c.ForwardForm.decide(s, now, ids)
	if len(evs) > 0 && c.Via.Node != c.By.Node {
		return nil, parley.Refuse(parley.NotPermitted, "the form is forwarded by a grant that its holder's node has not made")
	}
	return evs, err
}

func (c ForwardForm) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	switch {
	case f.From != s.ID || !f.mayAnswer(c.By):
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not put to %s", c.Form, c.By)
	case f.wasForwarded(c):
		return nil, nil // its acknowledgement was lost
	case !f.IsOpen():
		return nil, f.endedForOthers()
	case f.NoForward:
		return nil, parley.Refuse(parley.NotPermitted, "the asker forbade forwarding the form")
	case c.To.IsZero():
		return nil, parley.Refuse(parley.InvalidArgument, "a form is forwarded to nobody")
	case c.To == s.ID:
		return nil, parley.Refuse(parley.NotPermitted, "a form cannot be forwarded to its asker")
	case f.mayAnswer(c.To):
		return nil, parley.Refuse(parley.NotPermitted, "%s has the form already", c.To)
	case len(f.Holders) >= MaxHolders:
		return nil, parley.Refuse(parley.TooLarge, "the form was handed on %d times", len(f.Holders)-1)
	}
	return []events.Event{&events.FormForwarded{Form: c.Form, By: c.By, To: c.To, Via: c.Via, Date: now}}, nil
}

// HasForwarded reports whether the agent has forwarded a form to another, or asked its home to. If the home is on
// another node, it looks for the grant that such a request makes. It fails with Absent.
func (s *State) HasForwarded(form, to capabilities.ID) (bool, error) {
	m, err := s.Mail.FindFormID(form)
	switch parley.CodeOf(err) {
	case "":
	case parley.NoSuchMessage, parley.NotAForm:
		return false, nil
	default:
		return false, err
	}
	if slices.ContainsFunc(m.Form.Forwarded, func(h events.FormForwarded) bool { return h.By == s.ID && h.To == to }) {
		return true, nil
	}
	return s.isRemote(m.Form.From) && s.Grants.given.Any(func(g capabilities.Grant) bool {
		return g.Message == form && g.Target == to && g.Facet == forwardFacet(g.Facet)
	}), nil
}
