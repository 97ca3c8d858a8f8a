package mailbox

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Message is a message that was received or sent. Either Form or Posted is set.
type Message struct {
	Number    uint64
	Changed   uint64 // the mailbox's version after the last event about it
	Dismissed bool
	Refused   string // of a message that was sent: why its recipient would not have it
	Form      *Form
	Posted    *events.MessagePosted

	carrier *Message // of a reply to one that the agent reached by a grant: that which was sent by it
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

// ReplyTo returns the message that it replies to; zero if there is none.
func (m *Message) ReplyTo() capabilities.ID {
	if m.Form != nil {
		return m.Form.ReplyTo
	}
	return m.Posted.ReplyTo
}

// Date returns the time when it was sent.
func (m *Message) Date() capabilities.Time {
	if m.Form != nil {
		return m.Form.Date
	}
	return m.Posted.Date
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

// PostMessage sends a message. To is a path, ID or locator. With Reply, the message goes to the other party of that
// message instead.
type PostMessage struct {
	To    string
	Reply capabilities.FormRef
	Text  string
	Plain bool   // an @ in it is a plain one
	Key   string // idempotency key
}

func (c PostMessage) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	if _, ok, err := c.FindExisting(s); ok || err != nil {
		return nil, err
	}
	if err := checkText("a key", c.Key, maxKey); err != nil {
		return nil, err
	}
	if err := checkText("a message", c.Text, maxText); err != nil {
		return nil, err
	}
	to, replyTo, err := s.addressee(c, now)
	if err != nil {
		return nil, err
	}
	parts, err := c.parts()
	if err != nil {
		return nil, err
	}
	id := ids()
	g := delegation{to: to.Target, message: id, now: now, ids: ids}
	spans, err := s.resolveParts(&g, parts)
	if err != nil {
		return nil, err
	}
	evs := []events.Event{&events.MessagePosted{
		Number: uint64(len(s.messages)), Message: id, From: s.ID, To: to.Target, Via: to.Grant, Facet: to.Facet,
		Text: spans, ReplyTo: replyTo, Date: now, Key: c.Key,
	}}
	return append(evs, grantEvents(g.grants)...), nil
}

// parts parses the text, unless it is plain.
func (c PostMessage) parts() ([]TextPart, error) {
	if c.Plain {
		return []TextPart{{Words: c.Text}}, nil
	}
	return ParseText(c.Text)
}

// addressee returns the recipient of a message. A received message is authority to reply to its sender, unless it came
// of a grant that was revoked.
func (s *State) addressee(c PostMessage, now capabilities.Time) (to capabilities.Ref, replyTo capabilities.ID, err error) {
	if c.Reply.IsZero() {
		to, err = s.reach(c.To, capabilities.UseSend, now)
		return to, replyTo, err
	}
	m, err := s.Find(c.Reply)
	if err != nil {
		return to, replyTo, err
	}
	if m.From() != s.ID {
		return agentRef(m.From()), m.ID(), s.checkLive(s.refFrom(m))
	}
	to = s.refTo(m)
	return to, m.ID(), s.permit(to, capabilities.UseSend, now)
}

// resolveParts looks up the values that a text refers to, and gives them under their edge names.
func (s *State) resolveParts(g *delegation, parts []TextPart) ([]events.Span, error) {
	spans := make([]events.Span, len(parts))
	given := map[string]capabilities.Value{}
	var all messageSize
	for i, m := range parts {
		if v, again := given[m.Edge]; m.Edge == "" || again {
			spans[i] = events.Span{Words: m.Words, Edge: m.Edge, Value: v}
			if err := all.add(spans[i]); err != nil {
				return nil, err
			}
			continue
		}
		v, err := s.resolvePart(m)
		if err == nil && inMail(m.Path) {
			v, err = s.claimKnown(v, capabilities.UseGive, g.now)
		}
		if err != nil {
			return nil, err
		}
		if err := all.add(events.Span{Edge: m.Edge, Value: v}); err != nil {
			return nil, err
		}
		if v, err = s.delegate(g, m.Edge, v); err != nil {
			return nil, err
		}
		given[m.Edge] = v
		spans[i] = events.Span{Edge: m.Edge, Value: v}
	}
	return spans, nil
}

// resolvePart returns the value that a part of a text refers to.
func (s *State) resolvePart(m TextPart) (capabilities.Value, error) {
	v, err := s.Lookup(m.Path)
	if sp := capabilities.Special("@" + m.Path); parley.CodeOf(err) == parley.UnknownName && sp != "" {
		v, err = s.Lookup(sp)
	}
	if err != nil {
		e := *parley.AsError(err)
		return v, e.WithHint(`write \@ for a plain @`)
	}
	return v, nil
}

// messageSize adds up a message, span by span. A value that stands under its edge several times is stored each time.
type messageSize struct{ bytes int }

// add refuses a span with a value that cannot be written down, and with TOO_LARGE one too much.
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

// DismissMessage takes a message out of view.
type DismissMessage struct{ Message capabilities.FormRef }

func (d DismissMessage) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Find(d.Message)
	if err != nil || m.Dismissed {
		return nil, err
	}
	return []events.Event{&events.MessageDismissed{Number: m.Number}}, nil
}

// HasPosted reports whether the agent has sent a message with a key.
func (s *State) HasPosted(key string) bool {
	_, ok := s.posted[key]
	return ok && key != ""
}

// FindExisting returns the message that was sent under the same key. It refuses with INVALID_ARGUMENT a key that is
// used again for another message.
func (c PostMessage) FindExisting(s *State) (*Message, bool, error) {
	n, ok := s.posted[c.Key]
	if !ok || c.Key == "" {
		return nil, false, nil
	}
	m := s.messages[n]
	var differs []string
	same, err := c.sameRecipient(s, m)
	if err != nil {
		return m, true, err
	}
	if !same {
		differs = append(differs, "recipient")
	}
	if !c.sameText(s, m.Posted.Text) {
		differs = append(differs, "text")
	}
	return m, true, keyConflict(m, "key", c.Key, differs)
}

// sameRecipient reports whether the message has the recipient of another.
func (c PostMessage) sameRecipient(s *State, sent *Message) (bool, error) {
	if !c.Reply.IsZero() {
		m, err := s.Find(c.Reply)
		return err == nil && m.ID() == sent.ReplyTo(), err
	}
	to, err := s.addressed(c.To)
	return sent.ReplyTo().IsZero() && to == sent.To(), err
}

// sameText reports whether the message has the words of another, and gives the same under the same edges.
func (c PostMessage) sameText(s *State, spans []events.Span) bool {
	parts, err := c.parts()
	return err == nil && slices.EqualFunc(parts, spans, func(m TextPart, sp events.Span) bool {
		if m.Words != sp.Words || m.Edge != sp.Edge {
			return false
		}
		if m.Edge == "" {
			return true
		}
		v, err := s.resolvePart(m)
		return err == nil && withoutGrants(v).Equal(withoutGrants(sp.Value))
	})
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

// Find returns a message by its number here, or by the ID of a message, form, promise or resolver. It refuses with
// NO_SUCH_MESSAGE, or with INVALID_ARGUMENT for the zero FormRef.
func (s *State) Find(ref capabilities.FormRef) (*Message, error) {
	if ref.IsZero() {
		return nil, parley.Refuse(parley.InvalidArgument, "which message? give its number or id")
	}
	n, ok := ref.Number()
	if !ok {
		return s.FindID(ref.ID())
	}
	if n >= uint64(len(s.messages)) {
		return nil, parley.Refuse(parley.NoSuchMessage, "no message %d", n).
			WithHint("parley inbox --all lists the messages")
	}
	return s.messages[n], nil
}

// FindID returns the message with an ID of its own, or of its promise or resolver. It refuses with NO_SUCH_MESSAGE.
func (s *State) FindID(id capabilities.ID) (*Message, error) {
	if m, err := s.byOwnID(id); err == nil {
		return m, nil
	}
	for _, m := range s.messages { // rarely asked for, and dear to index
		if m.Form != nil && (m.Form.Promise == id || m.Form.Resolver == id) {
			return m, nil
		}
	}
	return nil, noMessage(id)
}

// byOwnID returns the message with an ID of its own.
func (s *State) byOwnID(id capabilities.ID) (*Message, error) {
	n, ok := s.byID.get(id)
	if !ok {
		return nil, noMessage(id)
	}
	return s.messages[n], nil
}

func noMessage(id capabilities.ID) error {
	return parley.Refuse(parley.NoSuchMessage, "no message %s", id)
}

// FindForm is Find for a form. It refuses with NOT_A_FORM too.
func (s *State) FindForm(ref capabilities.FormRef) (*Message, error) {
	m, err := s.Find(ref)
	return mustBeForm(m, err)
}

// Has reports whether a message or form is here.
func (s *State) Has(id capabilities.ID) bool { return s.byID.has(id) }

// FindFormID returns the form with an ID of its own. It refuses with NO_SUCH_MESSAGE and NOT_A_FORM.
func (s *State) FindFormID(id capabilities.ID) (*Message, error) {
	m, err := s.byOwnID(id)
	return mustBeForm(m, err)
}

func mustBeForm(m *Message, err error) (*Message, error) {
	if err == nil && m.Form == nil {
		return nil, parley.Refuse(parley.NotAForm, "message %d is not a form (is %q)", m.Number, "message")
	}
	return m, err
}

// CheckRequest refuses with NOT_A_REQUEST a message that is not a request.
func (s *State) CheckRequest(ref capabilities.FormRef) error {
	m, err := s.Find(ref)
	if err != nil {
		return err
	}
	if t := m.Type(); t != "request" {
		return parley.Refuse(parley.NotARequest, "message %d is not a request (is %q)", m.Number, t)
	}
	return nil
}

// Sent reports whether the mailbox's agent sent the message.
func (s *State) Sent(m *Message) bool { return m.From() == s.ID }

// Received reports whether the message was sent or forwarded to the mailbox's agent. A message to itself is both sent
// and received.
func (s *State) Received(m *Message) bool { return m.From() != s.ID || m.To() == s.ID }
