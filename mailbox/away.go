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

// Members returns the members of the group, in the order in which they joined. The slice belongs to the state.
func (l *StandIns) Members() []capabilities.ID { return l.members }

// at returns the agents to which a form is forwarded that comes at a time.
func (l *StandIns) at(now capabilities.Time) []capabilities.ID {
	all := slices.Clone(l.members)
	if a, ok := l.Away(now); ok && now >= a.From && !a.Delegate.IsZero() {
		all = append(all, a.Delegate)
	}
	return all
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
		ref, err := s.standIn(c.Delegate, now)
		if err != nil {
			return nil, err
		}
		e.Delegate = ref.Target
	}
	return []events.Event{e}, nil
}

// SetMember adds an agent to the group or removes it. A new member gets the open forms of the group. What a member was
// forwarded before stays its to answer. Agent is a path, ID or locator.
type SetMember struct {
	Agent string
	In    bool
}

func (c SetMember) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if !c.In {
		id, err := s.addressed(c.Agent)
		if err != nil || !slices.Contains(s.StandIns.members, id) {
			return nil, err
		}
		return []events.Event{&events.MemberSet{Agent: id, Date: now}}, nil
	}
	ref, err := s.standIn(c.Agent, now)
	if err != nil || slices.Contains(s.StandIns.members, ref.Target) {
		return nil, err
	}
	if len(s.StandIns.members) >= maxMembers {
		return nil, parley.Refuse(parley.TooLarge, "a group has %d members at most", maxMembers)
	}
	evs := []events.Event{&events.MemberSet{Agent: ref.Target, In: true, Date: now}}
	passed := 0
	for n := range s.Mail.waiting.From(0) {
		f := s.Mail.live[n].Form
		if passed >= maxPassed {
			break
		}
		if f.QueuedAnswer != nil || slices.ContainsFunc(f.QueuedForwards, func(q events.ForwardQueued) bool { return q.To == ref.Target }) ||
			slices.ContainsFunc(f.Forwarded, func(h events.FormForwarded) bool { return h.To == ref.Target }) {
			continue
		}
		forwarded, err := s.passOn(f.FormRequested, []capabilities.ID{ref.Target}, now, ids)
		if err != nil {
			return nil, err
		}
		evs = append(evs, forwarded...)
		passed++
	}
	return evs, nil
}

// standIn returns the reference to an agent to which forms can be forwarded.
func (s *State) standIn(to string, now capabilities.Time) (capabilities.Ref, error) {
	ref, err := s.holder(capabilities.UseAsk, now).reach(to)
	if err == nil {
		err = s.permit(ref, capabilities.UseGive, now)
	}
	switch {
	case err != nil:
		return ref, err
	case ref.Target == s.ID:
		return ref, parley.Refuse(parley.InvalidArgument, "an agent does not stand in for itself")
	case ref.Facet.Uses != 0 && !ref.Grant.IsZero():
		return ref, parley.Refuse(parley.NotPermitted, "a form cannot be forwarded by a reference for %d uses", ref.Facet.Uses)
	}
	return ref, nil
}

// passOn returns the events that forward a form to stand-ins. It leaves out those that had the form before, as in a loop,
// and those that the agent cannot reach now. It fails with Absent.
func (s *State) passOn(e *events.FormRequested, to []capabilities.ID, now capabilities.Time, ids IDs) (evs []events.Event, err error) {
	if e.NoForward || e.From == s.ID {
		return nil, nil
	}
	for _, id := range to {
		if id == e.From || id == e.To || slices.Contains(e.Chain, id) {
			continue
		}
		ref, err := s.standIn(id.String(), now)
		if err == nil {
			var forwarded []events.Event
			if forwarded, err = s.forwardBy(ref, e.ID, e.From, now, ids); err == nil {
				evs = append(evs, forwarded...)
			}
		}
		if absent, ok := errors.AsType[*Absent](err); ok {
			return nil, absent
		}
	}
	return evs, nil
}

// forwardBy returns the events that ask a form's home to let another agent answer it.
func (s *State) forwardBy(ref capabilities.Ref, form, home capabilities.ID, now capabilities.Time, ids IDs) ([]events.Event, error) {
	called, err := s.Names.grantName(ref, "forward")
	if err != nil {
		return nil, err
	}
	g := capabilities.Grant{
		ID: ids(), Parent: ref.Grant, Target: ref.Target, Kind: ref.Kind, Facet: forwardFacet(ref.Facet),
		Name: called, To: home, By: s.ID, Message: form, At: now,
	}
	return []events.Event{
		&events.CapabilityGranted{Grant: g},
		&events.ForwardQueued{Form: form, To: ref.Target, Via: g.ID, Date: now},
	}, nil
}
