package mailbox

import (
	"cmp"
	"maps"
	"slices"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox/due"
	"parley/mailbox/index"
)

// timer is something that a mailbox has to do at a time.
type timer struct {
	number uint64 // of the message or schedule
	kind   timerKind
	step   uint8 // of the form's route, which begins at 1
}

type timerKind uint8

const (
	expires   timerKind = iota // a form's deadline
	wakes                      // a snoozed message comes back
	reminds                    // a reminder of a form
	escalates                  // a form is escalated
	fires                      // a scheduled message is sent
	overdue                    // a message was to be acknowledged by then
	reviews                    // the review of an approval
)

// timers are those of a mailbox. One that does not matter any more is dropped when it is due.
type timers struct{ due due.Queue[timer] }

// addForm enters the timers of an open form that the agent asked.
func (t *timers) addForm(number uint64, f *Form) {
	if f.Deadline != 0 {
		t.due.Add(f.Deadline, timer{number: number, kind: expires})
	}
	if f.Route == nil {
		return
	}
	for i, d := range f.Route.Remind {
		t.due.Add(d.After(f.Date), timer{number, reminds, uint8(i + 1)})
	}
	for i, e := range f.Route.Escalate {
		t.due.Add(e.After.After(f.Date), timer{number, escalates, uint8(i + 1)})
	}
}

// addReview enters the time of a review that is under way.
func (t *timers) addReview(number uint64, f *Form) {
	if r := f.Review(); r.IsOpen() {
		t.due.Add(r.Asked.Until, timer{number: number, kind: reviews})
	}
}

// addSchedule enters the next time of a schedule.
func (t *timers) addSchedule(number uint64, at capabilities.Time) {
	t.due.Add(at, timer{number: number, kind: fires})
}

// next returns the earliest time of a timer that is standing; 0 if there is none. It drops earlier ones.
func (t *timers) next(isStanding func(due.Item[timer]) bool) capabilities.Time {
	for {
		first, ok := t.due.First()
		if !ok || isStanding(first) {
			return first.At
		}
		t.due.Drop()
	}
}

// isStanding reports whether a timer still matters.
func (l *Mail) isStanding(t due.Item[timer]) bool {
	n := t.Key.number
	if t.Key.kind == wakes {
		return l.Snoozed.Until(n) == t.At
	}
	if t.Key.kind == fires {
		s := l.Schedules.of(n)
		return s != nil && s.Next == t.At
	}
	if a := l.acks[n]; t.Key.kind == overdue {
		return a.By == t.At && !a.Overdue
	}
	m := l.live[n]
	if m == nil || m.Form == nil || !m.Form.IsOpen() {
		return false
	}
	switch t.Key.kind {
	case reminds:
		return uint32(t.Key.step) > m.Form.reminded()
	case escalates:
		return uint32(t.Key.step) > m.Form.steps()
	case reviews:
		return m.Form.Review().IsOpen()
	}
	return true
}

// passed returns the numbers of the messages with a timer of a kind whose time has come. The earliest is first, and
// each is there once.
func (l *Mail) passed(kind timerKind, now capabilities.Time) []uint64 {
	past := slices.DeleteFunc(l.timers.due.Until(now), func(t due.Item[timer]) bool { return t.Key.kind != kind || !l.isStanding(t) })
	slices.SortFunc(past, func(a, b due.Item[timer]) int { // their order in the queue is arbitrary
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Key.number, b.Key.number))
	})
	numbers := make([]uint64, len(past))
	for i, t := range past {
		numbers[i] = t.Key.number
	}
	seen := make(map[uint64]bool, len(numbers))
	return slices.DeleteFunc(numbers, func(n uint64) bool {
		again := seen[n]
		seen[n] = true
		return again
	})
}

// Snoozed has the messages that are snoozed, by number.
type Snoozed struct{ until map[uint64]capabilities.Time }

// Until returns the time until which a message is snoozed; 0 if it is not.
func (z *Snoozed) Until(n uint64) capabilities.Time { return z.until[n] }

// Len returns the number of messages that are snoozed.
func (z *Snoozed) Len() int { return len(z.until) }

// From returns the numbers of snoozed messages from one on, in order.
func (z *Snoozed) From(first uint64) []uint64 {
	numbers := slices.Sorted(maps.Keys(z.until))
	return slices.DeleteFunc(numbers, func(n uint64) bool { return n < first })
}

// wakeAt notes that a message is snoozed until a time.
func (l *Mail) wakeAt(n uint64, until capabilities.Time) {
	if l.Snoozed.until == nil {
		l.Snoozed.until = map[uint64]capabilities.Time{}
	}
	l.Snoozed.until[n] = until
	l.timers.due.Add(until, timer{number: n, kind: wakes})
}

// endSnooze ends the snooze of a message, if there is one. Its timer goes when it is due.
func (l *Mail) endSnooze(n uint64) {
	if l.Snoozed.Until(n) == 0 {
		return
	}
	delete(l.Snoozed.until, n)
	l.Index.entries.Change(n).Flags &^= index.Snoozed
}

// ExpireForms ends all forms whose deadline has passed, the earliest first.
type ExpireForms struct{}

func (ExpireForms) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	past := s.Mail.passed(expires, now)
	evs := make([]events.Event, len(past))
	for i, n := range past {
		evs[i] = &events.FormCancelled{Form: s.Mail.live[n].Form.ID, Reason: events.Expired, Date: now}
	}
	return evs, nil
}
