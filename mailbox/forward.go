package mailbox

import (
	"errors"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// StandIns are the agents to which the forms of an agent are forwarded as they come: its delegate while it is away, and
// its members if it is a group.
type StandIns struct {
	away    *events.AwaySet // nil if it is not
	members []capabilities.ID
}

// maxMembers bounds the members of a group. With the group itself, they are as many as may answer one form.
const maxMembers = MaxHolders - 1

// maxPassed bounds the open forms that a new member gets, the oldest first.
const maxPassed = 1000

// Away returns the present or coming absence. It reports false if there is none, or if it is over.
func (l *StandIns) Away(now capabilities.Time) (events.AwaySet, bool) {
	if l.away == nil || now >= l.away.Until {
		return events.AwaySet{}, false
	}
	return *l.away, true
}

// Absence returns the last absence that the agent has not ended: its beginning and its end. Both are 0 if there is none.
func (l *StandIns) Absence() (from, until capabilities.Time) {
	if l.away == nil {
		return 0, 0
	}
	return l.away.From, l.away.Until
}

// Members returns the members of the group, in the order in which they joined. The slice belongs to the state.
func (l *StandIns) Members() []capabilities.ID { return l.members }

// standIn is an agent to which a form is forwarded, and why.
type standIn struct {
	agent   capabilities.ID
	because events.ForwardCause
}

// at returns the agents to which a form is forwarded that comes at a time.
func (l *StandIns) at(now capabilities.Time) []standIn {
	var all []standIn
	for _, id := range l.members {
		all = append(all, memberIn(id))
	}
	if a, ok := l.Away(now); ok && now >= a.From && !a.Delegate.IsZero() {
		all = append(all, standIn{a.Delegate, events.ForwardCause{Cause: events.Absent, Until: a.Until}})
	}
	return all
}

func memberIn(id capabilities.ID) standIn {
	return standIn{id, events.ForwardCause{Cause: events.Member}}
}

func (l *StandIns) setAway(e *events.AwaySet) {
	if l.away = e; e.Until == 0 {
		l.away = nil
	}
}

func (l *StandIns) setMember(e *events.MemberSet) {
	l.members = slices.DeleteFunc(l.members, func(id capabilities.ID) bool { return id == e.Agent })
	if e.In {
		l.members = append(l.members, e.Agent)
	}
}

// SetAway has the forms that come from one time to another forwarded to a delegate, if there is one. The agent may still
// answer them. Delegate is a path, ID or locator. No Until ends the absence.
type SetAway struct {
	From     capabilities.Time // 0 for now
	Until    capabilities.Time
	Delegate string
}

func (c SetAway) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if c.Until == 0 {
		if c.From != 0 || c.Delegate != "" {
			return nil, parley.Refuse(parley.InvalidArgument, "until when? an absence has an end")
		}
		if s.StandIns.away == nil {
			return nil, nil
		}
		return []events.Event{&events.AwaySet{Date: now}}, nil
	}
	e := &events.AwaySet{From: c.From, Until: c.Until, Date: now}
	if e.From == 0 {
		e.From = now
	}
	if e.Until <= now || e.Until <= e.From {
		return nil, parley.Refuse(parley.InvalidArgument, "the absence from %s to %s is over before it begins", e.From, e.Until)
	}
	if c.Delegate != "" {
		ref, err := s.holder(capabilities.UseAsk, now).standIn(c.Delegate)
		if err != nil {
			return nil, err
		}
		e.Delegate = ref.Target
	}
	return []events.Event{e}, nil
}

// SetMember adds an agent to the group or removes it. A new member gets the open forms of the group. One that leaves may not
// answer them any more, unless it has them otherwise. Agent is a path, ID or locator.
type SetMember struct {
	Agent string
	In    bool
}

func (c SetMember) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if !c.In {
		id, err := s.Namespace().addressed(c.Agent)
		if err != nil || !slices.Contains(s.StandIns.members, id) {
			return nil, err
		}
		return append([]events.Event{&events.MemberSet{Agent: id, Date: now}}, takeBack(s, id, now)...), nil
	}
	ref, err := s.holder(capabilities.UseAsk, now).standIn(c.Agent)
	if err != nil || slices.Contains(s.StandIns.members, ref.Target) {
		return nil, err
	}
	if len(s.StandIns.members) >= maxMembers {
		return nil, parley.Refuse(parley.TooLarge, "a group has %d members at most", maxMembers)
	}
	evs := []events.Event{&events.MemberSet{Agent: ref.Target, In: true, Date: now}}
	passed, stands := 0, passedOn(s, ref.Target)
	for n := range s.Mail.waiting.From(0) {
		f := s.Mail.live[n].Form
		if passed >= maxPassed {
			break
		}
		if f.Queued().Answer != nil || stands(f) {
			continue
		}
		forwarded, err := forwarding{s, now, ids}.passOn(f.FormRequested, []standIn{memberIn(ref.Target)})
		if err != nil {
			return nil, err
		}
		evs = append(evs, forwarded...)
		passed++
	}
	return evs, nil
}

// passedOn returns a function that reports whether an open form was forwarded to another agent, and not taken back.
func passedOn(s *State, to capabilities.ID) func(*Form) bool {
	stands := map[capabilities.ID]bool{} // false if all was taken back
	for _, g := range s.Grants.forwardsTo(to, openForms(s)) {
		stands[g.Message] = stands[g.Message] || g.Revoked == 0
	}
	return func(f *Form) bool {
		if standing, granted := stands[f.ID]; granted {
			return standing
		}
		return slices.ContainsFunc(f.Forwarded(), func(h events.FormForwarded) bool { return h.To == to })
	}
}

// openForms returns the forms that wait for the agent's answer.
func openForms(s *State) map[capabilities.ID]bool {
	open := map[capabilities.ID]bool{}
	for n := range s.Mail.waiting.From(0) {
		open[s.Mail.live[n].Form.ID] = true
	}
	return open
}

// forwardsTo returns the grants that were made to forward forms to an agent.
func (l *Grants) forwardsTo(to capabilities.ID, forms map[capabilities.ID]bool) (all []capabilities.Grant) {
	for _, g := range l.given.All() {
		if g.Target == to && forms[g.Message] && g.Kind == capabilities.KindAgent && g.Facet == forwardFacet(g.Facet) {
			all = append(all, g)
		}
	}
	return all
}

// takeBack returns the events that revoke the forwards of open forms to a member that leaves. They stay those of the
// agent's delegate.
func takeBack(s *State, member capabilities.ID, now capabilities.Time) (evs []events.Event) {
	if a, ok := s.StandIns.Away(now); ok && a.Delegate == member {
		return nil
	}
	for _, g := range s.Grants.forwardsTo(member, openForms(s)) {
		if g.Revoked == 0 {
			evs = append(evs, &events.CapabilityRevoked{Grant: g.ID, By: s.ID, Date: now})
		}
	}
	return evs
}

// isTakenBack reports whether a forward was taken back, by its place among the form's forwards.
func (r *Recipients) isTakenBack(i int) bool {
	return slices.ContainsFunc(r.Routed(), func(r events.FormRouted) bool { return r.Cause == events.Revoked && r.Step == uint32(i+1) })
}

// isCut reports whether an agent to which the form was forwarded may not answer it any more: each forward to it was taken
// back, or was made by one that had the form by such a forward.
func isCut(f *Form, id capabilities.ID) bool {
	if hasByRoute(f, id) {
		return false
	}
	var stands []capabilities.ID
	for i, h := range f.Forwarded() { // each by one that had the form by then
		if f.isTakenBack(i) || !hasByRoute(f, h.By) && !slices.Contains(stands, h.By) {
			continue
		}
		if h.To == id {
			return false
		}
		stands = append(stands, h.To)
	}
	return true
}

// hasByRoute reports whether the form was put to an agent, or escalated to it.
func hasByRoute(f *Form, id capabilities.ID) bool {
	return id == f.To || f.routedTo(id) != nil || f.isReviewed(id)
}

// revocationOf returns the command that tells of the revocation of a grant. A forward from a home on this node to
// another node is made by another grant. It is found by its agents. It stays while an earlier grant for it stands: the
// later one was refused.
func revocationOf(s *State, g capabilities.Grant) RecordRevocation {
	c := RecordRevocation{Grant: g.ID, By: s.ID, Date: g.Revoked, Form: g.Message}
	if s.isRemote(g.To) || !s.isRemote(g.Target) || g.Message.IsZero() {
		return c
	}
	for _, other := range s.Grants.forwardsTo(g.Target, map[capabilities.ID]bool{g.Message: true}) {
		switch {
		case other.ID == g.ID:
			c.To = g.Target
			return c
		case other.Revoked == 0:
			return c
		}
	}
	return c
}

// takesBack returns the event that takes back the forward of a form that was made by the grant; nil if there is none.
func (c RecordRevocation) takesBack(f *Form, now capabilities.Time) *events.FormRouted {
	for i, h := range slices.Backward(f.Forwarded()) {
		if h.By == c.By && (h.Via == c.Grant || f.ID == c.Form && !c.To.IsZero() && h.To == c.To) && !f.isTakenBack(i) {
			return &events.FormRouted{Form: f.ID, To: h.To, Via: c.Grant, Cause: events.Revoked, Step: uint32(i + 1), Date: now}
		}
	}
	return nil
}

// standIn returns the reference to an agent to which forms can be forwarded.
func (h holder) standIn(to string) (capabilities.Ref, error) {
	ref, err := h.reach(to)
	if err == nil {
		err = h.s.permit(ref, capabilities.UseGive, h.now)
	}
	switch {
	case err != nil:
		return ref, err
	case ref.Target == h.s.ID:
		return ref, parley.Refuse(parley.InvalidArgument, "an agent does not stand in for itself")
	case ref.Facet.Uses != 0 && !ref.Grant.IsZero():
		return ref, parley.Refuse(parley.NotPermitted, "a form cannot be forwarded by a reference for %d uses", ref.Facet.Uses)
	}
	return ref, nil
}

// forwarding makes the events that forward forms at a time.
type forwarding struct {
	s   *State
	now capabilities.Time
	ids IDs
}

// passOn returns the events that forward a form to stand-ins. It leaves out those that had the form before, as in a
// loop, and those it cannot reach now. It fails with PagedOut.
func (w forwarding) passOn(e *events.FormRequested, to []standIn) (evs []events.Event, err error) {
	if e.NoForward || e.From == w.s.ID {
		return nil, nil
	}
	for _, in := range to {
		if in.agent == e.From || in.agent == e.To || slices.Contains(e.Chain, in.agent) {
			continue
		}
		ref, err := w.s.holder(capabilities.UseAsk, w.now).standIn(in.agent.String())
		if err == nil {
			var forwarded []events.Event
			if forwarded, err = w.by(ref, e.ID, e.From, in.because); err == nil {
				evs = append(evs, forwarded...)
			}
		}
		if absent, ok := errors.AsType[*PagedOut](err); ok {
			return nil, absent
		}
	}
	return evs, nil
}

// by returns the events that ask a form's home to let an agent answer it. The reference is to that agent.
func (w forwarding) by(ref capabilities.Ref, form, home capabilities.ID, because events.ForwardCause) ([]events.Event, error) {
	called, err := w.s.Names.grantName(ref, "forward")
	if err != nil {
		return nil, err
	}
	g := capabilities.Grant{
		ID: w.ids(), Parent: ref.Grant, Target: ref.Target, Kind: ref.Kind, Facet: forwardFacet(ref.Facet),
		Name: called, To: home, By: w.s.ID, Message: form, At: w.now,
	}
	return []events.Event{
		&events.CapabilityGranted{Grant: g},
		&events.ForwardQueued{Form: form, To: ref.Target, Via: g.ID, Date: w.now, Because: because},
	}, nil
}

// forwardedBy returns all forwards of the form by a holder.
func (r *Recipients) forwardedBy(by capabilities.ID) []events.FormForwarded {
	var handed []events.FormForwarded
	for _, h := range r.Forwarded() {
		if h.By == by {
			handed = append(handed, h)
		}
	}
	return handed
}

// forward returns the index of a queued forward by its grant; -1 if there is none.
func (w *Queued) forward(via capabilities.ID) int {
	return slices.IndexFunc(w.Forwards, func(e events.ForwardQueued) bool { return e.Via == via })
}

func (w *Queued) dropForward(via capabilities.ID) {
	if i := w.forward(via); i >= 0 {
		w.Forwards = slices.Delete(w.Forwards, i, i+1)
	}
}

// wasForwarded reports whether the same forward was recorded before. Each forward from another node has its own grant, which
// may be revoked since. One within the node may have been taken back and made again.
func (r *Recipients) wasForwarded(c ForwardForm, revoked bool) bool {
	for i, h := range r.Forwarded() {
		if h.By == c.By && h.To == c.To && h.Via == c.Via && (revoked || !r.isTakenBack(i)) {
			return !c.Via.IsZero()
		}
	}
	return false
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
	return forwarding{s, now, ids}.by(ref, h.Form, home, events.ForwardCause{})
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

	Because events.ForwardCause
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
	if err := checkCause(c.Because); err != nil {
		return nil, err
	}
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
	case f.From == s.ID && f.wasForwarded(c, s.Grants.isRevoked(c.Via)):
		return nil, nil // its acknowledgement was lost
	case f.From != s.ID || !f.mayAnswer(c.By):
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not put to %s", c.Form, c.By)
	case !f.IsOpen():
		return nil, f.endedForOthers()
	case f.NoForward || f.isReviewed(c.By):
		return nil, parley.Refuse(parley.NotPermitted, "the asker forbade forwarding the form")
	case c.To.IsZero():
		return nil, parley.Refuse(parley.InvalidArgument, "a form is forwarded to nobody")
	case c.To == s.ID:
		return nil, parley.Refuse(parley.NotPermitted, "a form cannot be forwarded to its asker")
	case f.mayAnswer(c.To):
		return nil, parley.Refuse(parley.NotPermitted, "that agent has the form already")
	case s.Grants.isRevoked(c.Via):
		return nil, parley.Refuse(parley.NotPermitted, "the forward was taken back")
	case len(f.Holders) >= MaxHolders || len(f.Forwarded()) >= MaxHolders:
		return nil, parley.Refuse(parley.TooLarge, "the form was handed on %d times", len(f.Holders)-1)
	}
	return []events.Event{&events.FormForwarded{Form: c.Form, By: c.By, To: c.To, Via: c.Via, Date: now, Because: c.Because}}, nil
}

// checkCause refuses the cause of a forward that no agent has.
func checkCause(c events.ForwardCause) error {
	switch {
	case c.Cause == events.Absent && c.Until > 0:
	case c.Cause == events.Member && c.Until == 0, c.IsZero():
	default:
		return parley.Refuse(parley.InvalidArgument, "a form is not forwarded for %s until %s", parley.Quoted(string(c.Cause), 40), c.Until)
	}
	return nil
}

// HasForwarded reports whether the agent has forwarded a form to another, or asked its home to. If the home is on
// another node, it looks for the grant that such a request makes. It fails with PagedOut.
func (s *State) HasForwarded(form, to capabilities.ID) (bool, error) {
	m, err := s.Mail.FindFormID(form)
	switch parley.CodeOf(err) {
	case "":
	case parley.NoSuchMessage, parley.NotAForm:
		return false, nil
	default:
		return false, err
	}
	if slices.ContainsFunc(m.Form.Forwarded(), func(h events.FormForwarded) bool { return h.By == s.ID && h.To == to }) {
		return true, nil
	}
	return s.isRemote(m.Form.From) && s.Grants.given.Any(func(g capabilities.Grant) bool {
		return g.Message == form && g.Target == to && g.Facet == forwardFacet(g.Facet)
	}), nil
}
