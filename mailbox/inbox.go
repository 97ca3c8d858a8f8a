package mailbox

import (
	"iter"
	"maps"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
)

// Bounds of an agent's marks.
const (
	maxSnoozed = 1024 // messages that are snoozed at once
	MaxMarked  = 1000 // messages that are marked as read at once
)

// SnoozeMessage takes a message that the agent received out of the list of those that wait, until a time. A time that
// has passed ends the snooze of the message. The deadline of a form stays.
type SnoozeMessage struct {
	Message capabilities.FormRef
	Until   capabilities.Time
}

func (c SnoozeMessage) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.Find(c.Message)
	if err != nil {
		return nil, err
	}
	before, snoozed := s.Mail.snoozed[m.Number]
	if c.Until <= now {
		if !snoozed {
			return nil, nil
		}
		return []events.Event{&events.MessageSnoozed{Number: m.Number}}, nil
	}
	switch {
	case before == c.Until:
		return nil, nil
	case m.Form != nil && !m.Form.IsOpen():
		return nil, endedError(s, m)
	case !s.Mail.Received(m):
		return nil, parley.Refuse(parley.InvalidArgument, "message %d was sent: only a message that was received can be snoozed", m.Number)
	case m.Dismissed:
		return nil, parley.Refuse(parley.InvalidArgument, "message %d is dismissed", m.Number).WithHint("parley dismiss %d --undo shows it again", m.Number)
	case !snoozed && len(s.Mail.snoozed) >= maxSnoozed:
		return nil, parley.Refuse(parley.TooLarge, "%d messages are snoozed at most", maxSnoozed)
	}
	return []events.Event{&events.MessageSnoozed{Number: m.Number, Until: c.Until}}, nil
}

// WakeMessages brings back all snoozed messages whose time has come, the earliest first.
type WakeMessages struct{}

func (WakeMessages) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	past := s.Mail.passed(wakes, now)
	evs := make([]events.Event, len(past))
	for i, n := range past {
		evs[i] = &events.MessageSnoozed{Number: n}
	}
	return evs, nil
}

// RestoreMessage shows a message again that was dismissed.
type RestoreMessage struct{ Message capabilities.FormRef }

func (c RestoreMessage) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	n, err := s.Mail.number(c.Message)
	if err != nil {
		return nil, err
	}
	if e, err := s.Mail.entry(n); err != nil || !e.Is(index.Dismissed) {
		return nil, err
	}
	return []events.Event{&events.MessageRestored{Number: n}}, nil
}

// MoveMessages moves messages between the lists of the inbox: each is dismissed, restored or snoozed until a time.
type MoveMessages struct {
	Messages []capabilities.FormRef
	Do       string // dismiss, restore or snooze
	Until    capabilities.Time
}

// command returns the command for one of the messages.
func (c MoveMessages) command(ref capabilities.FormRef) (Command, error) {
	switch c.Do {
	case "dismiss":
		return DismissMessage{Message: ref}, nil
	case "restore":
		return RestoreMessage{Message: ref}, nil
	case "snooze":
		return SnoozeMessage{Message: ref, Until: c.Until}, nil
	}
	return nil, parley.Refuse(parley.InvalidArgument, "%s is nothing that is done with several messages: dismiss, restore or snooze", parley.Quoted(c.Do, 40))
}

// MoveEach returns the events that move the messages, and why each message is refused, in their order. Quotas and bounds
// hold for all together. A message that is named twice is moved once. A refusal is Absent if a message is not in memory.
func (s *State) MoveEach(l *Limits, c MoveMessages, now capabilities.Time, ids IDs) (evs []events.Event, refused []error) {
	refused = make([]error, len(c.Messages))
	seen := make(map[uint64]bool, len(c.Messages))
	snoozed := len(s.Mail.snoozed)
	for i, ref := range c.Messages {
		n, err := s.Mail.number(ref)
		if refused[i] = err; err != nil || seen[n] {
			continue
		}
		seen[n] = true
		made, err := s.moveOne(l, c, ref, evs, now, ids)
		if _, before := s.Mail.snoozed[n]; err == nil && len(made) > 0 && c.Do == "snooze" && !before {
			if snoozed++; snoozed > maxSnoozed {
				err = parley.Refuse(parley.TooLarge, "%d messages are snoozed at most", maxSnoozed)
			}
		}
		if refused[i] = err; err == nil {
			evs = append(evs, made...)
		}
	}
	return evs, refused
}

// moveOne returns the events that move one message within quotas, behind the events before.
func (s *State) moveOne(l *Limits, c MoveMessages, ref capabilities.FormRef, before []events.Event, now capabilities.Time, ids IDs) ([]events.Event, error) {
	one, err := c.command(ref)
	if err != nil {
		return nil, err
	}
	made, err := s.Decide(one, now, ids)
	if err != nil || l == nil || !Spends(one) {
		return made, err
	}
	return made, l.check(s.Account.Own(now), s.ownGrowth(slices.Concat(before, made)))
}

// MarkMessages marks messages that the agent received as read or, with Unread, as not read. It has no effect on messages
// that are done: see Counts.
type MarkMessages struct {
	Numbers []uint64
	Unread  bool
}

func (c MarkMessages) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if len(c.Numbers) > MaxMarked {
		return nil, parley.Refuse(parley.TooLarge, "%d messages: %d are marked at once at most", len(c.Numbers), MaxMarked)
	}
	for _, n := range c.Numbers {
		if n >= s.Mail.Len() {
			return nil, noNumber(n)
		}
	}
	if err := s.Mail.needPages(c.Numbers...); err != nil {
		return nil, err
	}
	numbers := slices.Compact(slices.Sorted(slices.Values(c.Numbers)))
	numbers = slices.DeleteFunc(numbers, func(n uint64) bool {
		e := s.Mail.index.At(n)
		return !canBeUnread(e) || e.Is(index.Read) != c.Unread
	})
	if len(numbers) == 0 {
		return nil, nil
	}
	return []events.Event{&events.MessagesRead{Numbers: numbers, Unread: c.Unread}}, nil
}

// Counts are the numbers of messages in the lists of an inbox.
type Counts struct {
	Pending int // open forms that wait for the agent's answer, neither dismissed nor snoozed
	Snoozed int
	Done    int // received, and dismissed or settled
	Unread  int // received from others, not done, and not read since they came or came back
	All     int
}

func isDone(e *index.Entry) bool {
	return e.Is(index.Received) && (e.Is(index.Dismissed) || e.Is(index.Form) && e.Settled != 0)
}

// canBeUnread reports whether a message is unread as long as it is not marked as read.
func canBeUnread(e *index.Entry) bool {
	return e.Is(index.Received) && !e.Is(index.Sent) && !isDone(e)
}

func isUnread(e *index.Entry) bool { return canBeUnread(e) && !e.Is(index.Read) }

// tally counts the messages of an index that are done and unread.
type tally struct{ Done, Unread int }

func (t *tally) add(e *index.Entry, n int) {
	if t == nil {
		return
	}
	if isDone(e) {
		t.Done += n
	}
	if isUnread(e) {
		t.Unread += n
	}
}

// Counts returns the numbers of messages in the lists of the inbox. It fails with Absent if they have to be counted, and
// pages of the index are not in memory: then Recount counts them.
func (l *Mail) Counts() (Counts, error) {
	if l.tally == nil {
		return Counts{}, &Absent{Pages: l.index.Absent()}
	}
	c := Counts{Snoozed: len(l.snoozed), Done: l.tally.Done, Unread: l.tally.Unread, All: int(l.Len())}
	for n := range l.waiting.From(0) {
		if e := l.index.At(n); !e.Is(index.Dismissed) && !e.Is(index.Snoozed) && l.live[n].Form.NeedsAnswer(l.self) {
			c.Pending++
		}
	}
	return c, nil
}

// Counted reports whether Counts is known without Recount.
func (l *Mail) Counted() bool { return l.tally != nil }

// Recount sets the counts from all messages of the mailbox. It fails with the error that comes with them.
func (l *Mail) Recount(all iter.Seq2[Listed, error]) error {
	t := &tally{}
	for m, err := range all {
		if err != nil {
			return err
		}
		if m.Done {
			t.Done++
		}
		if m.Unread {
			t.Unread++
		}
	}
	l.tally = t
	return nil
}

// countAll counts the messages if all pages of the index are in memory.
func (l *Mail) countAll() {
	if l.tally != nil || len(l.index.Absent()) > 0 {
		return
	}
	l.tally = &tally{}
	for n := range l.Len() {
		l.tally.add(l.index.At(n), 1)
	}
}

// SnoozedUntil returns the time until which a message is snoozed; 0 if it is not.
func (l *Mail) SnoozedUntil(n uint64) capabilities.Time { return l.snoozed[n] }

// IsUnread reports whether a message is unread. It fails with Absent.
func (l *Mail) IsUnread(n uint64) (bool, error) {
	e, err := l.entry(n)
	return err == nil && isUnread(e), err
}

// change changes the entry of a message, and counts it anew.
func (l *Mail) change(n uint64, do func(*index.Entry)) {
	e := l.index.Change(n)
	l.tally.add(e, -1)
	do(e)
	l.tally.add(e, 1)
}

// touchEntry notes a change of a message that may not be in memory.
func (l *Mail) touchEntry(n, version uint64) {
	if m, err := l.at(n); err == nil {
		m.Changed = version
	}
	l.index.Change(n).Changed = uint32(version)
	l.recent.Add(version, n)
}

// snooze notes that a message is snoozed until a time, or with 0 that it has come back.
func (l *Mail) snooze(n uint64, until capabilities.Time) {
	l.endSnooze(n)
	l.change(n, func(e *index.Entry) {
		if e.Flags |= index.Snoozed; until == 0 {
			e.Flags &^= index.Snoozed | index.Read
		}
	})
	if until != 0 {
		l.wakeAt(n, until)
	}
}

func (l *Mail) wakeAt(n uint64, until capabilities.Time) {
	if l.snoozed == nil {
		l.snoozed = map[uint64]capabilities.Time{}
	}
	l.snoozed[n] = until
	l.due.Add(until, timer{number: n, kind: wakes})
}

// endSnooze ends the snooze of a message, if there is one. Its timer goes when it is due.
func (l *Mail) endSnooze(n uint64) {
	if _, snoozed := l.snoozed[n]; !snoozed {
		return
	}
	delete(l.snoozed, n)
	l.index.Change(n).Flags &^= index.Snoozed
}

// SnoozedFrom returns the numbers of snoozed messages from one on.
func (l *Mail) SnoozedFrom(first uint64) []uint64 {
	numbers := slices.Sorted(maps.Keys(l.snoozed))
	return slices.DeleteFunc(numbers, func(n uint64) bool { return n < first })
}

func (f fold) messageSnoozed(e *events.MessageSnoozed) error {
	if e.Number >= f.Mail.Len() {
		return missing(e.Number)
	}
	f.Mail.marked = true
	f.Mail.snooze(e.Number, e.Until)
	f.Mail.touchEntry(e.Number, f.Version)
	return nil
}

func (f fold) messageRestored(e *events.MessageRestored) error {
	if e.Number >= f.Mail.Len() {
		return missing(e.Number)
	}
	l := &f.Mail
	l.marked = true
	l.change(e.Number, func(e *index.Entry) { e.Flags &^= index.Dismissed })
	l.touchEntry(e.Number, f.Version)
	m, err := l.at(e.Number)
	if err != nil {
		return nil
	}
	m.Dismissed = false
	if f := m.Form; f != nil && l.index.At(e.Number).Is(index.HasOrigin) {
		l.origins.Add(f.AskedIn(), m.Number)
	}
	f.retire(m)
	return nil
}

func (f fold) messagesRead(e *events.MessagesRead) error {
	f.Mail.marked = true
	for _, n := range e.Numbers {
		if n >= f.Mail.Len() {
			return missing(n)
		}
		f.Mail.setRead(n, !e.Unread)
		f.Mail.touchEntry(n, f.Version)
	}
	return nil
}

func (l *Mail) setRead(n uint64, read bool) {
	l.change(n, func(e *index.Entry) {
		if e.Flags |= index.Read; !read {
			e.Flags &^= index.Read
		}
	})
}

// inboxSnapshot is a snapshot with the marks of the inbox, of a mailbox that has any.
type inboxSnapshot struct {
	Format  int
	State   []byte // a snapshot
	Snoozed []snoozeSnapshot
	Drafts  []events.DraftSaved
	Tally   *tally // nil if it is not known
}

type snoozeSnapshot struct {
	Number uint64
	Until  capabilities.Time
}

// withInbox returns a snapshot with the marks of the inbox.
func (s *State) withInbox(state []byte) ([]byte, error) {
	l := &s.Mail
	if !l.marked {
		return state, nil
	}
	img := inboxSnapshot{Format: inboxFormat, State: state, Tally: l.tally}
	for _, n := range l.SnoozedFrom(0) {
		img.Snoozed = append(img.Snoozed, snoozeSnapshot{n, l.snoozed[n]})
	}
	for n := range l.waiting.From(0) {
		if d := l.live[n].Form.Draft; d != nil {
			img.Drafts = append(img.Drafts, *d)
		}
	}
	return encode(&img)
}

// restore adds the marks of the inbox to a state that is restored otherwise.
func (img *inboxSnapshot) restore(s *State) error {
	l := &s.Mail
	l.marked, l.tally = true, img.Tally
	for _, z := range img.Snoozed {
		if z.Number >= l.Len() {
			return missing(z.Number)
		}
		l.wakeAt(z.Number, z.Until)
	}
	for i := range img.Drafts {
		m, err := l.openForm(img.Drafts[i].Form)
		if err != nil {
			return err
		}
		m.Form.Draft = &img.Drafts[i]
		l.drafts++
	}
	return nil
}
