package mailbox

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
	"parley/mailbox/quota"
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
	before := s.Mail.Snoozed.Until(m.Number)
	if c.Until <= now {
		if before == 0 {
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
	case before == 0 && s.Mail.Snoozed.Len() >= maxSnoozed:
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
	if e, err := s.Mail.Index.entry(n); err != nil || !e.Is(index.Dismissed) {
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
// hold for all together. A message that is named twice is moved once. A refusal is PagedOut if a message is not in memory.
func (s *State) MoveEach(l *quota.Limits, c MoveMessages, now capabilities.Time, ids IDs) (evs []events.Event, refused []error) {
	refused = make([]error, len(c.Messages))
	seen := make(map[uint64]bool, len(c.Messages))
	snoozed := s.Mail.Snoozed.Len()
	for i, ref := range c.Messages {
		n, err := s.Mail.number(ref)
		if refused[i] = err; err != nil || seen[n] {
			continue
		}
		seen[n] = true
		made, err := c.moveOne(s, l, ref, evs, now, ids)
		if err == nil && len(made) > 0 && c.Do == "snooze" && s.Mail.Snoozed.Until(n) == 0 {
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
func (c MoveMessages) moveOne(s *State, l *quota.Limits, ref capabilities.FormRef, before []events.Event, now capabilities.Time, ids IDs) ([]events.Event, error) {
	one, err := c.command(ref)
	if err != nil {
		return nil, err
	}
	made, err := s.Decide(one, now, ids)
	if err != nil || l == nil || !Spends(one) {
		return made, err
	}
	return made, l.Check(s.Account.Own(now), ownGrowth(s, slices.Concat(before, made)))
}

// MarkMessages marks messages that the agent received as read or, with Unread, as not read. It has no effect on messages
// that are done: see Counts. What is read was shown, which its sender is told. Nobody is told of what is Elsewhere: those are
// messages whose content cannot be read now.
type MarkMessages struct {
	Numbers   []uint64
	Unread    bool
	Elsewhere []uint64
}

func (c MarkMessages) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if len(c.Numbers) > MaxMarked {
		return nil, parley.Refuse(parley.TooLarge, "%d messages: %d are marked at once at most", len(c.Numbers), MaxMarked)
	}
	for _, n := range c.Numbers {
		if n >= s.Mail.Index.Len() {
			return nil, noNumber(n)
		}
	}
	if err := s.Mail.Index.needPages(c.Numbers...); err != nil {
		return nil, err
	}
	numbers := slices.Compact(slices.Sorted(slices.Values(c.Numbers)))
	numbers = slices.DeleteFunc(numbers, func(n uint64) bool {
		e := s.Mail.Index.entries.At(n)
		return !canBeUnread(e) || e.Is(index.Read) != c.Unread
	})
	if len(numbers) == 0 {
		return nil, nil
	}
	evs := []events.Event{&events.MessagesRead{Numbers: numbers, Unread: c.Unread}}
	shown := slices.DeleteFunc(slices.Clone(numbers), func(n uint64) bool {
		return s.Mail.Index.entries.At(n).Stage() >= events.Shown.Rank() || slices.Contains(c.Elsewhere, n)
	})
	if c.Unread || len(shown) == 0 {
		return evs, nil
	}
	return append(evs, &events.MessagesShown{Reader: s.ID, Numbers: shown, Proof: string(events.WasRead)}), nil
}

// Counts are the numbers of messages in the lists of an inbox.
type Counts struct {
	Pending int // open forms that wait for the agent's answer, neither dismissed nor snoozed
	Snoozed int
	Done    int // received, and dismissed or settled
	Unread  int // received from others or a note to itself, not done, and not read since they came or came back
	All     int
}

// CountsOf returns the numbers of messages in the lists of a mailbox's inbox. It fails with PagedOut if they have to be counted, and
// pages of the index are not in memory: then Recount counts them.
func CountsOf(s *State) (Counts, error) {
	l := &s.Mail
	if l.Index.tally == nil {
		return Counts{}, &PagedOut{Pages: l.Index.entries.PagedOut()}
	}
	c := Counts{Snoozed: l.Snoozed.Len(), Done: l.Index.tally.Done, Unread: l.Index.tally.Unread, All: int(l.Index.Len())}
	for n := range l.waiting.From(0) {
		if e := l.Index.entries.At(n); !e.Is(index.Dismissed) && !e.Is(index.Snoozed) && l.live[n].Form.NeedsAnswer(s) {
			c.Pending++
		}
	}
	return c, nil
}

// touchEntry notes a change of a message that may not be in memory.
func (l *Mail) touchEntry(n, version uint64) {
	if m, err := l.at(n); err == nil {
		m.Changed = version
	}
	l.Index.touch(n, version)
}

// snooze notes that a message is snoozed until a time, or with 0 that it has come back.
func (l *Mail) snooze(n uint64, until capabilities.Time) {
	l.endSnooze(n)
	l.Index.change(n, func(e *index.Entry) {
		if e.Flags |= index.Snoozed; until == 0 {
			e.Flags &^= index.Snoozed | index.Read
		}
	})
	if until != 0 {
		l.wakeAt(n, until)
	}
}

func (f fold) messageSnoozed(e *events.MessageSnoozed) error {
	if e.Number >= f.Mail.Index.Len() {
		return missing(e.Number)
	}
	f.Mail.marked = true
	f.Mail.snooze(e.Number, e.Until)
	f.Mail.touchEntry(e.Number, f.Version)
	return nil
}

func (f fold) messageRestored(e *events.MessageRestored) error {
	if e.Number >= f.Mail.Index.Len() {
		return missing(e.Number)
	}
	l := &f.Mail
	l.marked = true
	l.Index.change(e.Number, func(e *index.Entry) { e.Flags &^= index.Dismissed })
	l.touchEntry(e.Number, f.Version)
	f.Files.undismiss(e.Number)
	m, err := l.at(e.Number)
	if err != nil {
		return nil
	}
	m.Dismissed = false
	if f := m.Form; f != nil && l.Index.entries.At(e.Number).Is(index.HasOrigin) {
		l.Origins.Add(f.AskedIn(), m.Number)
	}
	f.retire(m)
	return nil
}

func (f fold) messagesRead(e *events.MessagesRead) error {
	f.Mail.marked = true
	for _, n := range e.Numbers {
		if n >= f.Mail.Index.Len() {
			return missing(n)
		}
		f.Mail.Index.setRead(n, !e.Unread)
		f.Mail.touchEntry(n, f.Version)
	}
	return nil
}
