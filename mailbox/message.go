package mailbox

import (
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Message is one message of a mailbox, of those received and those sent. Just one of Form and Posted is there.
type Message struct {
	Number    uint64
	Changed   uint64 // the mailbox's version after the last event about it
	Dismissed bool
	Refused   string // of a message that was sent: why its recipient would not have it
	Form      *Form
	Posted    *events.MessagePosted

	along *Message // of a reply to one that the agent reached by a grant: that which was sent by it
}

// ID is the ID of the message, which is that of its form if it is one.
func (m *Message) ID() capabilities.ID {
	if m.Form != nil {
		return m.Form.ID
	}
	return m.Posted.Message
}

// From is who sent the message; of a form, who asked.
func (m *Message) From() capabilities.ID {
	if m.Form != nil {
		return m.Form.From
	}
	return m.Posted.From
}

// To is whom it was sent to first.
func (m *Message) To() capabilities.ID {
	if m.Form != nil {
		return m.Form.To
	}
	return m.Posted.To
}

// ReplyTo is the message that it replies to; zero if none.
func (m *Message) ReplyTo() capabilities.ID {
	if m.Form != nil {
		return m.Form.ReplyTo
	}
	return m.Posted.ReplyTo
}

// Date is when it was sent.
func (m *Message) Date() capabilities.Time {
	if m.Form != nil {
		return m.Form.Date
	}
	return m.Posted.Date
}

// Type names the kind of message: form, request or message.
func (m *Message) Type() string {
	switch {
	case m.Form == nil:
		return "message"
	case m.Form.Kind != events.PlainForm:
		return string(m.Form.Kind)
	}
	return "form"
}

// PostMessage sends a message. To is a path, ID or locator; or Reply is the message to reply to, and the other
// party to that gets it.
type PostMessage struct {
	To    string
	Reply string
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
	marks, err := c.parts()
	if err != nil {
		return nil, err
	}
	id := ids()
	g := gift{to: to.Target, message: id, now: now, ids: ids}
	spans, err := s.span(&g, marks)
	if err != nil {
		return nil, err
	}
	evs := []events.Event{&events.MessagePosted{
		Number: uint64(len(s.messages)), Message: id, From: s.ID, To: to.Target, Via: to.Grant, Facet: to.Facet,
		Text: spans, ReplyTo: replyTo, Date: now, Key: c.Key,
	}}
	return append(evs, granted(g.grants)...), nil
}

// parts parses the text, unless it is plain.
func (c PostMessage) parts() ([]TextPart, error) {
	if c.Plain {
		return []TextPart{{Words: c.Text}}, nil
	}
	return ParseText(c.Text)
}

// addressee gives whom a message is for. Mail from somebody is authority to reply to it, unless that came of a
// grant which was revoked.
func (s *State) addressee(c PostMessage, now capabilities.Time) (to capabilities.Ref, replyTo capabilities.ID, err error) {
	if c.Reply == "" {
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

// span looks up what a text refers to, and gives it away under its edge names.
func (s *State) span(g *gift, marks []TextPart) ([]events.Span, error) {
	spans := make([]events.Span, len(marks))
	given := map[string]capabilities.Value{}
	var all tally
	for i, m := range marks {
		if v, again := given[m.Edge]; m.Edge == "" || again {
			spans[i] = events.Span{Words: m.Words, Edge: m.Edge, Value: v}
			if err := all.add(spans[i]); err != nil {
				return nil, err
			}
			continue
		}
		v, err := s.referred(m)
		if err == nil && inMail(m.Path) {
			v, err = s.claimKnown(v, capabilities.UseGive, g.now)
		}
		if err != nil {
			return nil, err
		}
		if err := all.add(events.Span{Edge: m.Edge, Value: v}); err != nil {
			return nil, err
		}
		if v, err = s.give(g, m.Edge, v); err != nil {
			return nil, err
		}
		given[m.Edge] = v
		spans[i] = events.Span{Edge: m.Edge, Value: v}
	}
	return spans, nil
}

// referred returns the value that a mark in a text refers to.
func (s *State) referred(m TextPart) (capabilities.Value, error) {
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

// tally adds up a message, span by span. An edge may stand many times, and its value is written down each time.
type tally struct{ bytes int }

// add refuses a span with a value that cannot be written down, and with TOO_LARGE one too much.
func (t *tally) add(sp events.Span) error {
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
type DismissMessage struct{ Which string }

func (d DismissMessage) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Find(d.Which)
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

// FindExisting gives the message of before, if this one was sent before. It refuses with INVALID_ARGUMENT a key that comes
// again with another message.
func (c PostMessage) FindExisting(s *State) (*Message, bool, error) {
	n, ok := s.posted[c.Key]
	if !ok || c.Key == "" {
		return nil, false, nil
	}
	m := s.messages[n]
	var differs []string
	same, err := c.goesTo(s, m)
	if err != nil {
		return m, true, err
	}
	if !same {
		differs = append(differs, "recipient")
	}
	if !c.says(s, m.Posted.Text) {
		differs = append(differs, "text")
	}
	return m, true, another(m, "key", c.Key, differs)
}

// goesTo reports whether the message is for the one that another was for.
func (c PostMessage) goesTo(s *State, sent *Message) (bool, error) {
	if c.Reply != "" {
		m, err := s.Find(c.Reply)
		return err == nil && m.ID() == sent.ReplyTo(), err
	}
	to, err := s.addressed(c.To)
	return sent.ReplyTo().IsZero() && to == sent.To(), err
}

// says reports whether the message has the words of another, and gives the same away under the same edges.
func (c PostMessage) says(s *State, spans []events.Span) bool {
	marks, err := c.parts()
	return err == nil && slices.EqualFunc(marks, spans, func(m TextPart, sp events.Span) bool {
		if m.Words != sp.Words || m.Edge != sp.Edge {
			return false
		}
		if m.Edge == "" {
			return true
		}
		v, err := s.referred(m)
		return err == nil && ungiven(v).Equal(ungiven(sp.Value))
	})
}

// ungiven returns a value with the grants of its references left out: each time that it is given, they are others.
func ungiven(v capabilities.Value) capabilities.Value {
	v, _ = v.Map(func(leaf capabilities.Value) (capabilities.Value, error) { // the function returns no error, so neither does Map
		if ref, ok := leaf.AsRef(); ok {
			ref.Grant, ref.Root = capabilities.ID{}, capabilities.ID{}
			return capabilities.Reference(ref), nil
		}
		return leaf, nil
	})
	return v
}

// Find gives the message that a person or a program means: its number here, or the ID of a message, form,
// promise or resolver. It refuses with NO_SUCH_MESSAGE, or INVALID_ARGUMENT for what is neither.
func (s *State) Find(which string) (*Message, error) {
	which = strings.TrimPrefix(which, "#")
	if n, ok := messageNumber(which); ok {
		if n >= uint64(len(s.messages)) {
			return nil, parley.Refuse(parley.NoSuchMessage, "no message %d", n).
				WithHint("parley inbox --all lists the messages")
		}
		return s.messages[n], nil
	}
	id, err := s.parseOwn(which)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "%.120q is neither a message's number nor an ID", which)
	}
	return s.FindID(id)
}

// messageNumber reads a number as it is shown, without leading zeros: an ID or a digest that is cut off is none.
func messageNumber(s string) (uint64, bool) {
	if len(s) > 20 || len(s) > 1 && s[0] == '0' { // the digits of 64 bits; an ID has more letters
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// FindID gives the message with an ID, of its own or of its promise or resolver. It refuses with
// NO_SUCH_MESSAGE.
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

// byOwnID gives the message that has an ID itself.
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

// FindForm is Find for what must be a form. It refuses with NOT_A_FORM too.
func (s *State) FindForm(which string) (*Message, error) {
	m, err := s.Find(which)
	return mustBeForm(m, err)
}

// Has reports whether a message or form is here.
func (s *State) Has(id capabilities.ID) bool { return s.byID.has(id) }

// FindFormID gives the form with an ID of its own. It refuses with NO_SUCH_MESSAGE and NOT_A_FORM.
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

// parseOwn is parseTarget for what is most likely an ID of this node, whose key need not be read each time.
func (s *State) parseOwn(which string) (capabilities.ID, error) {
	if u, ours := strings.CutSuffix(which, s.nodeText); ours {
		return capabilities.ParseLocalID(u, s.ID.Node)
	}
	return parseTarget(which)
}

func parseTarget(s string) (capabilities.ID, error) {
	if capabilities.IsLocator(s) {
		l, err := capabilities.ParseLocator(s)
		return l.ID, err
	}
	return capabilities.ParseID(s)
}

// CheckRequest refuses with NOT_A_REQUEST a message that is not a request.
func (s *State) CheckRequest(which string) error {
	m, err := s.Find(which)
	if err != nil {
		return err
	}
	if t := m.Type(); t != "request" {
		return parley.Refuse(parley.NotARequest, "message %d is not a request (is %q)", m.Number, t)
	}
	return nil
}

// Sent reports whether the mailbox's agent sent it.
func (s *State) Sent(m *Message) bool { return m.From() == s.ID }

// Received reports whether it was sent to the mailbox's agent, or handed on to it. What an agent sends to
// itself is both sent and received.
func (s *State) Received(m *Message) bool { return m.From() != s.ID || m.To() == s.ID }
