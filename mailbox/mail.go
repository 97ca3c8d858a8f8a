package mailbox

import (
	"cmp"
	"fmt"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/due"
	"parley/mailbox/index"
	"parley/mailbox/origin"
	"parley/mailbox/table"
)

// Mail finds the messages of a mailbox, and holds those that it has to do with: see State.holds.
type Mail struct {
	self capabilities.ID

	index   index.Index
	live    map[uint64]*Message // held, by number
	lent    map[uint64]*Message // the caller's: see Lend
	reached map[uint64]capabilities.Ref

	asked     table.Digests     // forms that the agent asked, by their idempotency keys
	posted    table.Digests     // messages that the agent sent, by their idempotency keys
	results   map[string]uint64 // by the name that awaits the answer of an open form
	origins   origin.Index
	refs      heldRefs
	recent    index.Changes
	waiting   index.Numbers       // forms that the agent received, until they end
	asks      index.Numbers       // forms that the agent asked, until they end
	forwards  map[handedOn]uint64 // open forms that the agent asked, by their forwards
	open      int                 // open forms that the agent asked
	approvals []uint64            // open approvals that the agent asked, oldest first
	due       due.Queue[timer]
	snoozed   map[uint64]capabilities.Time // until when, by number
	drafts    int                          // forms with a draft
	texts     textDrafts
	tally     *tally // nil if it is not known
	marked    bool   // messages were snoozed, restored or read, or a draft was saved
}

// pageLength is the number of messages in a page of the index.
const pageLength = 1 << 10

func newMail(self capabilities.ID) Mail {
	return Mail{
		self:    self,
		index:   index.New(self.Node, pageLength),
		live:    map[uint64]*Message{},
		results: map[string]uint64{}, forwards: map[handedOn]uint64{},
		refs:  newHeldRefs(),
		tally: &tally{},
	}
}

// SetPageLength sets the number of messages in a page of the index, and of entries in a page of keys. It must be called
// before the first message. It is for tests.
func (l *Mail) SetPageLength(n int) {
	l.index = index.New(l.self.Node, n)
	l.asked.SetLength(n)
	l.posted.SetLength(n)
}

// Len returns the number of messages. Their numbers begin at 0.
func (l *Mail) Len() uint64 { return l.index.Len() }

// Has reports whether a message or form is here. It fails with Absent.
func (l *Mail) Has(id capabilities.ID) (bool, error) {
	_, ok, err := l.NumberOf(id)
	return ok, err
}

// NumberOf returns the number of the message or form with an ID. It fails with Absent.
func (l *Mail) NumberOf(id capabilities.ID) (n uint64, ok bool, err error) {
	n, ok, pages := l.index.Find(id)
	if !ok && len(pages) > 0 {
		return 0, false, l.absent(pages...)
	}
	return n, ok, nil
}

// Sent reports whether the mailbox's agent sent a message.
func (l *Mail) Sent(m *Message) bool { return m.From() == l.self }

// Received reports whether a message was sent or forwarded to the mailbox's agent. A message to itself is both sent
// and received.
func (l *Mail) Received(m *Message) bool { return m.From() != l.self || m.To() == l.self }

// Approvals returns the agent's own open approvals, oldest first.
func (l *Mail) Approvals() []*Message {
	all := make([]*Message, len(l.approvals))
	for i, n := range l.approvals {
		all[i] = l.live[n]
	}
	return all
}

// Unanswered returns the number of open forms that the agent received.
func (l *Mail) Unanswered() int { return l.waiting.Len() }

// HasAsked reports whether the agent has asked a form under an idempotency key. It fails with Absent.
func (l *Mail) HasAsked(key string) (bool, error) {
	_, ok, err := byKey(&l.asked, key)
	return ok, err
}

// HasPosted reports whether the agent has sent a message under an idempotency key. It fails with Absent.
func (l *Mail) HasPosted(key string) (bool, error) {
	_, ok, err := byKey(&l.posted, key)
	return ok, err
}

// byKey returns the number of the message with an idempotency key, and whether there is one. The key "" is none.
func byKey(keys *table.Digests, key string) (n uint64, ok bool, err error) {
	if key == "" {
		return 0, false, nil
	}
	n, ok, err = keys.Get(index.DigestKey(key))
	return n, ok, absentTable(err)
}

// askedBy returns the form that the agent asked under an idempotency key; nil if there is none.
func (l *Mail) askedBy(key string) (*Message, error) {
	n, ok, err := byKey(&l.asked, key)
	if err != nil || !ok {
		return nil, err
	}
	m, err := l.at(n)
	if err != nil || m.Form == nil || m.Form.Key != key {
		return nil, err
	}
	return m, nil
}

// postedBy returns the message that the agent sent under an idempotency key; nil if there is none.
func (l *Mail) postedBy(key string) (*Message, error) {
	n, ok, err := byKey(&l.posted, key)
	if err != nil || !ok {
		return nil, err
	}
	m, err := l.at(n)
	if err != nil || m.Posted == nil || m.Posted.Key != key {
		return nil, err
	}
	return m, nil
}

// FormsOf returns the numbers of the forms of an origin, in order: those of the same session, of the same run and
// agent, or with the same ID. Forms that are settled and dismissed are left out.
func (l *Mail) FormsOf(o events.Origin) []uint64 { return l.origins.Of(&o) }

// Find returns a message by its number here, or by the ID of a message, form, promise or resolver. It refuses with
// NO_SUCH_MESSAGE, or with INVALID_ARGUMENT for the zero FormRef. It fails with Absent, as all that return messages.
func (l *Mail) Find(ref capabilities.FormRef) (*Message, error) {
	if ref.IsZero() {
		return nil, parley.Refuse(parley.InvalidArgument, "which message? give its number or id")
	}
	n, ok := ref.Number()
	if !ok {
		return l.FindID(ref.ID())
	}
	if n >= l.Len() {
		return nil, noNumber(n)
	}
	return l.at(n)
}

// number returns the number of the message that Find returns. Of most messages it needs no more than the index.
func (l *Mail) number(ref capabilities.FormRef) (uint64, error) {
	if n, ok := ref.Number(); ok && n < l.Len() {
		return n, nil
	}
	if !ref.IsZero() {
		if n, ok, err := l.NumberOf(ref.ID()); ok || err != nil {
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
	numbers, pages := l.index.FindOther(id)
	for _, n := range numbers {
		m, err := l.at(n)
		if err != nil || m.Form.Promise == id || m.Form.Resolver == id {
			return m, err
		}
	}
	if len(pages) > 0 {
		return nil, l.absent(pages...)
	}
	return nil, noMessage(id)
}

// byOwnID returns the message or form with an ID.
func (l *Mail) byOwnID(id capabilities.ID) (*Message, error) {
	n, ok, err := l.NumberOf(id)
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

// CheckRequest refuses with NOT_A_REQUEST a message that is not a request.
func (l *Mail) CheckRequest(ref capabilities.FormRef) error {
	m, err := l.Find(ref)
	if err != nil {
		return err
	}
	if t := m.Type(); t != "request" {
		return parley.Refuse(parley.NotARequest, "message %d is not a request (is %q)", m.Number, t)
	}
	return nil
}

// Pending returns the error for a form to which the agent's answer has been on its way since a time.
func (l *Mail) Pending(form capabilities.ID, since capabilities.Time) error {
	m, err := l.FindFormID(form)
	if err != nil {
		return err
	}
	return pending(m, since)
}

// form returns the form that an event is about. It fails with ErrNonsense, or with Absent.
func (l *Mail) form(id capabilities.ID) (*Message, error) {
	n, ok, err := l.NumberOf(id)
	if err != nil {
		return nil, err
	}
	if !ok || !l.index.At(n).Is(index.Form) {
		return nil, fmt.Errorf("%w: no form %s", ErrNonsense, id)
	}
	return l.at(n)
}

// openForm returns the open form that an event is about. It fails with ErrNonsense.
func (l *Mail) openForm(id capabilities.ID) (*Message, error) {
	n, ok := l.index.FindOpen(id)
	if !ok || !l.index.At(n).IsOpen() {
		return nil, fmt.Errorf("%w: no form %s, or it settled before", ErrNonsense, id)
	}
	return l.live[n], nil
}

// add adds a message that came at a time, at a version of the mailbox. Its number has to be the next one.
func (l *Mail) add(m *Message, version uint64, came capabilities.Time) error {
	if m.Number != l.Len() {
		return fmt.Errorf("%w: message %d after %d messages", ErrNonsense, m.Number, l.Len())
	}
	switch here, err := l.Has(m.ID()); {
	case err != nil:
		return err
	case here:
		return fmt.Errorf("%w: message %s twice", ErrNonsense, m.ID())
	}
	if err := l.setReached(m); err != nil {
		return err
	}
	e := index.Entry{ID: l.index.Digest(m.ID()), First: uint32(version)}
	made := []uint64{m.ID().ULID.Time()}
	if m.Form != nil {
		e.Flags |= index.Form
		made = append(made, m.Form.Promise.ULID.Time(), m.Form.Resolver.ULID.Time())
		e.Promise, e.Resolver = uint32(l.index.Digest(m.Form.Promise)), uint32(l.index.Digest(m.Form.Resolver))
	}
	if l.Sent(m) {
		e.Flags |= index.Sent
		if l.refTo(m) != agentRef(m.To()) {
			e.Flags |= index.ByGrant
		}
	}
	if l.Received(m) {
		e.Flags |= index.Received
	}
	l.index.Add(e, uint64(came), made...)
	l.tally.add(&e, 1)
	l.live[m.Number] = m
	l.touch(m, version)
	l.refs.addMessage(l, m)
	l.indexForm(m)
	return nil
}

// touch notes a change of a message at a version of the mailbox.
func (l *Mail) touch(m *Message, version uint64) {
	m.Changed = version
	l.index.Change(m.Number).Changed = uint32(version)
	l.recent.Add(version, m.Number)
}

// dismiss notes that a message is dismissed.
func (l *Mail) dismiss(n, version uint64) {
	l.endSnooze(n)
	l.change(n, func(e *index.Entry) {
		e.Flags |= index.Dismissed
		e.Changed = uint32(version)
	})
	l.recent.Add(version, n)
	if m, err := l.at(n); err == nil {
		m.Dismissed, m.Changed = true, version
		l.dropOrigin(m)
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
	l.change(m.Number, func(e *index.Entry) { e.Settled = uint32(version) })
	if m.Form.Draft != nil {
		m.Form.Draft = nil
		l.drafts--
	}
	l.touch(m, version)
	l.dropOrigin(m)
	if l.Received(m) {
		l.waiting.Remove(m.Number)
	}
	if l.Sent(m) {
		l.asks.Remove(m.Number)
		l.unindexAsked(m)
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
		l.origins.Add(o, m.Number)
		l.index.Change(m.Number).Flags |= index.HasOrigin
	}
	if l.Received(m) && m.Form.IsOpen() {
		l.waiting.Add(m.Number)
	}
}

// isOver reports whether a message is a form that is settled and dismissed.
func (m *Message) isOver() bool { return m.Form != nil && m.Dismissed && !m.Form.IsOpen() }

// dropOrigin removes a form that is settled and dismissed from the index of origins.
func (l *Mail) dropOrigin(m *Message) {
	if !m.isOver() {
		return
	}
	if o := m.Form.AskedIn(); o != nil {
		l.origins.Remove(o, m.Number)
	}
}

// indexAsked enters a form that the agent asked in the indexes of such forms.
func (l *Mail) indexAsked(m *Message) {
	if m.Form.Key != "" {
		l.asked.Put(index.DigestKey(m.Form.Key), m.Number)
	}
	l.indexOpen(m)
}

// indexOpen enters an open form that the agent asked.
func (l *Mail) indexOpen(m *Message) {
	f := m.Form
	l.open++
	l.asks.Add(m.Number)
	if f.Kind == events.Approval {
		l.approvals = append(l.approvals, m.Number)
	}
	if f.Result != "" {
		l.results[f.Result] = m.Number
	}
	l.indexForwards(m, f.Forwarded...)
	l.addTimers(m)
}

// indexPosted enters a message that the agent sent under its idempotency key.
func (l *Mail) indexPosted(m *Message) {
	if m.Posted.Key != "" {
		l.posted.Put(index.DigestKey(m.Posted.Key), m.Number)
	}
}

// unindexAsked removes a form that the agent asked from the indexes of open forms. Its deadline goes when it is due.
func (l *Mail) unindexAsked(m *Message) {
	l.open--
	if m.Form.Kind == events.Approval {
		l.approvals = slices.DeleteFunc(l.approvals, func(n uint64) bool { return n == m.Number })
	}
	if r := m.Form.Result; r != "" && l.results[r] == m.Number {
		delete(l.results, r)
	}
	for _, h := range m.Form.Forwarded {
		delete(l.forwards, handedOn{h.By, h.Via})
	}
}

// cancelOpen returns the events that cancel the open forms which the agent asked since a message number. It includes
// those in also.
func (l *Mail) cancelOpen(first uint64, also []capabilities.ID, note string, now capabilities.Time) []events.Event {
	var evs []events.Event
	for n := range l.asks.From(0) {
		m := l.live[n]
		if m.Number >= first || slices.Contains(also, m.ID()) {
			evs = append(evs, &events.FormCancelled{
				Form: m.ID(), Reason: events.Cancelled, By: l.self, Note: note, Date: now,
			})
		}
	}
	return evs
}

// isOpen reports whether a message is a form that has not ended. Such forms are in memory.
func (l *Mail) isOpen(n uint64) bool {
	m := l.live[n]
	return m != nil && m.Form != nil && m.Form.IsOpen()
}

// timer is an item of due.
type timer struct {
	number uint64 // of the message
	kind   timerKind
	step   uint8 // of the form's route, which begins at 1
}

type timerKind uint8

const (
	expires   timerKind = iota // a form's deadline
	wakes                      // a snoozed message comes back
	reminds                    // a reminder of a form
	escalates                  // a form is escalated
)

// nextDeadline returns the earliest time of a timer. It drops timers that do not matter any more.
func (l *Mail) nextDeadline() capabilities.Time {
	for {
		first, ok := l.due.First()
		if !ok || l.isStanding(first) {
			return first.At
		}
		l.due.Drop()
	}
}

// passed returns the numbers of the messages with a timer of a kind whose time has come. The earliest is first, and
// each is there once.
func (l *Mail) passed(kind timerKind, now capabilities.Time) []uint64 {
	past := slices.DeleteFunc(l.due.Until(now), func(t due.Item[timer]) bool { return t.Key.kind != kind || !l.isStanding(t) })
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
