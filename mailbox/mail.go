package mailbox

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Mail holds the messages of a mailbox by number, with the indexes to find them.
type Mail struct {
	self capabilities.ID

	all       []*Message
	byID      numbers
	asked     map[string]uint64 // by the idempotency key of a form that the agent asked
	posted    map[string]uint64 // by the idempotency key of a message that the agent sent
	results   map[string]uint64 // by the name that awaits the answer of an open form
	origins   originIndex
	open      int      // open forms that the agent asked
	approvals []uint64 // open approvals that the agent asked, oldest first
	due       dueHeap
}

func newMail(self capabilities.ID) Mail {
	return Mail{
		self:    self,
		byID:    newNumbers(self.Node),
		asked:   map[string]uint64{},
		posted:  map[string]uint64{},
		results: map[string]uint64{},
	}
}

// All returns all messages by number. The slice and its elements belong to the state.
func (l *Mail) All() []*Message { return l.all }

// Has reports whether a message or form is here.
func (l *Mail) Has(id capabilities.ID) bool { return l.byID.has(id) }

// Sent reports whether the mailbox's agent sent a message.
func (l *Mail) Sent(m *Message) bool { return m.From() == l.self }

// Received reports whether a message was sent or forwarded to the mailbox's agent. A message to itself is both sent
// and received.
func (l *Mail) Received(m *Message) bool { return m.From() != l.self || m.To() == l.self }

// Approvals returns the agent's own open approvals, oldest first.
func (l *Mail) Approvals() []*Message { return l.numbered(l.approvals) }

// HasAsked reports whether the agent has asked a form under an idempotency key.
func (l *Mail) HasAsked(key string) bool {
	_, ok := l.asked[key]
	return ok && key != ""
}

// HasPosted reports whether the agent has sent a message under an idempotency key.
func (l *Mail) HasPosted(key string) bool {
	_, ok := l.posted[key]
	return ok && key != ""
}

// FormsOf returns the forms of an origin by number: those of the same session, of the same run and agent, or with the
// same ID. Forms that are settled and dismissed are left out.
func (l *Mail) FormsOf(o events.Origin) []*Message { return l.numbered(l.origins[keyOf(&o)]) }

// numbered returns the messages with the given numbers.
func (l *Mail) numbered(numbers []uint64) []*Message {
	all := make([]*Message, len(numbers))
	for i, n := range numbers {
		all[i] = l.all[n]
	}
	return all
}

// Find returns a message by its number here, or by the ID of a message, form, promise or resolver. It refuses with
// NO_SUCH_MESSAGE, or with INVALID_ARGUMENT for the zero FormRef.
func (l *Mail) Find(ref capabilities.FormRef) (*Message, error) {
	if ref.IsZero() {
		return nil, parley.Refuse(parley.InvalidArgument, "which message? give its number or id")
	}
	n, ok := ref.Number()
	if !ok {
		return l.FindID(ref.ID())
	}
	if n >= uint64(len(l.all)) {
		return nil, parley.Refuse(parley.NoSuchMessage, "no message %d", n).
			WithHint("parley inbox --all lists the messages")
	}
	return l.all[n], nil
}

// FindID returns the message with an ID, or the form with an ID, promise or resolver. It refuses with NO_SUCH_MESSAGE.
func (l *Mail) FindID(id capabilities.ID) (*Message, error) {
	if m, err := l.byOwnID(id); err == nil {
		return m, nil
	}
	for _, m := range l.all { // too rare for an index
		if m.Form != nil && (m.Form.Promise == id || m.Form.Resolver == id) {
			return m, nil
		}
	}
	return nil, noMessage(id)
}

// byOwnID returns the message or form with an ID.
func (l *Mail) byOwnID(id capabilities.ID) (*Message, error) {
	n, ok := l.byID.get(id)
	if !ok {
		return nil, noMessage(id)
	}
	return l.all[n], nil
}

func noMessage(id capabilities.ID) error {
	return parley.Refuse(parley.NoSuchMessage, "no message %s", id)
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

// form returns the form that an event is about. It fails with ErrNonsense.
func (l *Mail) form(id capabilities.ID) (*Message, error) {
	n, ok := l.byID.get(id)
	if !ok || l.all[n].Form == nil {
		return nil, fmt.Errorf("%w: no form %s", ErrNonsense, id)
	}
	return l.all[n], nil
}

// openForm returns the open form that an event is about. It fails with ErrNonsense.
func (l *Mail) openForm(id capabilities.ID) (*Message, error) {
	m, err := l.form(id)
	if err != nil {
		return nil, err
	}
	if !m.Form.IsOpen() {
		return nil, fmt.Errorf("%w: form %s settled twice", ErrNonsense, id)
	}
	return m, nil
}

// add adds a message at a version of the mailbox. Its number has to be the next one.
func (l *Mail) add(m *Message, version uint64) error {
	if m.Number != uint64(len(l.all)) {
		return fmt.Errorf("%w: message %d after %d messages", ErrNonsense, m.Number, len(l.all))
	}
	if l.byID.has(m.ID()) {
		return fmt.Errorf("%w: message %s twice", ErrNonsense, m.ID())
	}
	m.Changed = version
	l.index(m)
	return nil
}

// index appends a message and enters it in the indexes of all messages.
func (l *Mail) index(m *Message) {
	m.carrier = l.carrierOf(m)
	l.all = append(l.all, m)
	l.byID.put(m.Number, m.ID())
	if m.Form != nil {
		l.origins.add(m, l.Received(m))
	}
}

// indexAsked enters a form that the agent asked in the indexes of such forms.
func (l *Mail) indexAsked(m *Message) {
	f := m.Form
	if f.Key != "" {
		l.asked[f.Key] = m.Number
	}
	if !f.IsOpen() {
		return
	}
	l.open++
	if f.Kind == events.Approval {
		l.approvals = append(l.approvals, m.Number)
	}
	if f.Result != "" {
		l.results[f.Result] = m.Number
	}
	if f.Deadline != 0 {
		heap.Push(&l.due, deadline{at: f.Deadline, number: m.Number})
	}
}

// indexPosted enters a message that the agent sent under its idempotency key.
func (l *Mail) indexPosted(m *Message) {
	if m.Posted.Key != "" {
		l.posted[m.Posted.Key] = m.Number
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
}

// cancelOpen returns the events that cancel the open forms which the agent asked since a message number, and those in
// also.
func (l *Mail) cancelOpen(first uint64, also []capabilities.ID, note string, now capabilities.Time) []events.Event {
	var evs []events.Event
	for _, m := range l.all {
		if m.Form == nil || m.Form.From != l.self || !m.Form.IsOpen() {
			continue
		}
		if m.Number >= first || slices.Contains(also, m.ID()) {
			evs = append(evs, &events.FormCancelled{
				Form: m.ID(), Reason: events.Cancelled, By: l.self, Note: note, Date: now,
			})
		}
	}
	return evs
}

// nextDeadline returns the earliest deadline of an open form. It drops the deadlines of forms that ended.
func (l *Mail) nextDeadline() capabilities.Time {
	for len(l.due) > 0 {
		if l.all[l.due[0].number].Form.IsOpen() {
			return l.due[0].at
		}
		heap.Pop(&l.due)
	}
	return 0
}

// numbers maps the IDs of messages to their numbers. Nearly all IDs are of the mailbox's own node, whose key is left
// out of the map's keys.
type numbers struct {
	node   capabilities.NodeID
	own    map[[16]byte]uint64
	others map[capabilities.ID]uint64
}

func newNumbers(node capabilities.NodeID) numbers {
	return numbers{node: node, own: map[[16]byte]uint64{}, others: map[capabilities.ID]uint64{}}
}

func (n *numbers) get(id capabilities.ID) (uint64, bool) {
	if id.Node == n.node {
		number, ok := n.own[id.ULID]
		return number, ok
	}
	number, ok := n.others[id]
	return number, ok
}

func (n *numbers) has(id capabilities.ID) bool {
	_, ok := n.get(id)
	return ok
}

func (n *numbers) put(number uint64, id capabilities.ID) {
	if id.Node == n.node {
		n.own[id.ULID] = number
	} else {
		n.others[id] = number
	}
}

type deadline struct {
	at     capabilities.Time
	number uint64
}

func (d deadline) compare(o deadline) int {
	return cmp.Or(cmp.Compare(d.at, o.at), cmp.Compare(d.number, o.number))
}

// dueHeap has the earliest deadline on top.
type dueHeap []deadline

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }

func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *dueHeap) Push(x any) { *h = append(*h, x.(deadline)) }

func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
