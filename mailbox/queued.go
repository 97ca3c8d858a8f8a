package mailbox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
)

// Mail to a promise. An agent may write to the name of a request that is not answered yet, and use it. What it sends is queued in its own
// mailbox, which is the home of the request, and goes on when the request is answered:
//
//	fae requests a worker of its host, as helper   FormRequested 0
//	fae sends helper "begin with the tests"        MailQueued, MessagePosted 1 to the promise of 0
//	fae asks helper for a report                   MailQueued, FormRequested 2 to the promise of 0
//	the host resolves 0 to worker                  FormAnswered 0, NameBound helper
//	                                               QueuedSent 1 to worker
//	                                               QueuedSent 2 to worker
//
// What is sent has its number, ID and key from the beginning, so all that refers to it holds before and after. Each goes on by an event of
// its own, the oldest first and before anything that the agent does afterwards: so what one by one may do is checked one by one, as of
// then. If the request ends otherwise, or its answer may not be used so, what was queued ends with that as its reason.

// Bounds of what is queued behind one request, and of an agent in all.
const (
	maxQueued         = 64
	maxQueuedBytes    = 1 << 20
	maxAllQueued      = 256
	maxAllQueuedBytes = 4 << 20
	maxEndedQueued    = 64 // uses that have ended, which are kept
)

// MailQueue has what the agent has queued behind its requests.
type MailQueue struct {
	next   *events.MailQueued           // of the message whose event follows; nil for none
	behind map[capabilities.ID][]uint64 // messages and forms by their requests, in their order
	uses   []QueuedUse                  // those that have not ended, and the last that have, in their order
}

// QueuedUse is a use of what a request will be answered with.
type QueuedUse struct {
	*events.UseQueued
	Ended *events.QueuedUseEnded // nil while it is queued, or goes on
}

// DecodeMsgpack implements msgpack.CustomDecoder. It makes what is embedded: where that is nil, the library starts a goroutine that makes such
// values for ever.
func (u *QueuedUse) DecodeMsgpack(d *msgpack.Decoder) error {
	type plain QueuedUse
	u.UseQueued = new(events.UseQueued)
	return d.Decode((*plain)(u))
}

// IsQueued reports whether the message waits for the answer of a request.
func (m *Message) IsQueued() bool {
	return m.Behind != nil && m.To() == m.Behind.Promise && m.Refused == "" && (m.Form == nil || m.Form.IsOpen())
}

// Behind returns the messages and forms that wait for the answer of a request, in their order.
func (l *Mail) Behind(request capabilities.ID) []*Message {
	numbers := l.queue.behind[request]
	all := make([]*Message, len(numbers))
	for i, n := range numbers {
		all[i] = l.live[n]
	}
	return all
}

// QueuedUses returns the uses of what requests will be answered with that have not ended, and the last that have. The slice belongs to
// the state.
func (l *Mail) QueuedUses() []QueuedUse { return l.queue.uses }

// FindQueuedUse returns a queued use by its ID or, unless that is "", the newest by its key; nil if there is none.
func (l *Mail) FindQueuedUse(use capabilities.ID, key string) *QueuedUse {
	key = capabilities.Normal(key)
	for i := range slices.Backward(l.queue.uses) {
		if u := &l.queue.uses[i]; u.Use == use || key != "" && capabilities.Normal(u.Key) == key {
			return u
		}
	}
	return nil
}

// requestOf returns a request that something is queued behind.
func requestOf(l *Mail, id capabilities.ID) *Message {
	n, ok := l.Index.entries.FindOpen(id)
	if !ok {
		return nil
	}
	return l.live[n]
}

// NextQueued returns the oldest message or form that can go on, because its request has ended, and whether there is one.
func (l *Mail) NextQueued() (number uint64, ok bool) {
	for request, numbers := range l.queue.behind {
		if m := requestOf(l, request); (m == nil || !m.Form.IsOpen()) && (!ok || numbers[0] < number) {
			number, ok = numbers[0], true
		}
	}
	return number, ok
}

// DueUses returns the uses that can go on, because their requests have ended: of each request the oldest that has not ended.
func (l *Mail) DueUses() (due []QueuedUse) {
	var seen []capabilities.ID
	for _, u := range l.queue.uses {
		if u.Ended != nil || slices.Contains(seen, u.Request) {
			continue
		}
		seen = append(seen, u.Request)
		if m := requestOf(l, u.Request); m == nil || !m.Form.IsOpen() {
			due = append(due, u)
		}
	}
	return due
}

// dueQueued returns how much of the queue can go on.
func dueQueued(l *Mail) (n int) {
	for request, numbers := range l.queue.behind {
		if m := requestOf(l, request); m == nil || !m.Form.IsOpen() {
			n += len(numbers)
		}
	}
	return n + len(l.DueUses())
}

// isBehind reports whether anything waits for the answer of a request.
func (q *MailQueue) isBehind(request capabilities.ID) bool {
	return len(q.behind[request]) > 0 || slices.ContainsFunc(q.uses, func(u QueuedUse) bool { return u.Request == request && u.Ended == nil })
}

// PromisedAt returns the open request for whose answer a path stands. It refuses with UNKNOWN_NAME any other.
func PromisedAt(s *State, path string) (*Message, error) {
	return promisedAt(s, path, unknownName(path))
}

// promisedAt returns the open request for whose answer a path stands, if the error is that nothing else has its name. Otherwise it returns
// the error.
func promisedAt(s *State, path string, err error) (*Message, error) {
	if code := parley.CodeOf(err); code != parley.UnknownRecipient && code != parley.UnknownName {
		return nil, err
	}
	p, notPath := capabilities.ParsePath(path)
	if notPath != nil {
		return nil, err
	}
	n, awaited := s.Mail.asks.results[capabilities.Normal(p[0])]
	if _, bound, absent := s.Names.get(p[0]); bound || absent != nil || !awaited {
		return nil, cmp.Or(absent, err)
	}
	return s.Mail.live[n], nil
}

// queueBehind returns the event before that of a message, form or use of some bytes that waits for the answer of a request. It refuses with
// TOO_LARGE more than the queue takes.
func queueBehind(s *State, id capabilities.ID, request *Message, path string, size int64, now capabilities.Time) (*events.MailQueued, error) {
	type amount struct {
		n     int
		bytes int64
	}
	all, here := amount{1, size}, amount{1, size}
	count := func(of capabilities.ID, size int64) {
		all = amount{all.n + 1, all.bytes + size}
		if of == request.ID() {
			here = amount{here.n + 1, here.bytes + size}
		}
	}
	for of, numbers := range s.Mail.queue.behind {
		for _, n := range numbers {
			count(of, s.Mail.live[n].Size())
		}
	}
	for _, u := range s.Mail.queue.uses {
		if u.Ended == nil {
			count(u.Request, sizeOfUse(u.UseQueued))
		}
	}
	if here.n > maxQueued || here.bytes > maxQueuedBytes || all.n > maxAllQueued || all.bytes > maxAllQueuedBytes {
		return nil, parley.Refuse(parley.TooLarge, "too much waits for the answer of form %d: %d messages, forms and uses at most, or %d KiB, and %d of all forms, or %d KiB",
			request.Number, maxQueued, maxQueuedBytes>>10, maxAllQueued, maxAllQueuedBytes>>10).WithHint("parley cancel NUMBER ends one of them")
	}
	return &events.MailQueued{Message: id, Request: request.ID(), Promise: request.Form.Promise, Path: path, Date: now}, nil
}

func sizeOfUse(e *events.UseQueued) int64 {
	return int64(messageOverhead + len(e.Path) + len(e.Verb) + len(e.Key) + e.Input.Extent().Bytes)
}

// answerAt returns what a request was answered with, at a path that begins with its name. It refuses with CANCELLED a request that ended
// otherwise, and with UNKNOWN_RECIPIENT a path that leads nowhere.
func answerAt(l *Mail, request capabilities.ID, path string) (capabilities.Value, error) {
	gone := func(format string, args ...any) error { return parley.Refuse(parley.Cancelled, format, args...) }
	m := requestOf(l, request)
	if m == nil {
		return capabilities.Value{}, gone("the request whose answer it was for is not here")
	}
	if e := m.Form.Ended; e != nil {
		why := ""
		if e.Note != "" {
			why = ": " + parley.Quoted(parley.Shown(e.Note, 80), 80)
		}
		return capabilities.Value{}, gone("form %d, whose answer it was for, was %s%s", m.Number, endWords(e.Reason), why)
	}
	p, err := capabilities.ParsePath(path)
	if err == nil {
		var v capabilities.Value
		if v, err = below(m.Form.value(m.Form.visibleValues(l.self)), p, p[1:]); err == nil {
			return v, nil
		}
	}
	return capabilities.Value{}, parley.Refuse(parley.UnknownRecipient, "form %d was answered, and its answer has nothing at %s", m.Number, parley.Quoted(path, 80))
}

func endWords(r events.Reason) string {
	if r == events.Expired {
		return "not answered in time"
	}
	return string(r)
}

// SendQueued sends a message or form that waits for the answer of a request which has ended, or ends it with the reason why it cannot
// go on. The result has no effect for any other.
type SendQueued struct{ Number uint64 }

func (c SendQueued) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	m := s.Mail.live[c.Number]
	if m == nil || !m.IsQueued() {
		return nil, nil
	}
	if request := requestOf(&s.Mail, m.Behind.Request); request != nil && request.Form.IsOpen() {
		return nil, nil
	}
	sent, grants, err := c.sent(s, m, now, ids)
	if _, absent := err.(*PagedOut); absent {
		return nil, err
	}
	if err != nil {
		return []events.Event{m.unsent(s.ID, "not sent: "+parley.AsError(err).Message, now)}, nil
	}
	return append([]events.Event{sent}, grantEvents(grants)...), nil
}

func (c SendQueued) sent(s *State, m *Message, now capabilities.Time, ids IDs) (*events.QueuedSent, []capabilities.Grant, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, nil, err
	}
	v, err := answerAt(&s.Mail, m.Behind.Request, m.Behind.Path)
	if err != nil {
		return nil, nil, err
	}
	ref, err := agentIn(m.Behind.Path, v)
	if err != nil {
		return nil, nil, err
	}
	use := capabilities.UseSend
	if m.Form != nil {
		use = capabilities.UseAsk
	}
	if err := s.permit(ref, use, now); err != nil {
		return nil, nil, err
	}
	e := &events.QueuedSent{Message: m.ID(), To: ref.Target, Via: ref.Grant, Facet: ref.Facet, Date: now}
	if m.Form != nil {
		return e, nil, nil
	}
	d := delegation{s: s, to: ref.Target, message: m.ID(), now: now, ids: ids}
	spans, err := d.given(slices.Clone(m.Posted.Text))
	if err == nil && slices.ContainsFunc(spans, func(sp events.Span) bool { return sp.Edge != "" }) {
		e.Text = spans
	}
	return e, d.grants, err
}

// unsent returns the event that ends a message or form which was not sent.
func (m *Message) unsent(by capabilities.ID, why string, now capabilities.Time) events.Event {
	why = parley.Shown(why, maxRefused)
	if m.Form != nil {
		return &events.FormCancelled{Form: m.ID(), Reason: events.Cancelled, By: by, Note: why, Date: now}
	}
	return &events.QueuedEnded{Message: m.ID(), Why: why, Date: now}
}

// QueueUse has the agent use what a request will be answered with, once it is. Name is a path that begins with the name that awaits the
// answer. A use with the ID or the key of one that is queued is that one.
type QueueUse struct {
	Use   capabilities.ID
	Name  string
	Verb  string
	Input map[string]capabilities.Value
	Key   string
}

func (c QueueUse) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if known := s.Mail.FindQueuedUse(c.Use, c.Key); known != nil {
		if capabilities.Normal(known.Path) != capabilities.Normal(c.Name) || known.Verb != c.Verb || !known.Input.Equal(capabilities.Record(c.Input)) {
			return nil, parley.Refuse(parley.InvalidArgument, "the key %s was used for another use", parley.Quoted(c.Key, 80)).WithHint("give each use a key of its own")
		}
		return nil, nil
	}
	request, err := promisedAt(s, c.Name, unknownName(c.Name))
	if err != nil {
		return nil, err
	}
	input := capabilities.Record(c.Input)
	if err := cmp.Or(checkText("a key", c.Key, maxKey), checkText("a verb", c.Verb, maxKey), input.Check()); err != nil {
		return nil, err
	}
	if c.Verb == "" || input.Has(capabilities.Value.IsRef) {
		return nil, parley.Refuse(parley.InvalidArgument, "a use says what is to be done, with data alone")
	}
	e := &events.UseQueued{Use: c.Use, Request: request.ID(), Promise: request.Form.Promise, Path: c.Name, Verb: c.Verb, Input: input, Key: c.Key, Date: now}
	if n := sizeOfUse(e); n > maxMessage {
		return nil, parley.Refuse(parley.TooLarge, "a use of %d bytes is over the limit of %d", n, maxMessage)
	}
	_, err = queueBehind(s, c.Use, request, c.Name, sizeOfUse(e), now)
	return []events.Event{e}, err
}

// UseOf returns the reference that a queued use goes on with. It refuses with the reason why it cannot go on.
func (n Namespace) UseOf(u QueuedUse, now capabilities.Time) (capabilities.Ref, error) {
	if err := n.s.Profile.checkActive(); err != nil {
		return capabilities.Ref{}, err
	}
	v, err := answerAt(&n.s.Mail, u.Request, u.Path)
	if err != nil {
		return capabilities.Ref{}, err
	}
	ref, err := resourceIn(u.Path, v)
	if err != nil {
		return ref, err
	}
	return ref, n.s.permit(ref, capabilities.UseRead, now)
}

// EndQueuedUse records how a queued use has ended. It has no effect for one that has ended before.
type EndQueuedUse struct {
	Use capabilities.ID
	How events.UseEnd
	Err *parley.Error // nil if it is done
}

func (c EndQueuedUse) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	u := s.Mail.FindQueuedUse(c.Use, "")
	if u == nil || u.Ended != nil {
		return nil, nil
	}
	return []events.Event{u.end(c.How, c.Err, now)}, nil
}

func (u *QueuedUse) end(how events.UseEnd, why *parley.Error, now capabilities.Time) events.Event {
	e := &events.QueuedUseEnded{Use: u.Use, How: how, Date: now}
	if why != nil {
		e.Code, e.Text = string(why.Code), parley.Shown(why.Message, maxUseWords)
	}
	return e
}

// CancelQueued ends a message or a use that waits for the answer of a request, and was not sent. It refuses with NO_SUCH_MESSAGE
// anything else.
type CancelQueued struct {
	Message capabilities.FormRef
	Reason  string
}

func (c CancelQueued) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := checkText("a reason", c.Reason, maxReason); err != nil {
		return nil, err
	}
	why := "cancelled"
	if c.Reason != "" {
		why += ": " + c.Reason
	}
	if u := s.Mail.FindQueuedUse(c.Message.ID(), ""); !c.Message.ID().IsZero() && u != nil {
		request := requestOf(&s.Mail, u.Request)
		if u.Ended != nil || request == nil || !request.Form.IsOpen() {
			return nil, parley.Refuse(parley.NoSuchMessage, "the use is not queued any more").WithHint("parley use NAME lists the last uses")
		}
		return []events.Event{u.end(events.UseDenied, parley.Refuse(parley.Cancelled, "%s", why), now)}, nil
	}
	m, err := s.Mail.Find(c.Message)
	if err != nil {
		return nil, err
	}
	if m.Form != nil || !m.IsQueued() {
		return nil, parley.Refuse(parley.NotAForm, "message %d is not a form, and is not queued", m.Number)
	}
	return []events.Event{m.unsent(s.ID, why, now)}, nil
}

// take returns how the message with an ID is queued; nil for one that is not.
func (q *MailQueue) take(message capabilities.ID) *events.MailQueued {
	if q.next == nil {
		return nil
	}
	e := q.next
	if q.next = nil; e.Message != message {
		return nil
	}
	return e
}

// add enters a message in the queue, if it is queued.
func (q *MailQueue) add(m *Message) {
	if !m.IsQueued() {
		return
	}
	if q.behind == nil {
		q.behind = map[capabilities.ID][]uint64{}
	}
	q.behind[m.Behind.Request] = append(q.behind[m.Behind.Request], m.Number)
}

// unqueue takes a message out of the queue, and lets go of its request if nothing else waits for that.
func (f fold) unqueue(m *Message) {
	q := &f.Mail.queue
	if m.Behind == nil || !slices.Contains(q.behind[m.Behind.Request], m.Number) {
		return
	}
	left := slices.DeleteFunc(slices.Clone(q.behind[m.Behind.Request]), func(n uint64) bool { return n == m.Number })
	if q.behind[m.Behind.Request] = left; len(left) == 0 {
		delete(q.behind, m.Behind.Request)
	}
	f.letGo(m.Behind.Request)
}

func (f fold) letGo(request capabilities.ID) {
	if m := requestOf(&f.Mail, request); m != nil {
		f.retire(m)
	}
}

// queued returns the message that an event sends or ends. It fails with ErrNonsense for one that is not queued.
func (f fold) queued(id capabilities.ID) (*Message, error) {
	n, ok := f.Mail.Index.entries.FindOpen(id)
	if !ok || f.Mail.live[n] == nil || !f.Mail.live[n].IsQueued() {
		return nil, nonsenseQueued(id)
	}
	return f.Mail.live[n], nil
}

// enterQueued notes that a new message waits for the answer of a request.
func (f fold) enterQueued(m *Message) error {
	if request := requestOf(&f.Mail, m.Behind.Request); request == nil || request.Form == nil || !request.Form.IsOpen() || m.To() != request.Form.Promise {
		return nonsenseQueued(m.ID())
	}
	f.Mail.Index.entries.Note(m.Number, f.Version-1)
	f.Mail.queue.add(m)
	return nil
}

func queuedSent(f fold, e *events.QueuedSent) error {
	m, err := f.queued(e.Message)
	if err != nil {
		return err
	}
	f.unqueue(m)
	m.sendQueued(e)
	f.Mail.Index.entries.Note(m.Number, f.Version)
	f.Grants.countUse(e.Via)
	f.Mail.Index.change(m.Number, func(entry *index.Entry) {
		if m.refTo(f.ID) != agentRef(e.To) {
			entry.Flags |= index.ByGrant
		}
		if f.Mail.Received(m) {
			entry.Flags |= index.Received
		}
		if m.Posted != nil && e.To != f.ID {
			entry.SetRecipient(f.Mail.Index.entries.Digest(e.To))
		}
	})
	f.Mail.refs.addMessage(&f.Mail, m)
	f.Mail.touch(m, f.Version)
	f.Grants.addReply(e.To, e.Message, e.Date)
	defer f.retire(m)
	if m.Form != nil {
		if f.Mail.Received(m) {
			f.Mail.waiting.Add(m.Number)
		}
		f.enqueueCopy(m.Form, e.To)
		return nil
	}
	if e.To == f.ID && f.Runs.HasProgram() && !f.Profile.Archived {
		f.Runs.enqueue(m)
		f.shownChanged()
	}
	f.Outbox.enqueue(events.OutboxCopy, e.Message, e.To)
	return nil
}

// sendQueued gives a queued message its recipient, whether in the state or made again. The events before stay as they are.
func (m *Message) sendQueued(e *events.QueuedSent) {
	if m.Posted != nil {
		p := *m.Posted
		p.To, p.Via, p.Facet = e.To, e.Via, e.Facet
		if e.Text != nil {
			p.Text = e.Text
		}
		m.Posted = &p
		return
	}
	to := func(asked *events.FormRequested) *events.FormRequested {
		sent := *asked
		sent.To, sent.Via, sent.Facet = e.To, e.Via, events.Narrowed(e.Facet)
		return &sent
	}
	m.Form.FormRequested, m.Form.Holders = to(m.Form.FormRequested), []capabilities.ID{e.To}
	if way := m.Form.amended.part; way != nil {
		m.Form.amended.part = &amended{last: way.last, asked: to(way.asked), before: to(way.before)}
	}
}

func queuedEnded(f fold, e *events.QueuedEnded) error {
	m, err := f.queued(e.Message)
	if err != nil || m.Form != nil {
		return cmp.Or(err, nonsenseQueued(e.Message))
	}
	m.Refused = e.Why
	f.unqueue(m)
	delete(f.Mail.acks, m.Number)
	f.Mail.Index.entries.Note(m.Number, f.Version)
	f.Mail.touch(m, f.Version)
	f.retire(m)
	return nil
}

func useQueued(f fold, e *events.UseQueued) error {
	if request := requestOf(&f.Mail, e.Request); request == nil || request.Form == nil || !request.Form.IsOpen() {
		return nonsenseQueued(e.Use)
	}
	f.Mail.queue.uses = append(f.Mail.queue.uses, QueuedUse{UseQueued: e})
	return nil
}

func queuedUseEnded(f fold, e *events.QueuedUseEnded) error {
	u := f.Mail.FindQueuedUse(e.Use, "")
	if u == nil || u.Ended != nil {
		return nonsenseQueued(e.Use)
	}
	u.Ended = e
	f.letGo(u.Request)
	uses := f.Mail.queue.uses
	ended := 0
	for i := range slices.Backward(uses) {
		if uses[i].Ended == nil {
			continue
		}
		if ended++; ended > maxEndedQueued {
			f.Mail.queue.uses = slices.Delete(slices.Clone(uses), i, i+1)
			break
		}
	}
	return nil
}

// restore fills a queue from a snapshot. The messages are in memory.
func (q *MailQueue) restore(l *Mail, uses []QueuedUse) error {
	for _, n := range slices.Sorted(maps.Keys(l.live)) {
		q.add(l.live[n])
	}
	for _, u := range uses {
		if u.UseQueued == nil {
			return nonsenseQueued(capabilities.ID{})
		}
	}
	q.uses = uses
	return nil
}

func nonsenseQueued(id capabilities.ID) error {
	return fmt.Errorf("%w: %s is not queued, or for no open request", ErrNonsense, id)
}
