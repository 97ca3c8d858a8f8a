package mailbox

import (
	"maps"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
)

// Receipt says how far a message has come, and with whom. At its recipient By is zero, and there is one for each state: the
// newest. At its sender there is one for each recipient: what that last reported.
type Receipt struct {
	By     capabilities.ID
	Reader capabilities.ID
	State  events.MessageState
	At     capabilities.Time
	How    string // the moment of an offer, the proof that it was shown, or what was done with it
}

// addReceipt adds a receipt in place of one before.
func (m *Message) addReceipt(r Receipt) {
	others := slices.DeleteFunc(slices.Clone(m.Receipts), func(o Receipt) bool {
		return o.By == r.By && (!r.By.IsZero() || o.State == r.State)
	})
	m.Receipts = append(others, r)
	slices.SortStableFunc(m.Receipts, func(a, b Receipt) int { return int(a.State.Rank()) - int(b.State.Rank()) })
}

// stateOf returns the state of a rank.
func stateOf(rank uint8) events.MessageState {
	return [...]events.MessageState{events.Delivered, events.Offered, events.Shown, events.Handled}[rank&3]
}

// StateOf returns how far a message has come, whether it was sent or received. One that was sent may not be delivered yet. A
// form that was answered is handled.
// Its page has to be in memory.
func StateOf(l *Mail, m *Message) (events.MessageState, error) {
	e, err := l.Index.entry(m.Number)
	if err != nil {
		return "", err
	}
	if m.Form != nil && m.Form.Answered != nil {
		return events.Handled, nil
	}
	return stateOf(e.Stage()), nil
}

// advance notes that a message came to a state with a reader, and has its sender told. The message has to be in memory, but
// for a form that has ended.
func (f fold) advance(n uint64, r Receipt) {
	l := &f.Mail
	forward := r.isFurther(l.Index.entries.At(n))
	f.moved(n, r)
	m, err := l.at(n)
	if err != nil {
		return
	}
	if isOver := m.Form != nil && !m.Form.IsOpen(); forward && !isOver && m.From() != f.ID {
		f.tell(m, events.OutboxReceipt)
	}
	f.retire(m)
}

// acknowledges reports whether a receipt says that its message was acknowledged, or replied to.
func (r Receipt) acknowledges() bool {
	return r.State == events.Handled && (r.How == string(events.WasAcknowledged) || r.How == string(events.WasReplied))
}

// isFurther reports whether a message has come further by a receipt.
func (r Receipt) isFurther(e *index.Entry) bool {
	return r.State.Rank() > e.Stage() || r.acknowledges() && !e.Is(index.Acknowledged)
}

// moved notes the receipt of a message.
func (f fold) moved(n uint64, r Receipt) {
	l := &f.Mail
	if m := l.several(n); m != nil {
		m.addReceipt(r)
		f.noted(m)
		return
	}
	l.Index.change(n, func(e *index.Entry) {
		if e.SetStage(max(e.Stage(), r.State.Rank())); r.acknowledges() {
			e.Flags |= index.Acknowledged
		}
		e.SetReceipt(r.State.Rank(), uint32(f.Version))
	})
	if m, err := l.at(n); err == nil && (m.Form == nil || m.Form.IsOpen()) {
		m.addReceipt(r)
	}
	if l.touchEntry(n, f.Version); r.State != events.Handled {
		return
	}
	if endOffersOf(l, n); r.acknowledges() {
		delete(l.acks, n)
	}
}

// noted notes a further event of a message to several: how far it has come with all of them.
func (f fold) noted(m *Message) {
	l := &f.Mail
	l.Index.entries.Note(m.Number, f.Version)
	stage, acknowledged := m.least()
	l.Index.change(m.Number, func(e *index.Entry) {
		if e.SetStage(max(e.Stage(), stage)); acknowledged {
			e.Flags |= index.Acknowledged
		}
	})
	if l.touch(m, f.Version); acknowledged || m.Refused != "" {
		delete(l.acks, m.Number)
	}
	f.retire(m)
}

// noteReply notes what a reply says of the message that it is to: its author handled that, or if it is an open form was shown
// it. No report of it is needed, since the reply is one.
func noteReply(f fold, e *events.MessagePosted) {
	l := &f.Mail
	if e.ReplyTo.IsZero() || e.From == e.To {
		return
	}
	n, ok, err := l.Index.NumberOf(e.ReplyTo)
	if err != nil || !ok { // addNeeds has its page in memory, if there is one
		return
	}
	parent := l.Index.entries.At(n)
	r := Receipt{Reader: e.From, State: events.Handled, At: f.at, How: string(events.WasReplied)}
	own := e.From == f.ID
	if m := l.several(n); m != nil {
		if r.By = e.From; !own && m.isFor(e.From) && m.isFurther(r) {
			f.moved(n, r)
		}
		return
	}
	if parent.Is(index.Form) {
		m := l.live[n]
		if r.State = events.Shown; m == nil || !m.Form.IsOpen() || own && !parent.Is(index.Received) || !own && !m.isFor(e.From) {
			return
		}
	} else if own && (!parent.Is(index.Received) || parent.Is(index.Sent)) || !own && !parent.IsTo(l.Index.entries.Digest(e.From)) {
		return
	}
	if !own {
		r.By = e.From
	}
	if !r.isFurther(parent) {
		return
	}
	f.moved(n, r)
	if own && e.Original.IsZero() && parent.Is(index.Repeated) { // the reply goes to one of those who are to know
		if m, err := l.at(n); err == nil {
			for _, to := range m.Repeats {
				f.Outbox.enqueue(events.OutboxReceipt, m.ID(), to)
			}
			f.retire(m)
		}
	}
}

// isFor reports whether a message that the agent sent went to an agent.
func (m *Message) isFor(to capabilities.ID) bool {
	return slices.Contains(m.Recipients(), to) || m.Form != nil && slices.Contains(m.Form.Holders, to)
}

// several returns a message that the agent sent to several; nil for any other. It has to be in memory.
func (l *Mail) several(n uint64) *Message {
	if !l.Index.entries.At(n).Is(index.Several) {
		return nil
	}
	m, _ := l.at(n) // see needs
	return m
}

// isFurther reports whether a message to several has come further with the recipient of a receipt.
func (m *Message) isFurther(r Receipt) bool {
	return !slices.ContainsFunc(m.Receipts, func(o Receipt) bool {
		return o.By == r.By && o.State.Rank() >= r.State.Rank() && (o.acknowledges() || !r.acknowledges())
	})
}

// least returns how far a message to several has come with all of its recipients that it reached, and whether all of them have
// acknowledged it.
func (m *Message) least() (stage uint8, acknowledged bool) {
	stage, acknowledged = events.Handled.Rank(), true
	left := 0
	for _, to := range m.Recipients() {
		if m.missed(to) {
			continue
		}
		left++
		i := slices.IndexFunc(m.Receipts, func(r Receipt) bool { return r.By == to })
		if i < 0 {
			return 0, false
		}
		stage, acknowledged = min(stage, m.Receipts[i].State.Rank()), acknowledged && m.Receipts[i].acknowledges()
	}
	if left == 0 {
		return 0, false
	}
	return stage, acknowledged
}

// recallReceipt adds the receipt of an event to a message that is made again, and reports whether it has one.
func (m *Message) recallReceipt(r events.Recorded, self capabilities.ID) bool {
	own := func(state events.MessageState, reader capabilities.ID, how string) {
		m.addReceipt(Receipt{Reader: reader, State: state, At: r.At, How: how})
	}
	switch e := r.Event.(type) {
	case *events.MessagesOffered:
		own(events.Offered, e.Reader, e.Moment)
	case *events.MessagesShown:
		own(events.Shown, e.Reader, e.Proof)
	case *events.MessagesHandled:
		own(events.Handled, e.Reader, string(e.How))
	case *events.MessageDismissed:
		own(events.Handled, self, string(events.WasDismissed))
	case *events.RunStarted:
		own(events.Shown, self, string(events.ProgramStarted))
	case *events.RunEnded:
		own(events.Handled, self, string(events.ProgramEnded))
	case *events.MessagePosted:
		replied := Receipt{Reader: e.From, State: events.Handled, At: r.At, How: string(events.WasReplied)}
		if e.From != self {
			replied.By = e.From
		}
		m.addReceipt(replied)
	case *events.ReceiptReported:
		m.addReceipt(reported(e))
	default:
		return false
	}
	return true
}

// report returns the command that tells a message's sender how far it has come.
func (m *Message) report(s *State) Command {
	r := Receipt{Reader: s.ID, State: events.Delivered} // if the offer was returned
	if len(m.Receipts) > 0 {
		r = m.Receipts[len(m.Receipts)-1]
	}
	if r.How == string(events.WasReplied) && len(s.StandIns.members) > 0 { // a reply that it has passed on may be one member's alone
		r = Receipt{Reader: s.ID, State: events.Delivered}
	}
	if all := m.withAll(); all.State.Rank() > r.State.Rank() {
		r = all
		r.Reader = s.ID
	}
	return RecordReceipt{events.ReceiptReported{Message: m.ID(), By: s.ID, Reader: r.Reader, State: r.State, How: r.How, Date: r.At}}
}

// RecordReceipt records how far a message that the agent sent has come with a recipient. It comes from that one's mailbox on
// this node. What is no further than what is known has no effect, nor has a report of a form that has ended.
type RecordReceipt struct{ Report events.ReceiptReported }

// RemoteReceipt is a RecordReceipt from another node.
type RemoteReceipt struct{ RecordReceipt }

func (c RecordReceipt) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	e := c.Report
	if e.State.Rank() == 0 && e.State != events.Delivered {
		return nil, parley.Refuse(parley.InvalidArgument, "%s is no state that is reported", parley.Quoted(string(e.State), 40))
	}
	n, err := s.Mail.number(capabilities.FormID(e.Message))
	if err != nil {
		return nil, err
	}
	entry, err := s.Mail.Index.entry(n)
	if err != nil {
		return nil, err
	}
	refused := parley.Refuse(parley.NotPermitted, "message %s was not sent to the one who reports on it", e.Message)
	if entry.Is(index.Several) {
		m, err := s.Mail.at(n)
		if err != nil {
			return nil, err
		}
		if !m.isFor(e.By) || m.missed(e.By) {
			return nil, refused
		}
		if !m.isFurther(reported(&e)) {
			return nil, nil
		}
		return []events.Event{&e}, nil
	}
	if !entry.Is(index.Form) {
		if !entry.IsTo(s.Mail.Index.entries.Digest(e.By)) {
			return nil, refused
		}
		if !reported(&e).isFurther(entry) {
			return nil, nil
		}
		evs, err := memberStates(s, n, &e)
		return append([]events.Event{&e}, evs...), err
	}
	if !entry.Is(index.Sent) {
		return nil, refused
	}
	if !entry.IsOpen() {
		return nil, nil
	}
	m := s.Mail.live[n]
	known := func(r Receipt) bool { return r.By == e.By && r.State.Rank() >= e.State.Rank() }
	if !m.isFor(e.By) {
		return nil, refused
	}
	if slices.ContainsFunc(m.Receipts, known) {
		return nil, nil
	}
	return []events.Event{&e}, nil
}

func (c RemoteReceipt) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	e := &c.Report
	if e.Reader.Node != e.By.Node {
		return nil, parley.Refuse(parley.NotPermitted, "the report is of a reader on another node than its sender")
	}
	if err := checkText("a report", e.How, maxProof); err != nil {
		return nil, err
	}
	e.Date = clampDate(e.Date, now)
	return c.RecordReceipt.decide(s, now, ids)
}

// reported returns the receipt of a report.
func reported(e *events.ReceiptReported) Receipt {
	return Receipt{By: e.By, Reader: e.Reader, State: e.State, At: e.Date, How: e.How}
}

func receiptReported(f fold, e *events.ReceiptReported) error {
	n, ok, err := f.Mail.Index.NumberOf(e.Message)
	if err != nil {
		return err
	}
	if !ok || !f.Mail.Index.entries.At(n).Is(index.Sent) {
		return missing(n)
	}
	f.moved(n, reported(e))
	return nil
}

// wantedAck is a message that was not acknowledged. It is overdue once that is noted.
type wantedAck struct {
	By      capabilities.Time
	Overdue bool
}

// wantAck notes that a message is to be acknowledged.
func wantAck(l *Mail, n uint64, a wantedAck) {
	if l.acks == nil {
		l.acks = map[uint64]wantedAck{}
	}
	if l.acks[n] = a; !a.Overdue {
		l.timers.due.Add(a.By, timer{number: n, kind: overdue})
	}
}

// Overdue returns the messages, sent and received, whose time to be acknowledged has passed, in order.
func (l *Mail) Overdue() []uint64 {
	numbers := slices.Sorted(maps.Keys(l.acks))
	return slices.DeleteFunc(numbers, func(n uint64) bool { return !l.acks[n].Overdue })
}

// IsAcknowledged reports whether a message was acknowledged or replied to, and whether it is overdue. It fails with PagedOut.
func IsAcknowledged(l *Mail, n uint64) (acknowledged, isOverdue bool, err error) {
	e, err := l.Index.entry(n)
	if err != nil {
		return false, false, err
	}
	return e.Is(index.Acknowledged), l.acks[n].Overdue, nil
}

// checkAckBy refuses a time by which no message can be acknowledged; 0 is none.
func checkAckBy(by, now capabilities.Time) error {
	if by != 0 && by <= now {
		return parley.Refuse(parley.InvalidArgument, "a message is acknowledged by a time to come, and not by %s", by)
	}
	return nil
}

// NoteOverdue notes the messages whose time to be acknowledged has come. Those that are to be escalated go on to another agent.
type NoteOverdue struct{}

func (NoteOverdue) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	past := s.Mail.passed(overdue, now)
	if len(past) == 0 {
		return nil, nil
	}
	slices.Sort(past)
	evs := []events.Event{&events.MessagesOverdue{Numbers: past}}
	next := s.Mail.Index.Len()
	for _, n := range past {
		entry, err := s.Mail.Index.entry(n)
		if err != nil {
			return nil, err
		}
		if !entry.Is(index.Sent) {
			continue
		}
		m, err := s.Mail.at(n)
		if err != nil {
			return nil, err
		}
		if m.Posted == nil || m.Posted.Escalate == nil {
			continue
		}
		escalated, err := s.escalate(m, next, now, ids)
		if err != nil {
			return nil, err
		}
		if _, posted := escalated.(*events.MessagePosted); posted {
			next++
		}
		evs = append(evs, escalated)
	}
	return evs, nil
}

// noteOverdue notes what is overdue. What was received comes back unread.
func noteOverdue(f fold, e *events.MessagesOverdue) error {
	l := &f.Mail
	if err := l.Index.hasAll(e.Numbers); err != nil {
		return err
	}
	for _, n := range e.Numbers {
		a, ok := l.acks[n]
		if !ok {
			return missing(n)
		}
		a.Overdue = true
		l.acks[n] = a
		if l.Index.entries.At(n).Is(index.Received) {
			l.Index.setRead(n, false)
		}
		l.touchEntry(n, f.Version)
	}
	l.marked = true
	return nil
}
