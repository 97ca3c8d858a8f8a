package mailbox

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/text"
)

// A message to several recipients is one message of its sender: one event, one number, one key. The event has all recipients, and
// the outbox a copy for each. So it goes to all, or to nobody. The copy of one names the others as the sender does, and has
// nothing of the references by which they were reached. What the text hands over is given to each by grants of its own.

// Bounds of the recipients of a message.
const (
	maxRecipientName = 200     // bytes; the recipients of a message with a longer name for one are told none
	maxToSeveral     = 1 << 20 // bytes of a message, times its recipients
)

// named returns the recipients as the sender named them.
func (c PostMessage) named() []string {
	if c.To == "" && len(c.Also) > 0 {
		return c.Also
	}
	return append([]string{c.To}, c.Also...)
}

// recipients returns the recipients of the message, each once, and the message that it replies to.
func (c PostMessage) recipients(s *State, now capabilities.Time) (to []capabilities.Ref, replyTo capabilities.ID, err error) {
	if !c.Reply.IsZero() {
		return c.repliedTo(s, now)
	}
	if c.All {
		return nil, replyTo, parley.Refuse(parley.InvalidArgument, "reply to what? only a reply goes to all recipients of a message")
	}
	named := c.named()
	if len(named) == 1 && named[0] == "" {
		return nil, replyTo, parley.Refuse(parley.InvalidArgument, "to whom? give a recipient")
	}
	if len(named) > parley.MaxRecipients {
		return nil, replyTo, parley.Refuse(parley.TooLarge, "a message to %d recipients is over the limit of %d", len(named), parley.MaxRecipients).
			WithHint("send it to a group: parley agent group")
	}
	for _, name := range named {
		ref, err := s.holder(capabilities.UseSend, now).reach(name)
		if err == nil && ref.Target == s.ID && len(named) > 1 {
			err = parley.Refuse(parley.InvalidArgument, "a message to several is for others").WithHint("send yourself a message of its own")
		}
		if err != nil {
			return nil, replyTo, unreachable(err, name, len(named))
		}
		to = addRecipient(to, ref)
	}
	return to, replyTo, nil
}

// unreachable returns why a message to several goes to nobody, with the recipient that is the reason.
func unreachable(err error, name string, recipients int) error {
	if _, absent := errors.AsType[*PagedOut](err); absent || recipients < 2 {
		return err
	}
	e := *parley.AsError(err)
	e.Message = "to " + parley.Quoted(name, 80) + ": " + e.Message
	return &e
}

// addRecipient adds a recipient, unless it is among them.
func addRecipient(to []capabilities.Ref, ref capabilities.Ref) []capabilities.Ref {
	if slices.ContainsFunc(to, func(o capabilities.Ref) bool { return o.Target == ref.Target }) {
		return to
	}
	return append(to, ref)
}

// recipient returns the first recipient of the message, and the message that it replies to.
func (c PostMessage) recipient(s *State, now capabilities.Time) (to capabilities.Ref, replyTo capabilities.ID, err error) {
	all, replyTo, err := c.recipients(s, now)
	if err != nil {
		return to, replyTo, err
	}
	return all[0], replyTo, nil
}

// repliedTo returns the recipients of a reply. A received message is authority to reply to its sender, unless it was sent by a
// grant that is revoked.
func (c PostMessage) repliedTo(s *State, now capabilities.Time) (to []capabilities.Ref, replyTo capabilities.ID, err error) {
	m, err := s.Mail.Find(c.Reply)
	if err != nil {
		return nil, replyTo, err
	}
	if m.Behind != nil && m.To() == m.Behind.Promise {
		return nil, m.ID(), parley.Refuse(parley.UnknownRecipient, "message %d was sent to nobody", m.Number)
	}
	if m.From() == s.ID {
		for _, id := range m.Recipients() {
			ref := m.refToOne(id, s.ID)
			if err := s.permit(ref, capabilities.UseSend, now); err != nil {
				return nil, replyTo, err
			}
			to = append(to, ref)
		}
		return to, m.ID(), nil
	}
	if err := s.checkLive(m.refFrom()); err != nil {
		return nil, replyTo, err
	}
	to = []capabilities.Ref{agentRef(m.From())}
	if !c.All {
		return to, m.ID(), nil
	}
	reached, _, err := s.Others(m, now)
	for _, ref := range reached {
		to = addRecipient(to, ref)
	}
	return to, m.ID(), err
}

// Others returns, of a message to several that the agent received, the other recipients: the references to those that it can
// reach now, and the rest, whom a reply to all does not go to. It fails with PagedOut.
func (s *State) Others(m *Message, now capabilities.Time) (reached []capabilities.Ref, rest []events.Recipient, err error) {
	if m.Posted == nil {
		return nil, nil, nil
	}
	for _, r := range m.Posted.Recipients {
		if r.Agent == s.ID || r.Agent == m.From() {
			continue
		}
		ref, err := s.holder(capabilities.UseSend, now).reach(r.Agent.String())
		if _, absent := errors.AsType[*PagedOut](err); absent {
			return nil, nil, err
		}
		if err != nil {
			rest = append(rest, r)
			continue
		}
		reached = append(reached, ref)
	}
	return reached, rest, nil
}

// toSeveral makes a message one to several. The first of them is its recipient already. It gives what the text hands over to each
// other one.
func (d *delegation) toSeveral(e *events.MessagePosted, parts []text.Part, to []capabilities.Ref) error {
	var size messageSize
	for _, sp := range e.Text {
		_ = size.add(sp) // as it was before
	}
	if size.bytes*len(to) > maxToSeveral {
		return parley.Refuse(parley.TooLarge, "a message of %d bytes to %d recipients is over the limit of %d bytes in all", size.bytes, len(to), maxToSeveral).
			WithHint("send it to fewer at once, or to a group")
	}
	for i, ref := range to {
		name, err := d.s.Names.said(ref.Target)
		if err != nil {
			return err
		}
		r := events.Recipient{Agent: ref.Target, Name: name, Via: ref.Grant, Facet: ref.Facet}
		if i > 0 {
			d.to = ref.Target
			spans, err := d.parts(slices.Clone(parts))
			if err != nil {
				return err
			}
			for _, sp := range spans {
				if sp.Edge != "" {
					r.Values = append(r.Values, sp.Value)
				}
			}
		}
		e.Recipients = append(e.Recipients, r)
	}
	return nil
}

// said returns the agent's name for another as it says it to others; "" if it has none. HOST is another agent for another.
func (l *Names) said(id capabilities.ID) (string, error) {
	name, err := l.Of(id)
	if name == hostName || checkRecipientName(name) != nil {
		return "", err
	}
	return name, err
}

// textFor returns the text of a message as one of its recipients gets it.
func textFor(e *events.MessagePosted, to capabilities.ID) []events.Span {
	i := slices.IndexFunc(e.Recipients, func(r events.Recipient) bool { return r.Agent == to })
	if i <= 0 {
		return e.Text
	}
	spans, values := slices.Clone(e.Text), e.Recipients[i].Values
	for n := range spans {
		if spans[n].Edge != "" && len(values) > 0 {
			spans[n].Value, values = values[0], values[1:]
		}
	}
	return spans
}

// Recipients returns the agents that the message was sent to, or the form was put to.
func (m *Message) Recipients() []capabilities.ID {
	if m.Posted == nil || len(m.Posted.Recipients) == 0 || m.Posted.To != m.Posted.Recipients[0].Agent {
		return []capabilities.ID{m.To()}
	}
	all := make([]capabilities.ID, len(m.Posted.Recipients))
	for i, r := range m.Posted.Recipients {
		all[i] = r.Agent
	}
	return all
}

// Arrived returns the recipients of a message to several, sent by the agent, whose copies have arrived, and those whose copies are on
// their way. It leaves out those that refused it.
func (s *State) Arrived(m *Message) (arrived, waiting []capabilities.ID) {
	if !m.toSeveral(s.ID) {
		return nil, nil
	}
	for _, to := range m.Recipients() {
		isCopy := func(p OutboxItem) bool { return p.Kind == events.OutboxCopy && p.Subject == m.ID() && p.To == to }
		switch {
		case m.missed(to):
		case s.Outbox.bySubject[m.ID()] > 0 && slices.ContainsFunc(s.Outbox.items, isCopy):
			waiting = append(waiting, to)
		default:
			arrived = append(arrived, to)
		}
	}
	return arrived, waiting
}

// toSeveral reports whether the agent sent the message to several.
func (m *Message) toSeveral(self capabilities.ID) bool {
	return m.Posted != nil && m.Posted.From == self && len(m.Posted.Recipients) > 1 && m.Posted.Original.IsZero()
}

// refToOne returns the reference by which the sender reached one of the recipients, in the mailbox of an agent.
func (m *Message) refToOne(to, self capabilities.ID) capabilities.Ref {
	if m.Posted == nil || to == m.To() || m.From() != self {
		return m.refTo(self)
	}
	for _, r := range m.Posted.Recipients {
		if r.Agent == to {
			ref := agentRef(to)
			ref.Grant, ref.Facet = r.Via, r.Facet
			return ref
		}
	}
	return m.refTo(self)
}

// checkRecipients refuses recipients of a message that no sender can have said, and leaves out what is private to the sender.
func checkRecipients(e *events.MessagePosted) (err error) {
	if e.Escalate = nil; len(e.Recipients) > 0 {
		if e.Recipients, err = publicRecipients(e.Recipients); err != nil {
			return err
		}
	}
	if len(e.Late) > 0 {
		e.Late, err = publicRecipients(e.Late)
	}
	return err
}

// publicRecipients returns recipients without what is private to a sender.
func publicRecipients(all []events.Recipient) ([]events.Recipient, error) {
	if len(all) > parley.MaxRecipients {
		return nil, parley.Refuse(parley.TooLarge, "the message has %d recipients: %d are the most", len(all), parley.MaxRecipients)
	}
	named := make([]events.Recipient, len(all))
	for i, r := range all {
		if err := checkRecipientName(r.Name); err != nil {
			return nil, err
		}
		isSame := func(o events.Recipient) bool { return o.Agent == r.Agent }
		if r.Agent.IsZero() || slices.ContainsFunc(named[:i], isSame) {
			return nil, parley.Refuse(parley.InvalidArgument, "the message has a recipient twice, or one that is nobody")
		}
		named[i] = events.Recipient{Agent: r.Agent, Name: r.Name}
	}
	return named, nil
}

// checkRecipientName refuses a name of a recipient that is not one line.
func checkRecipientName(name string) error {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return parley.Refuse(parley.InvalidArgument, "the message has a recipient whose name is not a line of text")
	}
	return checkText("the name of a recipient", name, maxRecipientName)
}
