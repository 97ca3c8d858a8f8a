package mailbox

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
	"parley/mailbox/origin"
	"parley/mailbox/table"
)

// Mail finds the messages of a mailbox, and holds those that it has to do with: see State.holds.
type Mail struct {
	self capabilities.ID

	Index   Index
	live    map[uint64]*Message // held, by number
	lent    map[uint64]*Message // the caller's: see UseOld
	reached reachedRefs

	Keys    Keys
	Origins origin.Index // of the forms that are open or not dismissed
	refs    heldRefs
	waiting index.Numbers // forms that the agent received, until they end
	asks    openAsks
	timers  timers
	Snoozed Snoozed
	drafts  int // forms with a draft
	Texts   TextDrafts

	Schedules Schedules
	queue     MailQueue
	marked    bool // messages were snoozed, restored or read, or a draft was saved
	Offers    Offers
	acks      map[uint64]wantedAck // of messages that were not acknowledged

	questioned questionedCalls
}

func newMail(self capabilities.ID) Mail {
	return Mail{
		self:  self,
		Index: newIndex(self),
		live:  map[uint64]*Message{},
		asks:  openAsks{results: map[string]uint64{}, forwards: map[handedOn]uint64{}, threads: map[capabilities.ID]uint64{}},
		refs:  newHeldRefs(),
	}
}

// SetPageLength sets the number of messages in a page of the index, and of entries in a page of keys. It must be called
// before the first message. It is for tests.
func (l *Mail) SetPageLength(n int) {
	l.Index.entries = index.New(l.self.Node, n)
	l.Keys.asked.SetLength(n)
	l.Keys.posted.SetLength(n)
}

// Sent reports whether the mailbox's agent sent a message.
func (l *Mail) Sent(m *Message) bool { return m.From() == l.self }

// Received reports whether a message was sent or forwarded to the mailbox's agent. A message to itself is both sent
// and received.
func (l *Mail) Received(m *Message) bool { return m.From() != l.self || m.To() == l.self }

// Approvals returns the newest of the agent's own open approvals, oldest first, and the number of all.
func (l *Mail) Approvals(most int) (newest []*Message, all int) {
	for n := range l.asks.approvals.Newest() {
		if len(newest) == most {
			break
		}
		newest = append(newest, l.live[n])
	}
	slices.Reverse(newest)
	return newest, l.asks.approvals.Len()
}

// ListOpen yields the open forms that the agent received, from a number on.
func (l *Mail) ListOpen(first uint64) iter.Seq[Listed] {
	return func(yield func(Listed) bool) {
		for n := range l.waiting.From(first) {
			if !yield(listed(n, l.Index.entries.At(n))) {
				return
			}
		}
	}
}

// ListForms yields all open forms, also those that the agent sent, from a number on.
func (l *Mail) ListForms(first uint64) iter.Seq[Listed] {
	return func(yield func(Listed) bool) {
		for _, n := range slices.Sorted(maps.Keys(l.live)) {
			m := l.live[n]
			if n < first || m.Form == nil || !m.Form.IsOpen() {
				continue
			}
			l := Listed{Number: n, Changed: m.Changed, Sent: l.Sent(m), Received: l.Received(m), Dismissed: m.Dismissed, Form: true, Open: true}
			if !yield(l) {
				return
			}
		}
	}
}

// Unanswered returns the number of open forms that the agent received.
func (l *Mail) Unanswered() int { return l.waiting.Len() }

// underKey returns what the agent sent under an idempotency key; nil if there is nothing.
func (l *Mail) underKey(keys *table.Digests, key string) (*Message, error) {
	n, ok, err := byKey(keys, key)
	if err != nil || !ok {
		return nil, err
	}
	m, err := l.at(n)
	if err != nil || capabilities.Normal(m.key()) != capabilities.Normal(key) {
		return nil, err
	}
	return m, nil
}

// Find returns a message by its number here, or by the ID of a message, form, promise or resolver. It refuses with
// NO_SUCH_MESSAGE, or with INVALID_ARGUMENT for the zero FormRef. It fails with PagedOut, as all that return messages.
func (l *Mail) Find(ref capabilities.FormRef) (*Message, error) {
	if ref.IsZero() {
		return nil, parley.Refuse(parley.InvalidArgument, "which message? give its number or id")
	}
	n, ok := ref.Number()
	if !ok {
		return l.FindID(ref.ID())
	}
	if n >= l.Index.Len() {
		return nil, noNumber(n)
	}
	return l.at(n)
}

// number returns the number of the message that Find returns. Of most messages it needs no more than the index.
func (l *Mail) number(ref capabilities.FormRef) (uint64, error) {
	if n, ok := ref.Number(); ok && n < l.Index.Len() {
		return n, nil
	}
	if !ref.IsZero() {
		if n, ok, err := l.Index.NumberOf(ref.ID()); ok || err != nil {
			return n, err
		}
	}
	m, err := l.Find(ref)
	if err != nil {
		return 0, err
	}
	return m.Number, nil
}

func noNumber(n uint64) error {
	return parley.Refuse(parley.NoSuchMessage, "no message %d", n).
		WithHint("parley inbox --all lists the messages")
}

// FindID returns the message with an ID, or the form with an ID, promise or resolver. It refuses with NO_SUCH_MESSAGE.
func (l *Mail) FindID(id capabilities.ID) (*Message, error) {
	m, err := l.byOwnID(id)
	if parley.CodeOf(err) != parley.NoSuchMessage {
		return m, err
	}
	numbers, pages := l.Index.entries.FindOther(id)
	for _, n := range numbers {
		m, err := l.at(n)
		if err != nil || m.Form.Promise == id || m.Form.Resolver == id {
			return m, err
		}
	}
	if len(pages) > 0 {
		return nil, l.Index.absent(pages...)
	}
	return nil, noMessage(id)
}

// byOwnID returns the message or form with an ID.
func (l *Mail) byOwnID(id capabilities.ID) (*Message, error) {
	n, ok, err := l.Index.NumberOf(id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noMessage(id)
	}
	m, err := l.at(n)
	if err == nil && m.ID() != id {
		return nil, noMessage(id)
	}
	return m, err
}

func noMessage(id capabilities.ID) error {
	return parley.Refuse(parley.NoSuchMessage, "no message %s", id.String()) // so that looking for one allocates no ID
}

// FindForm is Find for a form. It refuses with NOT_A_FORM too.
func (l *Mail) FindForm(ref capabilities.FormRef) (*Message, error) {
	m, err := l.Find(ref)
	return mustBeForm(m, err)
}

// FindFormID returns the form with an ID. It refuses with NO_SUCH_MESSAGE and NOT_A_FORM.
func (l *Mail) FindFormID(id capabilities.ID) (*Message, error) {
	m, err := l.byOwnID(id)
	return mustBeForm(m, err)
}

func mustBeForm(m *Message, err error) (*Message, error) {
	if err == nil && m.Form == nil {
		return nil, parley.Refuse(parley.NotAForm, "message %d is not a form (is %q)", m.Number, "message")
	}
	return m, err
}

// form returns the form that an event is about. It fails with ErrNonsense, or with PagedOut.
func (l *Mail) form(id capabilities.ID) (*Message, error) {
	n, ok, err := l.Index.NumberOf(id)
	if err != nil {
		return nil, err
	}
	if !ok || !l.Index.entries.At(n).Is(index.Form) {
		return nil, fmt.Errorf("%w: no form %s", ErrNonsense, id)
	}
	return l.at(n)
}

// openForm returns the open form that an event is about. It fails with ErrNonsense.
func (l *Mail) openForm(id capabilities.ID) (*Message, error) {
	n, ok := l.Index.entries.FindOpen(id)
	if !ok || !l.Index.entries.At(n).IsOpen() {
		return nil, fmt.Errorf("%w: no form %s, or it settled before", ErrNonsense, id)
	}
	return l.live[n], nil
}

// add adds a message that came at a time, at a version of the mailbox. Its number has to be the next one.
func (l *Mail) add(m *Message, version uint64, came capabilities.Time) error {
	if m.Number != l.Index.Len() {
		return fmt.Errorf("%w: message %d after %d messages", ErrNonsense, m.Number, l.Index.Len())
	}
	switch here, err := l.Index.Has(m.ID()); {
	case err != nil:
		return err
	case here:
		return fmt.Errorf("%w: message %s twice", ErrNonsense, m.ID())
	}
	if err := l.setReached(m); err != nil {
		return err
	}
	e := index.Entry{ID: l.Index.entries.Digest(m.ID()), First: uint32(version)}
	made := []uint64{m.ID().ULID.Time()}
	if m.Form != nil {
		e.Flags |= index.Form
		made = append(made, m.Form.Promise.ULID.Time(), m.Form.Resolver.ULID.Time())
		e.Promise, e.Resolver = uint32(l.Index.entries.Digest(m.Form.Promise)), uint32(l.Index.entries.Digest(m.Form.Resolver))
	}
	if l.Sent(m) {
		e.Flags |= index.Sent
		if slices.ContainsFunc(m.Recipients(), func(to capabilities.ID) bool { return m.refToOne(to, l.self) != agentRef(to) }) {
			e.Flags |= index.ByGrant
		}
		if m.toSeveral(l.self) {
			e.Flags |= index.Several
		}
	}
	if l.Received(m) {
		e.Flags |= index.Received
	}
	if m.Posted != nil {
		describe(l, &e, m.Posted)
	}
	l.Index.entries.Add(e, uint64(came), made...)
	l.Index.tally.add(&e, 1)
	l.Index.unoffered.add(m.Number, &e)
	l.live[m.Number] = m
	l.touch(m, version)
	l.refs.addMessage(l, m)
	l.indexForm(m)
	return nil
}

// describe adds what the index knows of a message that is no form.
func describe(l *Mail, e *index.Entry, p *events.MessagePosted) {
	switch p.Priority {
	case events.Urgent:
		e.Flags |= index.Urgent
	case events.Low:
		e.Flags |= index.Low
	}
	if p.From == l.self && p.To != l.self && !e.Is(index.Several) {
		e.SetRecipient(l.Index.entries.Digest(p.To))
	}
}

// touch notes a change of a message at a version of the mailbox.
func (l *Mail) touch(m *Message, version uint64) {
	m.Changed = version
	l.Index.touch(m.Number, version)
}

// dismiss notes that a message is dismissed.
func (l *Mail) dismiss(n, version uint64) {
	l.endSnooze(n)
	l.Index.change(n, func(e *index.Entry) {
		e.Flags |= index.Dismissed
		e.Changed = uint32(version)
	})
	l.Index.recent.Add(version, n)
	if m, err := l.at(n); err == nil {
		m.Dismissed, m.Changed = true, version
		dropOrigin(l, m)
	}
}

// dismissalNeeds reports whether a message has to be in memory to be dismissed: its size counts for its sender, or it
// may be in the index of origins.
func dismissalNeeds(e *index.Entry) bool {
	return !e.Is(index.Dismissed) && (!e.Is(index.Form) || e.Is(index.HasOrigin))
}

// settle notes that a form has ended.
func (l *Mail) settle(m *Message, version uint64) {
	m.Form.Settled = version
	l.endSnooze(m.Number)
	l.Index.change(m.Number, func(e *index.Entry) { e.Settled = uint32(version) })
	if m.Form.Draft != nil {
		m.Form.Draft = nil
		l.drafts--
	}
	l.touch(m, version)
	dropOrigin(l, m)
	if l.Received(m) {
		l.waiting.Remove(m.Number)
		endOffersOf(l, m.Number)
	}
	if l.Sent(m) {
		l.asks.remove(m)
	}
}

// indexForm enters a form in the indexes of forms.
func (l *Mail) indexForm(m *Message) {
	if m.Form == nil {
		return
	}
	o := m.Form.AskedIn()
	isLookedUp := o != nil && (o.ID != "" || m.Form.Kind != events.Approval || l.Received(m))
	if isLookedUp && !m.isOver() {
		l.Origins.Add(o, m.Number)
		l.Index.entries.Change(m.Number).Flags |= index.HasOrigin
	}
	if l.Received(m) && m.Form.IsOpen() {
		l.waiting.Add(m.Number)
	}
}

// isOver reports whether a message is a form that is settled and dismissed.
func (m *Message) isOver() bool { return m.Form != nil && m.Dismissed && !m.Form.IsOpen() }

// dropOrigin removes a form that is settled and dismissed from the index of origins.
func dropOrigin(l *Mail, m *Message) {
	if !m.isOver() {
		return
	}
	if o := m.Form.AskedIn(); o != nil {
		l.Origins.Remove(o, m.Number)
	}
}

// indexOpen enters an open form that the agent asked.
func (l *Mail) indexOpen(m *Message) {
	l.asks.add(m)
	l.timers.addForm(m.Number, m.Form)
	l.timers.addReview(m.Number, m.Form)
}

// OpenIn returns the open form in a thread that the agent asked; nil if there is none.
func (l *Mail) OpenIn(thread capabilities.ID) *Message {
	if thread.IsZero() {
		return nil
	}
	n, ok := l.asks.threads[thread]
	if !ok {
		if n, ok = l.Index.entries.FindOpen(thread); !ok {
			return nil
		}
	}
	if m := l.live[n]; m != nil && m.Form != nil && m.Form.IsOpen() && l.Sent(m) {
		return m
	}
	return nil
}

// cancelOpen returns the events that cancel the open forms which the agent asked since a message number. It includes
// those in also.
func (l *Mail) cancelOpen(first uint64, also []capabilities.ID, note string, now capabilities.Time) []events.Event {
	var evs []events.Event
	for n := range l.asks.numbers.From(0) {
		m := l.live[n]
		if m.Number >= first || slices.Contains(also, m.ID()) {
			evs = append(evs, &events.FormCancelled{
				Form: m.ID(), Reason: events.Cancelled, By: l.self, Note: note, Date: now,
			})
		}
	}
	return evs
}

// openAsks has the open forms that the agent asked.
type openAsks struct {
	numbers   index.Numbers
	approvals index.Numbers
	results   map[string]uint64   // by the names that await their answers
	forwards  map[handedOn]uint64 // by their forwards

	threads map[capabilities.ID]uint64 // those in the thread of an earlier form, by that: the newest
}

// handedOn names a forward of an open form that the agent asked, by its forwarder and its grant.
type handedOn struct{ by, via capabilities.ID }

func (o *openAsks) add(m *Message) {
	o.numbers.Add(m.Number)
	if m.Form.Kind == events.Approval {
		o.approvals.Add(m.Number)
	}
	if m.Form.Result != "" {
		o.results[m.Form.Result] = m.Number
	}
	if r := m.Form.ReplyTo; !r.IsZero() {
		o.threads[r] = max(o.threads[r], m.Number)
	}
	o.addForwards(m, m.Form.Forwarded()...)
}

// addForwards enters forwards of a form. One within the node has no grant.
func (o *openAsks) addForwards(m *Message, forwards ...events.FormForwarded) {
	for _, h := range forwards {
		if !h.Via.IsZero() {
			o.forwards[handedOn{h.By, h.Via}] = m.Number
		}
	}
}

func (o *openAsks) remove(m *Message) {
	o.numbers.Remove(m.Number)
	if m.Form.Kind == events.Approval {
		o.approvals.Remove(m.Number)
	}
	if r := m.Form.Result; r != "" && o.results[r] == m.Number {
		delete(o.results, r)
	}
	if r := m.Form.ReplyTo; o.threads[r] == m.Number {
		delete(o.threads, r)
	}
	for _, h := range m.Form.Forwarded() {
		delete(o.forwards, handedOn{h.By, h.Via})
	}
}
