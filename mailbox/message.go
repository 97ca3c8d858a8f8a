package mailbox

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
	"parley/mailbox/text"
)

// Message is a message that was received or sent. Either Form or Posted is set.
type Message struct {
	Number    uint64
	Changed   uint64 // the mailbox's version after the last event about it
	Dismissed bool
	Refused   string // of a message that was sent: why its recipient refused it
	Form      *Form
	Posted    *events.MessagePosted
	Receipts  []Receipt                 // by their states; none of a form that has ended
	Unreached []events.MessageUnreached // whom a message to several or to a group did not reach
	Repeats   []capabilities.ID         // of what a group has passed on: the further groups by which it came
	Members   []events.MemberReported   // how far a message to a group has come with its members, one for each
	Counts    []events.MembersCounted   // with how many of them, one for each group that counts them

	Behind *events.MailQueued // of one that is, or was, for what a request will be answered with; nil for any other

	// Of a reply to a party that was reached by a grant, the reference by which it was reached; nil for any other.
	reached *capabilities.Ref
}

// ID returns the ID of the message, or of its form.
func (m *Message) ID() capabilities.ID {
	if m.Form != nil {
		return m.Form.ID
	}
	return m.Posted.Message
}

// From returns the sender of the message, or the asker of the form.
func (m *Message) From() capabilities.ID {
	if m.Form != nil {
		return m.Form.From
	}
	return m.Posted.From
}

// To returns the first recipient.
func (m *Message) To() capabilities.ID {
	if m.Form != nil {
		return m.Form.To
	}
	return m.Posted.To
}

// ReplyTo returns the ID of the message that it replies to; zero if there is none.
func (m *Message) ReplyTo() capabilities.ID {
	if m.Form != nil {
		return m.Form.ReplyTo
	}
	return m.Posted.ReplyTo
}

// Thread returns the ID of the first message of the thread that the message belongs to, which may be itself.
func (m *Message) Thread() capabilities.ID {
	switch {
	case m.Posted != nil && !m.Posted.Thread.IsZero():
		return m.Posted.Thread
	case m.Form != nil && !m.Form.ReplyTo.IsZero():
		return m.Form.ReplyTo
	}
	return m.ID()
}

// Date returns the time when it was sent.
func (m *Message) Date() capabilities.Time {
	if m.Form != nil {
		return m.Form.Date
	}
	return m.Posted.Date
}

// key returns the idempotency key of the message; "" if it has none, or if the agent did not send it.
func (m *Message) key() string {
	if m.Form != nil {
		return m.Form.Key
	}
	return m.Posted.Key
}

// CheckRequest refuses with NOT_A_REQUEST a message that is not a request.
func CheckRequest(l *Mail, ref capabilities.FormRef) error {
	m, err := l.Find(ref)
	if err != nil {
		return err
	}
	if t := m.Type(); t != "request" {
		return parley.Refuse(parley.NotARequest, "message %d is not a request (is %q)", m.Number, t)
	}
	return nil
}

// Type returns the kind of message: message, form, request or approval.
func (m *Message) Type() string {
	switch {
	case m.Form == nil:
		return "message"
	case m.Form.Kind != events.PlainForm:
		return string(m.Form.Kind)
	}
	return "form"
}

// PostMessage sends a message to an agent, and with Also to further ones. Each is a path, ID or locator. All get it, or nobody
// does. An agent that is named twice gets it once. With Reply, the message goes to the other party of that message instead: to all
// recipients of one that the agent sent itself. With All, it goes to the sender of what it replies to, and to those of the other
// recipients whom the agent can reach.
type PostMessage struct {
	To    string
	Also  []string
	Reply capabilities.FormRef
	All   bool
	parley.Post

	due uint64 // the schedule whose message it is; 0 for one that is sent at once
}

func (c PostMessage) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if _, ok, err := c.FindExisting(s); ok || err != nil {
		return nil, err
	}
	// Under one key one message is sent: the schedule would find its own sent already, and say nothing.
	if later := s.Mail.Schedules.underKey(c.Key); later != nil && later.Every == "" && later.Next != 0 && later.Schedule != c.due {
		return nil, later.keyConflict("which is sent later")
	}
	if err := checkText("a key", c.Key, maxKey); err != nil {
		return nil, err
	}
	if err := checkText("a message", c.Text, maxText); err != nil {
		return nil, err
	}
	if strings.TrimSpace(c.Text) == "" && c.Subject == "" && len(c.Files) == 0 { // a command that should have written it has failed
		return nil, parley.Refuse(parley.InvalidArgument, "the message is empty").WithHint("give a text, a subject or a file")
	}
	if err := checkHeader(c.Header); err != nil {
		return nil, err
	}
	if err := checkAckBy(c.AckBy, now); err != nil {
		return nil, err
	}
	if err := checkHeld(s, c.Files...); err != nil {
		return nil, err
	}
	if c.Priority == events.Normal {
		c.Priority = "" // which it is called where it is not said
	}
	to, replyTo, err := c.recipients(s, now)
	request, path, err := c.promised(s, err)
	if err != nil {
		return nil, err
	}
	if request != nil {
		to = []capabilities.Ref{{Target: request.Form.Promise, Kind: capabilities.KindPromise}}
	}
	thread, err := c.thread(s)
	if err != nil {
		return nil, err
	}
	id := ids()
	e := &events.MessagePosted{
		Number: s.Mail.Index.Len(), Message: id, From: s.ID, To: to[0].Target, Via: to[0].Grant, Facet: to[0].Facet,
		Header: c.Header, ReplyTo: replyTo, Thread: thread, Date: now, Key: c.Key, Sender: s.Profile.called(),
	}
	if e.Escalate, err = c.escalation(s, to, now); err != nil {
		return nil, err
	}
	d := delegation{s: s, to: e.To, message: id, now: now, ids: ids, later: request != nil}
	if e.Text, err = d.parts(c.parts()); err != nil {
		return nil, err
	}
	if request != nil {
		queued, err := queueBehind(s, id, request, path, sizeOfMessage(e), now)
		return []events.Event{queued, e}, err
	}
	if len(to) > 1 {
		if err := d.toSeveral(e, c.parts(), to); err != nil {
			return nil, err
		}
	}
	return append([]events.Event{e}, grantEvents(d.grants)...), nil
}

// promised returns the request for whose answer the message is, and the path in that, if the error is that its one recipient is not known
// yet. Otherwise it returns the error.
func (c PostMessage) promised(s *State, err error) (*Message, string, error) {
	switch {
	case !c.Reply.IsZero():
		m, unknown := s.Mail.Find(c.Reply)
		if unknown != nil || !m.IsQueued() {
			return nil, "", err
		}
		return requestOf(&s.Mail, m.Behind.Request), m.Behind.Path, nil
	case err == nil:
		return nil, "", nil
	}
	for _, name := range c.named() {
		request, unknown := promisedAt(s, name, err)
		switch {
		case unknown != nil:
		case len(c.named()) > 1:
			return nil, "", parley.Refuse(parley.UnknownRecipient, "%s stands for the answer of form %d, which is not there yet: a message to several goes to agents", parley.Quoted(name, 80), request.Number)
		case c.Escalate != "":
			return nil, "", parley.Refuse(parley.InvalidArgument, "a message is not escalated while it waits for the answer of form %d", request.Number)
		default:
			return request, name, nil
		}
	}
	return nil, "", err
}

// thread returns the first message of the thread of what the message replies to; zero for one that begins a thread.
func (c PostMessage) thread(s *State) (capabilities.ID, error) {
	if c.Reply.IsZero() {
		return capabilities.ID{}, nil
	}
	parent, err := s.Mail.Find(c.Reply)
	if err != nil {
		return capabilities.ID{}, err
	}
	return parent.Thread(), nil
}

// maxSubject bounds the subject of a message, in bytes.
const maxSubject = 200

// Bounds of unfinished messages: the bytes of one, and those of an agent.
const (
	maxTextDraft  = 64 << 10
	maxTextDrafts = 32
)

// DraftMessage keeps the unfinished text of a message to an agent, or of a reply. It replaces the one before. An empty
// text removes it. When too many are kept, the oldest goes. To and Reply are as in PostMessage.
type DraftMessage struct {
	To    string
	Reply capabilities.FormRef
	Text  string
}

func (c DraftMessage) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if err := checkText("a draft", c.Text, maxTextDraft); err != nil {
		return nil, err
	}
	to, replyTo, err := PostMessage{To: c.To, Reply: c.Reply}.recipient(s, now)
	if err != nil {
		return nil, err
	}
	if s.Mail.Texts.For(to.Target, replyTo).Text == c.Text {
		return nil, nil
	}
	return []events.Event{&events.MessageDrafted{To: to.Target, ReplyTo: replyTo, Text: c.Text, Date: now}}, nil
}

// DraftPlace returns the agent and the message that a message or reply is for. Drafts for the same place replace each other.
func (s *State) DraftPlace(c DraftMessage, now capabilities.Time) (to, replyTo capabilities.ID, err error) {
	ref, replyTo, err := PostMessage{To: c.To, Reply: c.Reply}.recipient(s, now)
	return ref.Target, replyTo, err
}

// TextDrafts are the unfinished texts of messages, the oldest first.
type TextDrafts []events.MessageDrafted

// For returns the unfinished text of a message to an agent, or of a reply to a message. It is empty if there is none.
func (d TextDrafts) For(to, replyTo capabilities.ID) events.MessageDrafted {
	for _, e := range d {
		if e.To == to && e.ReplyTo == replyTo {
			return e
		}
	}
	return events.MessageDrafted{}
}

func (d *TextDrafts) save(e *events.MessageDrafted) {
	*d = slices.DeleteFunc(slices.Clone(*d), func(other events.MessageDrafted) bool { return other.To == e.To && other.ReplyTo == e.ReplyTo })
	if e.Text == "" {
		return
	}
	*d = append(*d, *e)
	*d = (*d)[max(0, len(*d)-maxTextDrafts):]
}

// sent removes the draft that a sent message finishes: it begins with the draft's text.
func (d *TextDrafts) sent(e *events.MessagePosted) {
	draft := strings.TrimSpace(d.For(e.To, e.ReplyTo).Text)
	if draft != "" && len(e.Text) > 0 && strings.HasPrefix(strings.TrimSpace(e.Text[0].Words), draft) {
		d.save(&events.MessageDrafted{To: e.To, ReplyTo: e.ReplyTo})
	}
}

// parts parses the text, unless it is plain.
func (c PostMessage) parts() []text.Part {
	if c.Plain {
		return []text.Part{{Words: c.Text}}
	}
	return text.Parse(c.Text)
}

// resolve returns the value that a part of a text refers to. It reports false if it refers to nothing: a text may have an @
// before any word. It fails for one that can only be meant as a reference.
func resolve(s *State, p text.Part) (v capabilities.Value, known bool, err error) {
	v, err = s.Namespace().Lookup(p.Path)
	if sp := capabilities.Special("@" + p.Path); parley.CodeOf(err) == parley.UnknownName && sp != "" {
		v, err = s.Namespace().Lookup(sp)
	}
	if _, absent := errors.AsType[*PagedOut](err); absent {
		return v, false, err
	}
	if err != nil && strings.HasPrefix(p.Path, "@") {
		e := *parley.AsError(err)
		return v, false, e.WithHint(`write \@ for a plain @`)
	}
	return v, err == nil, nil
}

// messageSize adds up the size of a message, span by span. A value under one edge is stored each time that it occurs.
type messageSize struct{ bytes int }

// add refuses a span with a value that cannot be stored, and with TOO_LARGE a span that does not fit.
func (t *messageSize) add(sp events.Span) error {
	if err := sp.Value.Check(); err != nil {
		return err
	}
	t.bytes += 10 + len(sp.Words) + len(sp.Edge) + sp.Value.Extent().Bytes
	if t.bytes > maxMessage {
		return parley.Refuse(parley.TooLarge, "a message with all that it carries is over the limit of %d bytes", maxMessage)
	}
	return nil
}

// DismissMessage hides a message.
type DismissMessage struct{ Message capabilities.FormRef }

func (d DismissMessage) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	n, err := s.Mail.number(d.Message)
	if err != nil {
		return nil, err
	}
	if e, err := s.Mail.Index.entry(n); err != nil || e.Is(index.Dismissed) {
		return nil, err
	}
	return []events.Event{&events.MessageDismissed{Number: n}}, nil
}

// checkHeader refuses what no sender may say of a message, here or on another node.
func checkHeader(h parley.Header) error {
	switch h.Priority {
	case "", events.Urgent, events.Normal, events.Low:
	default:
		return parley.Refuse(parley.InvalidArgument, "unknown priority %s", parley.Quoted(string(h.Priority), 40)).WithHint("a message is urgent, normal or low")
	}
	if strings.ContainsFunc(h.Subject, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) {
		return parley.Refuse(parley.InvalidArgument, "the subject %s is not one line of text", parley.Quoted(h.Subject, 40))
	}
	if h.AckBy < 0 {
		return parley.Refuse(parley.InvalidArgument, "a message cannot be acknowledged by %s", h.AckBy)
	}
	return cmp.Or(checkFiles(h.Files), checkText("a subject", h.Subject, maxSubject))
}

// FindExisting returns the message that was sent under the same key. It refuses with INVALID_ARGUMENT a key that is
// used again for another message.
func (c PostMessage) FindExisting(s *State) (*Message, bool, error) {
	m, err := s.Mail.underKey(&s.Mail.Keys.posted, c.Key)
	if m == nil {
		return nil, false, err
	}
	var differs []string
	same, err := c.sameRecipient(s, m)
	if err != nil {
		return m, true, err
	}
	switch {
	case !same && (!c.Reply.IsZero() || !m.ReplyTo().IsZero()):
		differs = append(differs, "the message that it replies to")
	case !same:
		differs = append(differs, "recipient")
	}
	if same, err = c.sameText(s, m.Posted.Text); err != nil {
		return m, true, err
	}
	if !same {
		differs = append(differs, "text")
	}
	if c.Priority.Rank() != m.Posted.Priority.Rank() {
		differs = append(differs, "priority")
	}
	if c.Subject != m.Posted.Subject {
		differs = append(differs, "subject")
	}
	if !slices.Equal(c.Files, m.Posted.Files) {
		differs = append(differs, "files")
	}
	return m, true, keyConflict(m, "key", c.Key, differs)
}

// sameRecipient reports whether the message has the recipients of another.
func (c PostMessage) sameRecipient(s *State, sent *Message) (bool, error) {
	if !c.Reply.IsZero() {
		m, err := s.Mail.Find(c.Reply)
		return err == nil && m.ID() == sent.ReplyTo(), err
	}
	if !sent.ReplyTo().IsZero() {
		return false, nil
	}
	if sent.Behind != nil && len(c.named()) == 1 && capabilities.Normal(c.named()[0]) == capabilities.Normal(sent.Behind.Path) {
		return true, nil
	}
	return c.namesAll(s, sent.Recipients())
}

// namesAll reports whether the recipients that the message names are those of one before.
func (c PostMessage) namesAll(s *State, before []capabilities.ID) (bool, error) {
	var all []capabilities.ID
	for _, to := range c.named() {
		id, err := s.Namespace().addressed(to)
		if err != nil {
			return false, err
		}
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return len(all) == len(before) && !slices.ContainsFunc(before, func(id capabilities.ID) bool { return !slices.Contains(all, id) }), nil
}

// sameText reports whether the message has the words of another, with the same values under the same edges. What one took as
// text and the other as a reference differs. It fails with PagedOut.
func (c PostMessage) sameText(s *State, spans []events.Span) (bool, error) {
	parts := c.parts()
	values := map[string]capabilities.Value{}
	for i, p := range parts {
		if p.Edge == "" {
			continue
		}
		v, known, err := resolve(s, p)
		if _, absent := errors.AsType[*PagedOut](err); absent {
			return false, err
		}
		if err != nil {
			return false, nil
		}
		if values[p.Edge] = v; !known {
			parts[i].Edge = ""
		}
	}
	if parts = text.Joined(parts); len(parts) != len(spans) {
		return false, nil
	}
	for i, p := range parts {
		switch sp := spans[i]; {
		case p.Edge != sp.Edge || p.Edge == "" && p.Words != sp.Words:
			return false, nil
		case p.Edge != "" && !withoutGrants(values[p.Edge]).Equal(withoutGrants(sp.Value)):
			return false, nil
		}
	}
	return true, nil
}

// withoutGrants returns a value without the grants of its references, which differ each time it is given.
func withoutGrants(v capabilities.Value) capabilities.Value {
	v, _ = v.Map(func(leaf capabilities.Value) (capabilities.Value, error) { // the function returns no error, so neither does Map
		if ref, ok := leaf.AsRef(); ok {
			ref.Grant, ref.Root = capabilities.ID{}, capabilities.ID{}
			return capabilities.Reference(ref), nil
		}
		return leaf, nil
	})
	return v
}

func words(spans []events.Span) []string {
	var ws []string
	for _, s := range spans {
		ws = append(ws, s.Words)
	}
	return ws
}

// ShowText returns a message's text for people, with @edge for each value.
func ShowText(spans []events.Span) string {
	if len(spans) == 1 && spans[0].Edge == "" { // the common case needs no copy
		return spans[0].Words
	}
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Words)
		if s.Edge != "" {
			b.WriteString("@" + s.Edge)
		}
	}
	return b.String()
}

// rare holds a part that few forms have, in the space of a pointer. Its zero value holds the zero part.
type rare[T any] struct{ part *T }

// get returns the part, which must not be changed.
func (r rare[T]) get() *T {
	if r.part == nil {
		return new(T)
	}
	return r.part
}

// edit returns the part, to be changed.
func (r *rare[T]) edit() *T {
	if r.part == nil {
		r.part = new(T)
	}
	return r.part
}
