package mailbox

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
	"parley/mailbox/table"
)

// PagedOut reports messages, or pages of the index or of tables, that are not in memory. The caller makes messages from their
// events with Rebuild and lends them to the mailbox, brings pages in, and tries again. An absent form has ended.
type PagedOut struct {
	Numbers []uint64
	Pages   []Page      // of the index
	Tables  []table.Sum // pages of names and of idempotency keys
}

// Page is a page of the index, as it was stored.
type Page = index.Page

// Error implements error.
func (a *PagedOut) Error() string {
	return fmt.Sprintf("messages %d, %d pages of the index and %d of tables are not in memory", a.Numbers, len(a.Pages), len(a.Tables))
}

// SetPageLength sets the largest number of names in a page, before the first name. It is for tests.
func (l *Names) SetPageLength(n int) {
	l.agents.SetLength(n)
	l.byULID.SetLength(n)
}

// UseOld lends messages that are not in memory to the mailbox. The map stays the caller's, who may delete from it between
// commands and events. Apply adds to it the messages that leave the mailbox's memory. A nil map lends nothing.
func (l *Mail) UseOld(old map[uint64]*Message) { l.lent = old }

// at returns a message. It fails with PagedOut if that is not in memory. The number has to be that of a message.
func (l *Mail) at(n uint64) (*Message, error) {
	if m := l.live[n]; m != nil {
		return m, nil
	}
	if m := l.lent[n]; m != nil {
		return m, nil
	}
	return nil, &PagedOut{Numbers: []uint64{n}}
}

// Messages returns messages by their numbers. It fails with PagedOut if some are not in memory, and with NO_SUCH_MESSAGE
// for a number that is none.
func (l *Mail) Messages(numbers []uint64) ([]*Message, error) {
	all := make([]*Message, len(numbers))
	var absent []uint64
	for i, n := range numbers {
		if n >= l.Index.Len() {
			return nil, noNumber(n)
		}
		var err error
		if all[i], err = l.at(n); err != nil {
			absent = append(absent, n)
		}
	}
	if len(absent) > 0 {
		return nil, &PagedOut{Numbers: absent}
	}
	return all, nil
}

// Rebuild makes a message from its events, which are those of Versions. It fails with ErrNonsense for other events. It
// changes nothing.
func (l *Mail) Rebuild(number uint64, evs []events.Recorded) (*Message, error) {
	if number >= l.Index.Len() || !l.Index.entries.Has(number) || len(evs) != len(l.Index.Versions(number)) {
		return nil, fmt.Errorf("%w: %d events are not those of message %d", ErrNonsense, len(evs), number)
	}
	entry := l.Index.entries.At(number)
	m := &Message{Number: number, Changed: uint64(entry.Changed), Dismissed: entry.Is(index.Dismissed), reached: l.reached.of(number)}
	for _, e := range evs {
		if err := m.recall(e, l.self); err != nil {
			return nil, err
		}
	}
	if m.Form == nil && m.Posted == nil || l.Index.entries.Digest(m.ID()) != entry.ID {
		return nil, fmt.Errorf("%w: the events are not those of message %d", ErrNonsense, number)
	}
	if m.Form != nil {
		m.Form.Settled = uint64(entry.Settled)
	}

	return m, nil
}

// FormOf makes a form of the events in the mailbox of self that it consists of, the first being its FormRequested: what is left of
// a form where the mailbox is not there. It fails with ErrNonsense for other events.
func FormOf(self capabilities.ID, evs []events.Recorded) (*Form, error) {
	m := &Message{}
	for i, e := range evs {
		if _, ok := e.Event.(*events.FormRequested); ok != (i == 0) {
			return nil, fmt.Errorf("%w: event %d of a form is a %T", ErrNonsense, i, e.Event)
		}
		if err := m.recall(e, self); err != nil {
			return nil, err
		}
	}
	if m.Form == nil {
		return nil, fmt.Errorf("%w: no events make no form", ErrNonsense)
	}
	return m.Form, nil
}

// recall adds an event to a message that is made again.
func (m *Message) recall(r events.Recorded, self capabilities.ID) error {
	switch e := r.Event.(type) {
	case *events.FormRequested:
		m.Form = newForm(e)
		if e.From == self && m.Behind == nil {
			m.Form.Holders = []capabilities.ID{e.To}
		}
		return nil
	case *events.MailQueued:
		if m.Behind = e; m.Form != nil {
			m.Form.Holders = nil
		}
		return nil
	case *events.QueuedSent:
		if m.Form == nil && m.Posted == nil {
			return nonsenseQueued(e.Message)
		}
		m.sendQueued(e)
		return nil
	case *events.QueuedEnded:
		m.Refused = e.Why
		return nil
	case *events.MessagePosted:
		if m.Posted == nil {
			m.Posted = e
			return nil
		}
	case *events.MessageDelivered:
		m.Refused = e.Refused
		return nil
	case *events.MessageUnreached:
		m.addUnreached(e)
		return nil
	case *events.MemberReported:
		m.addMember(e)
		return nil
	case *events.MembersCounted:
		m.addCounts(e)
		return nil
	case *events.MessageRepeated:
		m.Repeats = append(m.Repeats, e.By)
		return nil
	}
	if m.Form == nil {
		if m.Posted == nil || !m.recallReceipt(r, self) {
			return fmt.Errorf("%w: %T makes no message", ErrNonsense, r.Event)
		}
		return nil
	}
	switch e := r.Event.(type) {
	case *events.FormAnswered:
		noteAnswer(m.Form, e)
	case *events.FormCancelled:
		m.Form.Ended = e
	case *events.FormForwarded:
		m.Form.addForward(e, self)
	case *events.FormAmended:
		m.Form.amend(e)
	case *events.FormReminded:
		m.Form.passed.edit().Reminded = e
	case *events.FormRouted:
		m.Form.addRoute(e)
	case *events.ReviewAsked:
		m.Form.putToReview(e, self)
	case *events.ReviewEnded:
		m.Form.endReview(e, self)
	case *events.VoteCast:
		noteVote(m.Form, e)
	case *events.VoteWithdrawn:
		m.Form.votes.edit().Withdraw(*e)
	case *events.DecisionSigned:
		noteSigned(m.Form, e)
	default:
		return fmt.Errorf("%w: %T makes no message", ErrNonsense, e)
	}
	return nil
}

// addForward adds a forward to the form, whether in the state or made again.
func (f *Form) addForward(e *events.FormForwarded, self capabilities.ID) {
	passed := f.passed.edit()
	passed.Forwarded = append(passed.Forwarded, *e)
	if f.From == self {
		f.addHolder(e.To)
	}
}

// needs fails with PagedOut if an event cannot be folded in yet. A message or a page is missing in memory then.
func (s *State) needs(e events.Event) error {
	l := &s.Mail
	var err error
	switch e := e.(type) {
	case *events.FormForwarded:
		var n uint64
		var ok bool
		if n, ok, err = l.Index.NumberOf(e.Form); ok {
			if _, err = l.at(n); err == nil {
				_, err = l.Index.entry(n)
			}
		}
	case *events.MessageDismissed:
		if e.Number < l.Index.Len() {
			var entry *index.Entry
			if entry, err = l.Index.entry(e.Number); err == nil && dismissalNeeds(entry) {
				_, err = l.at(e.Number)
			}
		}
	case *events.MessageRestored:
		if e.Number < l.Index.Len() {
			var entry *index.Entry
			if entry, err = l.Index.entry(e.Number); err == nil && entry.Is(index.Dismissed) && (!entry.Is(index.Form) || entry.Is(index.HasOrigin)) {
				_, err = l.at(e.Number)
			}
		}
	case *events.MessageSnoozed:
		err = l.Index.needPages(e.Number)
	case *events.MessagesRead:
		err = l.Index.needPages(e.Numbers...)
	case *events.MessagesOffered:
		if absent := l.Index.entries.PagedOut(); l.Index.unoffered == nil && len(absent) > 0 {
			return &PagedOut{Pages: absent}
		}
		err = moveNeeds(l, e.Numbers)
	case *events.MessagesShown:
		err = moveNeeds(l, e.Numbers)
	case *events.MessagesHandled:
		err = moveNeeds(l, e.Numbers)
	case *events.MessagesOverdue:
		err = l.Index.needPages(e.Numbers...)
	case *events.OffersReturned:
		for _, o := range l.Offers.all {
			if o.Reader == e.Reader {
				err = cmp.Or(err, l.Index.needPages(o.Numbers...))
			}
		}
	case *events.ReceiptReported:
		err = l.needsMessage(e.Message, func(entry *index.Entry) bool { return entry.Is(index.Several) })
	case *events.MemberReported:
		err = l.needsMessage(e.Message, func(*index.Entry) bool { return true })
	case *events.MembersCounted:
		err = l.needsMessage(e.Message, func(*index.Entry) bool { return true })
	case *events.MessageRepeated:
		err = l.needsMessage(e.Message, func(*index.Entry) bool { return true })
	case *events.MessageUnreached:
		err = l.needsMessage(e.Message, func(*index.Entry) bool { return true })
	case *events.FormRequested:
		err = l.addNeeds(e.ID, e.ReplyTo)
	case *events.MessagePosted:
		err = l.addNeeds(e.Message, e.ReplyTo)
	case *events.NameBound:
		err = s.Names.needs(e.Name, e.Value)
	case *events.NameUnbound:
		err = s.Names.needs(e.Name, capabilities.Value{})
	}
	return err
}

// needsMessage fails with PagedOut if a message is here, and its page is not in memory, or the message itself, where that matters.
func (l *Mail) needsMessage(id capabilities.ID, matters func(*index.Entry) bool) error {
	n, ok, err := l.Index.NumberOf(id)
	if err != nil || !ok {
		return err
	}
	entry, err := l.Index.entry(n)
	if err == nil && matters(entry) {
		_, err = l.at(n)
	}
	return err
}

// moveNeeds fails with PagedOut if messages cannot come to another state: their senders are told, so they have to be in memory.
func moveNeeds(l *Mail, numbers []uint64) error {
	if err := l.Index.needPages(numbers...); err != nil {
		return err
	}
	a := &PagedOut{}
	for _, n := range numbers {
		if n >= l.Index.Len() {
			continue
		}
		if _, err := l.at(n); err != nil {
			a.Numbers = append(a.Numbers, n)
		}
	}
	if len(a.Numbers) > 0 {
		return a
	}
	return nil
}

// addNeeds fails with PagedOut if a message cannot be added.
func (l *Mail) addNeeds(id, replyTo capabilities.ID) error {
	if _, err := l.Index.Has(id); err != nil {
		return err
	}
	_, err := l.parentOf(replyTo)
	return err
}

// parentOf returns the message that a reply is to, if the reply can depend on more than its index has: how its recipient was reached, or
// whom else it tells of something; nil if it does not. It fails with PagedOut.
func (l *Mail) parentOf(replyTo capabilities.ID) (*Message, error) {
	if replyTo.IsZero() {
		return nil, nil
	}
	n, ok, err := l.Index.NumberOf(replyTo)
	if err != nil || !ok || !l.Index.entries.At(n).Is(index.ByGrant|index.Several|index.Repeated) && l.reached.of(n) == nil {
		return nil, err
	}
	return l.at(n)
}

// retire lets go of a message that the mailbox need not hold any more. It holds one that it has to hold.
func (f fold) retire(m *Message) {
	l := &f.Mail
	if f.holds(m) {
		l.Index.entries.Change(m.Number)
		l.live[m.Number] = m
		delete(l.lent, m.Number)
		return
	}
	if m.Form != nil {
		m.Receipts = nil
	}
	if l.live[m.Number] == nil {
		return
	}
	delete(l.live, m.Number)
	if l.lent != nil {
		l.lent[m.Number] = m
	}
}

// holds reports whether a message has to be in memory: an open form, a message still to be delivered, or one that a run
// is or may be for.
func (s *State) holds(m *Message) bool {
	switch {
	case s.Outbox.bySubject[m.ID()] > 0:
		return true
	case m.Form != nil:
		return m.Form.IsOpen() || s.Mail.queue.isBehind(m.ID())
	}
	return m.IsQueued() || s.Runs.holds(m)
}

// Held yields the messages that the mailbox holds, in no order. They belong to the state.
func (l *Mail) Held() iter.Seq[*Message] { return maps.Values(l.live) }

// heldMessages returns the messages that have to be in memory, by number.
func (s *State) heldMessages() []*Message {
	var all []*Message
	for _, m := range s.Mail.live {
		if s.holds(m) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, byNumber)
	return all
}

// restore fills the index and the tables of a new state.
func (h *headSnapshot) restore(s *State) error {
	err := s.Mail.Index.entries.RestoreHead(h.Index)
	for i, encoded := range [...][]byte{h.Agents, h.ByULID, h.Asked, h.Posted} {
		err = cmp.Or(err, s.Tables()[i].RestoreHead(encoded))
	}
	return err
}

// Parts are a snapshot in parts.
type Parts struct {
	Head   []byte       // for Restore
	Pages  []Page       // that are not stored; they have to be, before the head is
	Data   [][]byte     // the pages
	Tables []table.Part // pages of tables that are not stored, as Pages
	Gone   []PageSum    // sums of stored pages that are of no use once the head is stored

	names  int  // bytes of the pages of names
	behind bool // more could be sealed
}

// Size returns the bytes that are written again and again: the head and the pages of names. Other pages are written
// once. It returns 0 if the next snapshot would take more off the head.
func (p *Parts) Size() int {
	if p.behind {
		return 0
	}
	return len(p.Head) + p.names
}

// PageSum is the sum of a page, under which it is stored.
type PageSum = index.Sum

// Unused returns those of some sums that are of no page of the state, in memory or not.
func (s *State) Unused(sums []PageSum) []PageSum {
	used := map[PageSum]bool{}
	for sum := range s.Mail.Index.entries.Sums() {
		used[sum] = true
	}
	for _, t := range s.Tables() {
		for sum := range t.Sums() {
			used[PageSum(sum)] = true
		}
	}
	return slices.DeleteFunc(sums, func(sum PageSum) bool { return used[sum] })
}

// Part encodes the state without the pages that are stored. It seals at most some pages of the index. They have no
// messages that were made at a time or later. It seals all pages of tables that are full enough.
func (s *State) Part(pages int, before capabilities.Time) (Parts, error) {
	l := &s.Mail
	needed := map[int]bool{}
	for n := range l.live {
		needed[l.Index.entries.PageOf(n)] = true
	}
	l.Index.entries.Seal(pages, uint64(before), needed)
	p := Parts{Pages: l.Index.entries.Unstored()}
	p.behind = pages > 0 && len(p.Pages) >= pages
	tables := s.Tables()
	var heads [len(tables)][]byte
	for i, t := range tables {
		sealed := t.Seal()
		p.Tables, heads[i] = append(p.Tables, sealed...), t.Head()
		for _, page := range sealed {
			if i < 2 {
				p.names += len(page.Data)
			}
		}
	}
	p.behind = p.behind || l.Keys.asked.Behind() || l.Keys.posted.Behind()
	var err error
	p.Head, err = encodeState(s, indexSnapshotOf(s), &headSnapshot{
		Index: l.Index.entries.Head(), Agents: heads[0], ByULID: heads[1], Asked: heads[2], Posted: heads[3],
	})
	if err != nil {
		return Parts{}, err
	}
	for _, page := range p.Pages {
		p.Data = append(p.Data, l.Index.entries.EncodePage(page.Number))
	}
	p.Gone = l.Index.entries.Gone()
	for _, t := range s.Tables() {
		for _, sum := range t.Gone() {
			p.Gone = append(p.Gone, PageSum(sum))
		}
	}
	return p, nil
}
