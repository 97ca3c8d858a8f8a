package mailbox

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
)

// A group tells the sender of a message how far that has come with its members: with each, and with all that it reached, which is the
// group's own receipt. Members tell the group, since what it passes on is its message. So of a group of groups each level tells the one
// above. Where two ways lead to an agent, it tells the groups on both: the copy that comes second is recorded, and nobody reads it.

// maxMemberStates bounds the members whose states are noted for one message, those of groups in the group too.
const maxMemberStates = 2 * MaxHolders

// memberStates returns the event of what a report on a message says, which this mailbox as a group has passed on; none for any other. It
// fails with PagedOut.
func memberStates(s *State, n uint64, report *events.ReceiptReported) ([]events.Event, error) {
	if len(s.StandIns.members) == 0 {
		return nil, nil
	}
	passed, err := s.Mail.at(n)
	if err != nil || passed.Posted == nil || passed.Posted.Original.IsZero() || passed.Posted.From != s.ID {
		return nil, err
	}
	m, err := s.Mail.byOwnID(takenID(passed.Posted))
	if parley.CodeOf(err) == parley.NoSuchMessage {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := &events.MemberReported{Message: m.ID(), By: s.ID, Member: report.By, State: report.State, How: report.How, Date: report.Date}
	if e.Name, err = s.Names.said(report.By); err != nil {
		return nil, err
	}
	if e.All, err = leastOf(s, m, n, report.State); err != nil {
		return nil, err
	}
	counted, err := countMembers(s, m, counting{number: n, receipt: reported(report)})
	if err != nil {
		return nil, err
	}
	if len(m.Members) >= maxMemberStates && m.memberOf(e) < 0 {
		return counted, nil
	}
	return append([]events.Event{e}, counted...), nil
}

// memberReplied is memberStates for a reply of a member to what this mailbox as a group has passed on to it: it is the member's report. One
// that another group passes on is not: that one's members may not have the message yet. It fails with PagedOut.
func memberReplied(s *State, e *events.MessagePosted, now capabilities.Time) ([]events.Event, error) {
	if len(s.StandIns.members) == 0 || e.ReplyTo.IsZero() || !e.Original.IsZero() {
		return nil, nil
	}
	n, ok, err := s.Mail.Index.NumberOf(e.ReplyTo)
	if err != nil || !ok {
		return nil, err
	}
	if m, err := s.Mail.at(n); err != nil || m.Posted == nil || m.Posted.To != e.From {
		return nil, err
	}
	return memberStates(s, n, &events.ReceiptReported{By: e.From, State: events.Handled, How: string(events.WasReplied), Date: now})
}

// leastOf returns how far a message that a group got has come with all members that it reached, once it has come to a state with the one
// of a number. What a group passes on has the numbers after it. It fails with PagedOut.
func leastOf(s *State, m *Message, n uint64, state events.MessageState) (events.MessageState, error) {
	least := state.Rank()
	err := eachPassed(s, m, func(one *Message, entry *index.Entry) bool {
		if one.Number != n && one.Refused == "" {
			least = min(least, entry.Stage())
		}
		return least > 0
	})
	if err != nil || least == 0 {
		return "", err
	}
	return stateOf(least), nil
}

// eachPassed calls visit with what a group has passed on of a message that it got, until that returns false. It fails with PagedOut.
func eachPassed(s *State, m *Message, visit func(one *Message, entry *index.Entry) bool) error {
	for number := m.Number + 1; number < s.Mail.Index.Len(); number++ {
		one, err := s.Mail.at(number)
		if err != nil {
			return err
		}
		if one.Posted == nil || one.Posted.From != s.ID || one.Posted.Original.IsZero() || takenID(one.Posted) != m.ID() {
			return nil
		}
		entry, err := s.Mail.Index.entry(number)
		if err != nil {
			return err
		}
		if !visit(one, entry) {
			return nil
		}
	}
	return nil
}

// memberOf returns the place of what is noted of the member of an event, or -1.
func (m *Message) memberOf(e *events.MemberReported) int {
	return slices.IndexFunc(m.Members, func(o events.MemberReported) bool { return o.Member == e.Member && o.By == e.By })
}

// addMember notes how far a message has come with a member of a group.
func (m *Message) addMember(e *events.MemberReported) {
	m.Members = slices.Clone(m.Members) // others hold the slice
	if i := m.memberOf(e); i >= 0 {
		m.Members = slices.Delete(m.Members, i, i+1)
	}
	m.Members = append(m.Members, *e)
}

// withAll returns the receipt of a message that a group got, by what it noted of its members. Its state is "" if it has none.
func (m *Message) withAll() (r Receipt) {
	for _, e := range m.Members {
		if e.All.Rank() > r.State.Rank() {
			r = Receipt{State: e.All, At: e.Date, How: "by all members"}
		}
	}
	return r
}

// memberReported notes how far a message has come with a member of a group, and has its sender told if the mailbox is the group's.
func memberReported(f fold, e *events.MemberReported) error {
	m, err := f.Mail.byOwnID(e.Message)
	if err != nil {
		return err
	}
	before := m.withAll()
	m.addMember(e)
	if m.toSeveral(f.ID) {
		f.noted(m)
		return nil
	}
	f.Mail.Index.entries.Note(m.Number, f.Version)
	f.Mail.touch(m, f.Version)
	if m.From() != f.ID {
		f.tell(m, events.OutboxMembers)
		if m.withAll().State.Rank() > before.State.Rank() {
			f.tell(m, events.OutboxReceipt)
		}
	}
	f.retire(m)
	return nil
}

// membersReport returns the command that tells the sender of a message how far it has come with members of this group.
func (m *Message) membersReport(s *State) Command {
	c := RecordMembers{Message: m.ID(), By: s.ID, Members: slices.Clone(m.Members)}
	for i := range c.Members {
		c.Members[i].By, c.Members[i].All = s.ID, ""
	}
	c.Counts = m.countsBy(s.ID)
	return c
}

// RecordMembers records how far a message that the agent sent has come with members of its recipient By, a group, as that says. It comes
// from that one's mailbox on this node. What is no further than what is known has no effect.
type RecordMembers struct {
	Message capabilities.ID
	By      capabilities.ID
	Members []events.MemberReported
	Counts  events.MemberCounts // zero if it counts none
}

// RemoteMembers is a RecordMembers from another node. What that says of agents of this node has no effect: they speak for themselves.
type RemoteMembers struct{ RecordMembers }

func (c RecordMembers) decide(s *State, _ capabilities.Time, _ IDs) (evs []events.Event, err error) {
	m, err := reportedOn(s, c.Message, c.By)
	if err != nil {
		return nil, err
	}
	room := maxMemberStates - len(m.Members)
	for _, e := range c.Members {
		e.Message, e.By, e.All = m.ID(), c.By, ""
		switch i := m.memberOf(&e); {
		case e.State.Rank() == 0, i >= 0 && m.Members[i].State.Rank() >= e.State.Rank():
			continue
		case i < 0 && room <= 0:
			continue
		case i < 0:
			room--
		}
		evs = append(evs, &e)
	}
	counted, err := recordCounts(s, m, c.By, c.Counts)
	return append(evs, counted...), err
}

func (c RemoteMembers) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if len(c.Members) > maxMemberStates {
		return nil, parley.Refuse(parley.TooLarge, "a report on %d members is over the limit of %d", len(c.Members), maxMemberStates)
	}
	if err := checkCounts(c.Counts); err != nil {
		return nil, err
	}
	var members []events.MemberReported
	seen := map[capabilities.ID]bool{}
	for _, e := range c.Members {
		if e.Member.IsZero() || seen[e.Member] {
			return nil, parley.Refuse(parley.InvalidArgument, "a report is on each of some members once")
		}
		seen[e.Member] = true
		if err := checkRecipientName(e.Name); err != nil {
			return nil, err
		}
		if err := checkText("a report", e.How, maxProof); err != nil {
			return nil, err
		}
		if e.Date = clampDate(e.Date, now); e.Member.Node != s.ID.Node {
			members = append(members, e)
		}
	}
	c.Members = members
	return c.RecordMembers.decide(s, now, ids)
}

// events returns the events of the report.
func (c RecordMembers) events() []events.Event {
	evs := make([]events.Event, len(c.Members))
	for i := range c.Members {
		c.Members[i].Message = c.Message
		evs[i] = &c.Members[i]
	}
	if c.Counts != (events.MemberCounts{}) {
		evs = append(evs, &events.MembersCounted{Message: c.Message, By: c.By, Counts: c.Counts})
	}
	return evs
}

// unpackMembers returns the command of a report from another node, and whether it is one.
func unpackMembers(evs []events.Event, from capabilities.ID) (Command, bool) {
	c := RemoteMembers{RecordMembers{By: from}}
	for i, e := range evs {
		if n, last := e.(*events.MembersCounted); last && i == len(evs)-1 && (i == 0 || n.Message == c.Message) && n.By == from {
			c.Message, c.Counts = n.Message, n.Counts
			break
		}
		r, same := e.(*events.MemberReported)
		if !same || i > 0 && r.Message != c.Message || r.By != from {
			return nil, false
		}
		c.Message = r.Message
		c.Members = append(c.Members, *r)
	}
	return c, true
}

// repeated records that a copy which is here already came again by another group, if that may send here. Any other copy that is here has no
// effect. It fails with PagedOut, and with refused.
func repeated(s *State, e *events.MessagePosted, refused error, admit func() (capabilities.ID, error)) ([]events.Event, error) {
	if refused != nil || e.Original.IsZero() {
		return nil, refused
	}
	m, err := s.Mail.byOwnID(e.Message)
	if err != nil {
		return nil, err
	}
	isCopy := m.Posted != nil && m.Posted.Original == e.Original && m.Posted.To == s.ID && e.To == s.ID && checkPassed(e) == nil
	if !isCopy || m.From() == e.From || slices.Contains(m.Repeats, e.From) || len(m.Repeats) >= MaxHolders {
		return nil, nil
	}
	if _, err := admit(); err != nil {
		return nil, err
	}
	return []events.Event{&events.MessageRepeated{Message: e.Message, By: e.From}}, nil
}

// messageRepeated notes a further group by which a message came, and has it told how far that has come.
func messageRepeated(f fold, e *events.MessageRepeated) error {
	m, err := f.Mail.byOwnID(e.Message)
	if err != nil {
		return err
	}
	m.Repeats = append(slices.Clip(m.Repeats), e.By)
	f.Mail.Index.change(m.Number, func(o *index.Entry) { o.Flags |= index.Repeated })
	f.Mail.Index.entries.Note(m.Number, f.Version)
	f.Mail.touch(m, f.Version)
	if len(m.Receipts) > 0 || m.withAll().State != "" {
		f.Outbox.enqueue(events.OutboxReceipt, m.ID(), e.By)
	}
	if len(m.Members)+len(m.Counts) > 0 {
		f.Outbox.enqueue(events.OutboxMembers, m.ID(), e.By)
	}
	if len(m.Unreached) > 0 {
		f.Outbox.enqueue(events.OutboxUnreached, m.ID(), e.By)
	}
	f.retire(m)
	return nil
}

// tell has those by whom a message came told something of it.
func (f fold) tell(m *Message, kind events.OutboxKind) {
	f.Outbox.enqueue(kind, m.ID(), m.From())
	for _, to := range m.Repeats {
		f.Outbox.enqueue(kind, m.ID(), to)
	}
}
