package mailbox

import (
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// What an agent has the node hold is counted where it stands. Its own mailbox counts what it asked, named, made and
// wrote; every other mailbox counts what it has of each sender's mail. Only Decide refuses by it, never Apply.

// messageOverhead is the memory of a message beside its text, in bytes.
const messageOverhead = 512

// Usage is an amount in use of each quota. The daily amount is of one day.
type Usage struct {
	Amounts
	day int64 // since 1970
}

const dayLength = capabilities.Time(24 * time.Hour / time.Millisecond)

func dayOf(t capabilities.Time) int64 { return int64(t / dayLength) }

// On returns the amounts as they are on the day of a time.
func (u Usage) On(now capabilities.Time) Amounts {
	if dayOf(now) != u.day {
		u.Amounts[QuotaDaily] = 0
	}
	return u.Amounts
}

// add adds the change of an event at a time. Amounts that can shrink never fall below zero.
func (u *Usage) add(change Amounts, at capabilities.Time) {
	u.Amounts = u.On(at)
	u.day = dayOf(at)
	for q := range change {
		u.Amounts[q] += change[q]
	}
}

// isEmpty reports whether nothing is in use on the day of a time.
func (u Usage) isEmpty(now capabilities.Time) bool { return u.On(now) == Amounts{} }

// Use returns what the agent itself uses at a time.
func (s *State) Use(now capabilities.Time) Amounts { return s.ownUse.On(now) }

// Usage returns what the agent itself uses.
func (s *State) Usage() Usage { return s.ownUse }

// UseBy returns what the mailbox holds for others at a time: for agents of the node by their IDs, for other nodes by
// an ID of the node alone.
func (s *State) UseBy(now capabilities.Time) map[capabilities.ID]Amounts {
	all := make(map[capabilities.ID]Amounts, len(s.heldFor))
	for by, u := range s.heldFor {
		if a := u.On(now); a != (Amounts{}) {
			all[by] = a
		}
	}
	return all
}

// UsedBy returns what the mailbox holds for a sender at a time.
func (s *State) UsedBy(sender capabilities.ID, now capabilities.Time) Amounts {
	if u, ok := s.heldFor[s.accountOf(sender)]; ok {
		return u.On(now)
	}
	return Amounts{}
}

// Made returns the agents that this one has made and has or had a name for.
func (s *State) Made() []capabilities.ID { return sortedIDs(s.made) }

// accountOf returns the party that an agent's mail counts for: another node as a whole, or the agent itself on this node.
func (s *State) accountOf(from capabilities.ID) capabilities.ID {
	if s.isOutside(from) {
		return capabilities.ID{Node: from.Node}
	}
	return from
}

// DecideWithin is Decide for the agent's own commands, held to quotas. Nil limits are none.
func (s *State) DecideWithin(l *Limits, c Command, now capabilities.Time, ids IDs) ([]events.Event, error) {
	evs, err := s.Decide(c, now, ids)
	if err != nil || l == nil || !Spends(c) {
		return evs, err
	}
	var growth Amounts
	for _, e := range evs {
		for q, n := range s.change(e) {
			growth[q] += n
		}
	}
	if _, makes := c.(CreateAgent); makes {
		growth[QuotaAgents] = 1
	}
	if err := l.check(s.ownUse.On(now), growth); err != nil {
		return nil, err
	}
	return evs, nil
}

// Spends reports whether quotas apply to a command. They do not apply to commands that free something, nor to those
// that bring what was decided elsewhere.
func Spends(c Command) bool {
	switch c.(type) {
	case RequestForm, RequestApproval, PostMessage, BindName, CopyName, MoveName, AdoptName, CreateAgent, MakeToken, UpdateAgent, ReportStatus, QueueAnswer, QueueForward:
		return true
	}
	return false
}

// CheckAnswer refuses with QUOTA_EXCEEDED an answer that its giver has no room for. It is for answers to forms of this
// node, which are decided in another mailbox.
func (s *State) CheckAnswer(l *Limits, c SettleForm, now capabilities.Time) error {
	var growth Amounts
	growth[QuotaDaily] = int64(capabilities.Record(c.Values).Extent().Bytes + len(c.Note))
	return l.check(s.ownUse.On(now), growth)
}

// CheckForward is CheckAnswer for a forward, which makes another copy of the form.
func (s *State) CheckForward(l *Limits, form capabilities.ID, now capabilities.Time) error {
	m, err := s.form(form)
	if err != nil {
		return nil // the command says so better
	}
	var growth Amounts
	growth[QuotaDaily] = sizeOfForm(m.Form.FormRequested)
	return l.check(s.ownUse.On(now), growth)
}

// countUse counts the change of an event. It is called before the event is folded in.
func (s *State) countUse(r events.Recorded) {
	if c := s.change(r.Event); c != (Amounts{}) {
		s.ownUse.add(c, r.At)
	}
	if by, c := s.changeFor(r.Event); c != (Amounts{}) {
		u := s.heldFor[by]
		u.add(c, r.At)
		if u.isEmpty(r.At) {
			delete(s.heldFor, by)
			return
		}
		if s.heldFor == nil {
			s.heldFor = map[capabilities.ID]Usage{}
		}
		s.heldFor[by] = u
	}
	if e, ok := r.Event.(*events.NameBound); ok {
		s.countMade(e.Value)
	}
}

// change returns the change that an event makes in what the agent itself uses.
func (s *State) change(e events.Event) (c Amounts) {
	switch e := e.(type) {
	case *events.FormRequested:
		if e.From == s.ID {
			n := sizeOfForm(e)
			c[QuotaForms], c[QuotaBytes], c[QuotaDaily] = 1, n, n
		}
	case *events.MessagePosted:
		if e.From == s.ID {
			c[QuotaDaily] = sizeOfMessage(e)
		}
	case *events.FormAnswered:
		c = s.freedByEnd(e.Form)
		if e.By == s.ID {
			c[QuotaDaily] = int64(e.Values.Extent().Bytes)
		}
	case *events.FormCancelled:
		c = s.freedByEnd(e.Form)
		if e.By == s.ID {
			c[QuotaDaily] = int64(len(e.Note))
		}
	case *events.FormForwarded:
		if e.By == s.ID {
			if m, err := s.form(e.Form); err == nil {
				c[QuotaDaily] = sizeOfForm(m.Form.FormRequested)
			}
		}
	case *events.AnswerQueued:
		c[QuotaDaily] = int64(e.Values.Extent().Bytes + len(e.Note))
	case *events.NameBound:
		n := sizeOfName(e.Name, e.Value)
		c[QuotaNames], c[QuotaBytes], c[QuotaDaily] = 1, n, n
		if old, bound := s.names[e.Name]; bound {
			c[QuotaNames], c[QuotaBytes] = 0, n-sizeOfName(e.Name, old)
		}
	case *events.NameUnbound:
		if old, bound := s.names[e.Name]; bound {
			c[QuotaNames], c[QuotaBytes] = -1, -sizeOfName(e.Name, old)
		}
	default:
		c[QuotaDaily] = sizeOfOther(e)
	}
	return c
}

// freedByEnd returns what the end of a form that the agent asked frees.
func (s *State) freedByEnd(form capabilities.ID) (c Amounts) {
	if m, err := s.form(form); err == nil && m.Form.From == s.ID && m.Form.IsOpen() {
		c[QuotaForms], c[QuotaBytes] = -1, -sizeOfForm(m.Form.FormRequested)
	}
	return c
}

// changeFor returns the change that an event makes in what the mailbox holds for another, and for whom.
func (s *State) changeFor(e events.Event) (by capabilities.ID, c Amounts) {
	switch e := e.(type) {
	case *events.FormRequested:
		if e.From != s.ID {
			n := sizeOfForm(e)
			c[QuotaForms], c[QuotaInbox], c[QuotaDaily] = 1, n, n
			by = s.accountOf(e.From)
		}
	case *events.MessagePosted:
		if e.From != s.ID {
			n := sizeOfMessage(e)
			c[QuotaInbox], c[QuotaDaily] = n, n
			by = s.accountOf(e.From)
		}
	case *events.FormAnswered:
		return s.freedBy(s.form(e.Form))
	case *events.FormCancelled:
		return s.freedBy(s.form(e.Form))
	case *events.MessageDismissed:
		if e.Number < uint64(len(s.messages)) {
			return s.freedBy(s.messages[e.Number], nil)
		}
	case *events.CapabilityMinted:
		c[QuotaGrants] = 1
		by = s.accountOf(e.Grant.By)
	}
	return by, c
}

// freedBy returns what a message of another's frees when it is dismissed or settled, whichever is first.
func (s *State) freedBy(m *Message, err error) (by capabilities.ID, c Amounts) {
	if err != nil || !s.isHeld(m) {
		return by, c
	}
	n := sizeOf(m)
	c[QuotaInbox] = -n
	if m.Form != nil {
		c[QuotaForms] = -1
	}
	return s.accountOf(m.From()), c
}

// isHeld reports whether a message counts for its sender: it is another's, and neither dismissed nor settled.
func (s *State) isHeld(m *Message) bool {
	return m.From() != s.ID && !m.Dismissed && (m.Form == nil || m.Form.IsOpen())
}

// countMade records an agent that this one made. Only to such an agent does it have a reference that nobody gave.
func (s *State) countMade(v capabilities.Value) {
	ref, ok := v.AsRef()
	if !ok || ref.Kind != capabilities.KindAgent || !ref.Grant.IsZero() || !ref.Root.IsZero() || s.isOutside(ref.Target) {
		return
	}
	if ref.Target == s.ID || ref.Target == s.Profile.Host || ref.Target == s.Profile.By {
		return
	}
	if _, known := s.made[ref.Target]; known {
		return
	}
	if s.made == nil {
		s.made = map[capabilities.ID]bool{}
	}
	s.made[ref.Target] = true
	s.ownUse.Amounts[QuotaAgents]++
}

// checkRoom refuses with QUOTA_EXCEEDED mail that its sender has no room for in this mailbox. Nil quotas are none.
func (s *State) checkRoom(quotas *Amounts, e events.Event, now capabilities.Time) error {
	if quotas == nil {
		return nil
	}
	by, growth := s.changeFor(e)
	var used Amounts
	if u, ok := s.heldFor[by]; ok {
		used = u.On(now)
	}
	for q, n := range growth {
		local := by.ULID != [16]byte{} // what it asks and writes is counted in its own mailbox
		if n <= 0 || n <= quotas[q]-used[q] || local && Quota(q) != QuotaInbox {
			continue
		}
		return roomExceeded(Quota(q), used[q], quotas[q])
	}
	return nil
}

// roomExceeded returns the error for a sender whose quota in a mailbox is used up.
func roomExceeded(q Quota, used, limit int64) *parley.Error {
	what := map[Quota]string{
		QuotaForms: "open forms", QuotaDaily: "of mail today", QuotaGrants: "grants",
		QuotaInbox: "of mail that is neither dismissed nor settled",
	}[q]
	return parley.Refuse(parley.QuotaExceeded, "the mailbox has %s %s of this sender, and its quota is %s", q.Show(used), what, q.Show(limit)).
		WithHint("the recipient dismisses or answers some of it, or its node's host raises the quota")
}

// CheckSending refuses mail that the recipient would refuse, where the sender can be told at once.
func CheckSending(used, quotas Amounts) error {
	if used[QuotaInbox] < quotas[QuotaInbox] {
		return nil
	}
	return roomExceeded(QuotaInbox, used[QuotaInbox], quotas[QuotaInbox])
}

func sizeOf(m *Message) int64 {
	if m.Form != nil {
		return sizeOfForm(m.Form.FormRequested)
	}
	return sizeOfMessage(m.Posted)
}

func sizeOfForm(e *events.FormRequested) int64 {
	n := messageOverhead + len(e.Title) + len(e.Description) + len(e.Key) + len(e.Result) + sizeOfOrigin(e.Origin)
	for i := range e.Fields {
		n += form.FieldSize(&e.Fields[i])
	}
	return int64(n)
}

func sizeOfMessage(e *events.MessagePosted) int64 {
	n := messageOverhead + len(e.Key)
	for _, sp := range e.Text {
		n += 32 + len(sp.Words) + len(sp.Edge)
		if sp.Edge != "" {
			n += sp.Value.Extent().Bytes
		}
	}
	return int64(n)
}

func sizeOfName(name string, v capabilities.Value) int64 {
	return int64(64 + len(name) + v.Extent().Bytes)
}

// sizeOfOther returns about the bytes by which the agent's own events grow the log, and 0 for events that others
// cause.
func sizeOfOther(e events.Event) int64 {
	const small = 128
	switch e := e.(type) {
	case *events.CapabilityGranted:
		return int64(small + len(e.Grant.Name))
	case *events.ForwardQueued:
		return small
	case *events.AgentUpdated:
		n := small + len(e.Error)
		if e.Title != nil {
			n += len(*e.Title)
		}
		for k, v := range e.Labels {
			n += len(k) + len(v)
		}
		return int64(n)
	case *events.TokenMade:
		return int64(2*small + len(e.Note))
	case *events.RuleUsed:
		return int64(small + len(e.Tool) + len(e.Input))
	}
	return 0
}

// usageSnapshot is the part of a usage that cannot be counted again from messages and names.
type usageSnapshot struct {
	By    capabilities.ID // zero for the agent itself
	Daily int64
	Day   int64
}

func (s *State) usageSnapshots() []usageSnapshot {
	all := []usageSnapshot{{Daily: s.ownUse.Amounts[QuotaDaily], Day: s.ownUse.day}}
	for _, by := range sortedIDs(s.heldFor) {
		if u := s.heldFor[by]; u.Amounts[QuotaDaily] != 0 {
			all = append(all, usageSnapshot{By: by, Daily: u.Amounts[QuotaDaily], Day: u.day})
		}
	}
	return all
}

// recount counts what the state holds, except the bytes of the day.
func (s *State) recount() {
	s.ownUse, s.heldFor = Usage{}, nil
	held := func(by capabilities.ID, q Quota, n int64) {
		if s.heldFor == nil {
			s.heldFor = map[capabilities.ID]Usage{}
		}
		u := s.heldFor[by]
		u.Amounts[q] += n
		s.heldFor[by] = u
	}
	for _, m := range s.messages {
		switch {
		case s.isHeld(m):
			held(s.accountOf(m.From()), QuotaInbox, sizeOf(m))
			if m.Form != nil {
				held(s.accountOf(m.From()), QuotaForms, 1)
			}
		case m.Form != nil && m.From() == s.ID && m.Form.IsOpen():
			s.ownUse.Amounts[QuotaForms]++
			s.ownUse.Amounts[QuotaBytes] += sizeOf(m)
		}
	}
	for name, v := range s.names {
		s.ownUse.Amounts[QuotaNames]++
		s.ownUse.Amounts[QuotaBytes] += sizeOfName(name, v)
	}
	s.ownUse.Amounts[QuotaAgents] = int64(len(s.made))
	for _, g := range s.minted.All() {
		if g.By != s.ID {
			held(s.accountOf(g.By), QuotaGrants, 1)
		}
	}
}

// restoreUse restores what recount cannot count.
func (s *State) restoreUse(images []usageSnapshot, made []capabilities.ID) {
	for _, id := range made {
		if s.made == nil {
			s.made = map[capabilities.ID]bool{}
		}
		s.made[id] = true
	}
	s.recount()
	for _, i := range images {
		if i.By.IsZero() {
			s.ownUse.Amounts[QuotaDaily], s.ownUse.day = i.Daily, i.Day
			continue
		}
		u := s.heldFor[i.By]
		u.Amounts[QuotaDaily], u.day = i.Daily, i.Day
		if s.heldFor == nil {
			s.heldFor = map[capabilities.ID]Usage{}
		}
		s.heldFor[i.By] = u
	}
}
