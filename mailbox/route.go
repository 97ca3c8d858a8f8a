package mailbox

import (
	"fmt"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/due"
)

// Bounds of routes.
const (
	maxSteps = 16                                  // reminders, and escalations
	maxDelay = events.Delay(10 * 366 * 86_400_000) // milliseconds
)

// Escalation is a step of a RequestForm: an agent that may answer the form if it is open after a time. To is a path, ID
// or locator.
type Escalation struct {
	After events.Delay
	To    string
}

// route returns the route of a form for its recipient; nil if there is none.
func (a RequestForm) route(s *State, to capabilities.ID, now capabilities.Time) (*events.Route, error) {
	if len(a.Remind) == 0 && len(a.Escalate) == 0 {
		return nil, nil
	}
	if len(a.Remind) > maxSteps || len(a.Escalate) > maxSteps {
		return nil, parley.Refuse(parley.TooLarge, "a form has %d reminders and %d escalations at most", maxSteps, maxSteps)
	}
	r := &events.Route{Remind: slices.Clone(a.Remind)}
	slices.Sort(r.Remind)
	seen := []capabilities.ID{to, s.ID}
	for _, step := range a.Escalate {
		ref, err := s.holder(capabilities.UseAsk, now).reach(step.To)
		if err != nil {
			return nil, err
		}
		if ref.Facet.Uses != 0 && !ref.Grant.IsZero() { // the uses may be gone by then
			return nil, parley.Refuse(parley.NotPermitted, "a form cannot be escalated by a reference for %d uses", ref.Facet.Uses)
		}
		if slices.Contains(seen, ref.Target) {
			return nil, parley.Refuse(parley.InvalidArgument, "a form is escalated to another agent than its asker and its recipient, and once: not to %s", parley.Quoted(step.To, 80))
		}
		seen = append(seen, ref.Target)
		r.Escalate = append(r.Escalate, events.Escalation{After: step.After, To: ref.Target, Via: ref.Grant, Facet: ref.Facet})
	}
	slices.SortStableFunc(r.Escalate, func(a, b events.Escalation) int { return int(min(max(a.After-b.After, -1), 1)) })
	return r, checkDelays(r)
}

// checkDelays refuses a delay that no route has.
func checkDelays(r *events.Route) error {
	delays := slices.Clone(r.Remind)
	for _, e := range r.Escalate {
		delays = append(delays, e.After)
	}
	for _, d := range delays {
		if d <= 0 || d > maxDelay {
			return parley.Refuse(parley.InvalidArgument, "a reminder or escalation after %s: want more than none, and ten years at most", d)
		}
	}
	return nil
}

// sameRoute reports whether a request has the route of a form.
func (a RequestForm) sameRoute(s *State, r *events.Route) (bool, error) {
	if r == nil {
		return len(a.Remind) == 0 && len(a.Escalate) == 0, nil
	}
	remind := slices.Clone(a.Remind)
	slices.Sort(remind)
	if !slices.Equal(remind, r.Remind) || len(a.Escalate) != len(r.Escalate) {
		return false, nil
	}
	for _, step := range a.Escalate {
		to, err := s.addressed(step.To)
		if err != nil {
			return false, err
		}
		if !slices.ContainsFunc(r.Escalate, func(e events.Escalation) bool { return e.To == to && e.After == step.After }) {
			return false, nil
		}
	}
	return true, nil
}

// reminded returns the number of reminders that were sent.
func (f *Form) reminded() uint32 {
	if f.Reminded == nil {
		return 0
	}
	return f.Reminded.N
}

// steps returns the number of escalations that were made.
func (f *Form) steps() (n uint32) {
	for _, r := range f.Routed {
		n = max(n, r.Step)
	}
	return n
}

// NextReminder returns the time of the next reminder of an open form; 0 if there is none, or if it is known elsewhere.
func (f *Form) NextReminder() capabilities.Time {
	if n := int(f.reminded()); f.IsOpen() && f.Route != nil && n < len(f.Route.Remind) {
		return f.Route.Remind[n].After(f.Date)
	}
	return 0
}

// NextEscalation returns the next escalation of an open form. It reports false if there is none, or if it is known
// elsewhere.
func (f *Form) NextEscalation() (to capabilities.ID, at capabilities.Time, ok bool) {
	n := int(f.steps())
	if !f.IsOpen() || f.Route == nil || n >= len(f.Route.Escalate) {
		return to, 0, false
	}
	e := f.Route.Escalate[n]
	return e.To, e.After.After(f.Date), true
}

// routedTo returns the event that routed the form to an agent; nil if there is none.
func (f *Form) routedTo(id capabilities.ID) *events.FormRouted {
	i := slices.IndexFunc(f.Routed, func(r events.FormRouted) bool { return r.To == id && r.Cause == events.Escalated })
	if i < 0 {
		return nil
	}
	return &f.Routed[i]
}

// addRoute adds a step to the form, whether in the state or made again.
func (f *Form) addRoute(e *events.FormRouted) {
	f.Routed = append(f.Routed, *e)
	if e.Cause == events.Escalated {
		f.Holders = append(f.Holders, e.To)
	}
}

// copied returns the part of a route that those who may answer a form know; nil if that is nothing.
func copied(r *events.Route) *events.Route {
	if r == nil || r.Need <= 1 && !r.NoSelf {
		return nil
	}
	return &events.Route{Need: r.Need, NoVeto: r.NoVeto, NoSelf: r.NoSelf}
}

// addTimers enters the timers of an open form that the agent asked.
func (l *Mail) addTimers(m *Message) {
	f := m.Form
	if f.Deadline != 0 {
		l.due.Add(f.Deadline, timer{number: m.Number, kind: expires})
	}
	if f.Route == nil {
		return
	}
	for i, d := range f.Route.Remind {
		l.due.Add(d.After(f.Date), timer{m.Number, reminds, uint8(i + 1)})
	}
	for i, e := range f.Route.Escalate {
		l.due.Add(e.After.After(f.Date), timer{m.Number, escalates, uint8(i + 1)})
	}
}

// isStanding reports whether a timer still matters.
func (l *Mail) isStanding(t due.Item[timer]) bool {
	n := t.Key.number
	if t.Key.kind == wakes {
		return l.snoozed[n] == t.At
	}
	if !l.isOpen(n) {
		return false
	}
	f := l.live[n].Form
	switch t.Key.kind {
	case reminds:
		return uint32(t.Key.step) > f.reminded()
	case escalates:
		return uint32(t.Key.step) > f.steps()
	}
	return true
}

// RemindForms reminds those who may answer of the forms with a reminder that is due: once for all that have been due
// since the last. A form whose deadline has passed has none.
type RemindForms struct{}

func (RemindForms) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	var evs []events.Event
	for _, number := range s.Mail.passed(reminds, now) {
		f := s.Mail.live[number].Form
		if f.isExpired(now) {
			continue
		}
		e := &events.FormReminded{Form: f.ID, Date: now}
		for _, d := range f.Route.Remind {
			if d.After(f.Date) <= now {
				e.N++
			}
		}
		evs = append(evs, e)
	}
	return evs, nil
}

// isExpired reports whether the form's deadline has passed.
func (f *Form) isExpired(now capabilities.Time) bool { return f.Deadline != 0 && now >= f.Deadline }

// EscalateForms adds the agents to which forms are escalated now. A form whose deadline has passed is not escalated.
type EscalateForms struct{}

func (EscalateForms) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	var evs []events.Event
	for _, number := range s.Mail.passed(escalates, now) {
		f := s.Mail.live[number].Form
		if f.isExpired(now) {
			continue
		}
		holders := len(f.Holders)
		for i, step := range f.Route.Escalate {
			if uint32(i) < f.steps() || step.After.After(f.Date) > now {
				continue
			}
			e := &events.FormRouted{Form: f.ID, To: step.To, Via: step.Via, Cause: events.Escalated, Step: uint32(i + 1), Date: now}
			ref := capabilities.Ref{Target: step.To, Kind: capabilities.KindAgent, Facet: step.Facet, Grant: step.Via}
			if s.permit(ref, capabilities.UseAsk, now) != nil || f.mayAnswer(step.To) || holders >= MaxHolders {
				e.Cause = events.Unreachable
			} else {
				holders++
			}
			evs = append(evs, e)
		}
	}
	return evs, nil
}

// formReminded folds a reminder in. At the form's home, it is enqueued for every holder. A copy comes back unread.
func (f fold) formReminded(e *events.FormReminded) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	if e.N <= m.Form.reminded() {
		return fmt.Errorf("%w: reminder %d of form %s after %d", ErrNonsense, e.N, e.Form, m.Form.reminded())
	}
	m.Form.Reminded = e
	f.Mail.touch(m, f.Version)
	f.Mail.index.Note(m.Number, f.Version)
	if m.Form.From != f.ID {
		f.Mail.setRead(m.Number, false)
		return nil
	}
	for _, h := range m.Form.Holders {
		f.Outbox.enqueue(events.OutboxReminder, e.Form, h)
	}
	return nil
}

// formRouted folds a step of a route in.
func (f fold) formRouted(e *events.FormRouted) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	if m.Form.From != f.ID || e.Step <= m.Form.steps() {
		return fmt.Errorf("%w: step %d of form %s after %d", ErrNonsense, e.Step, e.Form, m.Form.steps())
	}
	m.Form.addRoute(e)
	f.Mail.touch(m, f.Version)
	f.Mail.index.Note(m.Number, f.Version)
	if e.Cause != events.Escalated {
		return nil
	}
	f.Grants.addReply(e.To, e.Form, e.Date)
	f.enqueueCopy(m.Form, e.To)
	return nil
}

// enqueueCopy enqueues a form for an agent that may answer it from now on. The copy is of the form as it was asked.
func (f fold) enqueueCopy(form *Form, to capabilities.ID) {
	f.Outbox.enqueue(events.OutboxCopy, form.ID, to)
	if form.Amended != nil {
		f.Outbox.enqueue(events.OutboxAmendment, form.ID, to)
	}
}

// RecordReminder records the latest reminder of a form in a copy of it. It comes from the form's home on this node. A
// reminder that is here already has no effect, nor one of a form that has ended.
type RecordReminder struct{ Reminder *events.FormReminded }

// RemoteReminder is a RecordReminder from another node. Home is its sender there.
type RemoteReminder struct {
	RecordReminder

	Home capabilities.ID
}

func (c RecordReminder) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Reminder.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.From == s.ID {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was asked here", m.Form.ID)
	}
	if !m.Form.IsOpen() || c.Reminder.N <= m.Form.reminded() {
		return nil, nil
	}
	if c.Reminder.N > maxSteps {
		return nil, parley.Refuse(parley.TooLarge, "a form is reminded of %d times at most", maxSteps)
	}
	return []events.Event{c.Reminder}, nil
}

func (c RemoteReminder) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Reminder.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.From != c.Home {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not asked by the one who reminds of it", m.Form.ID)
	}
	e := *c.Reminder
	e.Date = clampDate(e.Date, now)
	return RecordReminder{&e}.decide(s, now, ids)
}

// routedSnapshot is a snapshot of a mailbox with forms in memory that were reminded of or routed, or with stand-ins.
type routedSnapshot struct {
	Format int
	State  []byte // a snapshot
	Forms  []routeSnapshot

	Away    *events.AwaySet
	Members []capabilities.ID
}

type routeSnapshot struct {
	Number   uint64
	Reminded *events.FormReminded
	Routed   []events.FormRouted
}

// withRoutes returns a snapshot with the reminders and routes of forms.
func (s *State) withRoutes(state []byte) ([]byte, error) {
	img := routedSnapshot{Format: routedFormat, State: state, Away: s.StandIns.away, Members: s.StandIns.members}
	for _, m := range s.heldMessages() {
		if f := m.Form; f != nil && (f.Reminded != nil || len(f.Routed) > 0) {
			img.Forms = append(img.Forms, routeSnapshot{Number: m.Number, Reminded: f.Reminded, Routed: f.Routed})
		}
	}
	if len(img.Forms) == 0 && img.Away == nil && len(img.Members) == 0 {
		return state, nil
	}
	return encode(&img)
}

// restore adds the reminders and routes to a state that is restored otherwise.
func (img *routedSnapshot) restore(s *State) error {
	s.StandIns = StandIns{away: img.Away, members: img.Members}
	for _, r := range img.Forms {
		m := s.Mail.live[r.Number]
		if m == nil || m.Form == nil {
			return missing(r.Number)
		}
		m.Form.Reminded, m.Form.Routed = r.Reminded, r.Routed
	}
	return nil
}
