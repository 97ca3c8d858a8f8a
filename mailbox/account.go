package mailbox

import (
	"maps"
	"slices"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/origin"
	"parley/mailbox/quota"
)

// Usage is an amount in use of each quota. The daily amount is of one day.
type Usage struct {
	quota.Amounts
	day int64 // since 1970
}

const dayLength = capabilities.Time(24 * time.Hour / time.Millisecond)

func dayOf(t capabilities.Time) int64 { return int64(t / dayLength) }

// On returns the amounts on the day of a time.
func (u Usage) On(now capabilities.Time) quota.Amounts {
	if dayOf(now) != u.day {
		u.Amounts[quota.Daily] = 0
	}
	return u.Amounts
}

// add adds the change of an event at a time. Amounts that can shrink never fall below zero.
func (u *Usage) add(change quota.Amounts, at capabilities.Time) {
	u.Amounts = u.On(at)
	u.day = dayOf(at)
	for q := range change {
		u.Amounts[q] += change[q]
	}
}

// isEmpty reports whether nothing is in use on the day of a time.
func (u Usage) isEmpty(now capabilities.Time) bool { return u.On(now) == quota.Amounts{} }

// Account counts what is held for the agent, and what its mailbox holds for the senders of mail. Every mailbox counts
// for itself: the agent's own counts its forms, names and agents, and the recipient's counts the mail that is there.
// Only Decide refuses by these counts, never Apply.
type Account struct {
	self    capabilities.ID
	own     Usage
	senders map[capabilities.ID]Usage // by accountOf
}

// Own returns the usage of the agent itself at a time.
func (a *Account) Own(now capabilities.Time) quota.Amounts { return a.own.On(now) }

// Usage returns the usage of the agent itself.
func (a *Account) Usage() Usage { return a.own }

// Senders returns the usage of all senders at a time: of agents of the node by their IDs, of other nodes by an ID with
// the node alone.
func (a *Account) Senders(now capabilities.Time) map[capabilities.ID]quota.Amounts {
	all := make(map[capabilities.ID]quota.Amounts, len(a.senders))
	for by, u := range a.senders {
		if amounts := u.On(now); amounts != (quota.Amounts{}) {
			all[by] = amounts
		}
	}
	return all
}

// Sender returns the usage of one sender at a time.
func (a *Account) Sender(sender capabilities.ID, now capabilities.Time) quota.Amounts {
	return a.senders[a.of(sender)].On(now)
}

// of returns the account of an agent's mail: its node as a whole if that is another, or else the agent itself.
func (a *Account) of(from capabilities.ID) capabilities.ID {
	if isRemote(from, a.self.Node) {
		return capabilities.ID{Node: from.Node}
	}
	return from
}

// addSender adds the change of an event to a sender's usage.
func (a *Account) addSender(by capabilities.ID, change quota.Amounts, at capabilities.Time) {
	u := a.senders[by]
	u.add(change, at)
	if u.isEmpty(at) {
		delete(a.senders, by)
		return
	}
	a.putSender(by, u)
}

func (a *Account) putSender(by capabilities.ID, u Usage) {
	if a.senders == nil {
		a.senders = map[capabilities.ID]Usage{}
	}
	a.senders[by] = u
}

type usageSnapshot struct {
	By      capabilities.ID // zero for the agent itself
	Amounts quota.Amounts
	Day     int64
}

func (a *Account) snapshots() []usageSnapshot {
	all := []usageSnapshot{{Amounts: a.own.Amounts, Day: a.own.day}}
	for _, by := range sortedIDs(a.senders) {
		all = append(all, usageSnapshot{By: by, Amounts: a.senders[by].Amounts, Day: a.senders[by].day})
	}
	return all
}

// restore restores the account from a snapshot.
func (a *Account) restore(images []usageSnapshot) {
	for _, i := range images {
		u := Usage{Amounts: i.Amounts, day: i.Day}
		if i.By.IsZero() {
			a.own = u
		} else {
			a.putSender(i.By, u)
		}
	}
}

// CheckQuota refuses with QUOTA_EXCEEDED an answer that exceeds the quotas of the answerer, whose state it is given. It is
// for answers to forms of this node, which another mailbox decides.
func (c SettleForm) CheckQuota(s *State, l *quota.Limits, now capabilities.Time) error {
	var growth quota.Amounts
	growth[quota.Daily] = int64(capabilities.Record(c.Values).Extent().Bytes + len(c.Note))
	return l.Check(s.Account.Own(now), growth)
}

// CheckQuota refuses with QUOTA_EXCEEDED a forward that exceeds the forwarder's quotas. It makes another copy of the form.
func (c ForwardForm) CheckQuota(s *State, l *quota.Limits, now capabilities.Time) error {
	m, err := s.Mail.form(c.Form)
	if err != nil {
		return nil // the command is refused for it
	}
	var growth quota.Amounts
	growth[quota.Daily] = m.Form.size()
	return l.Check(s.Account.Own(now), growth)
}

// countUse counts the change of an event. It is called before the event is folded in.
func countUse(s *State, r events.Recorded) {
	if c := ownChange(s, r.Event); c != (quota.Amounts{}) {
		s.Account.own.add(c, r.At)
	}
	if by, c := senderChange(s, r.Event); c != (quota.Amounts{}) {
		s.Account.addSender(by, c, r.At)
	}
	if e, ok := r.Event.(*events.NameBound); ok && namesMade(s, e.Value) {
		ref, _ := e.Value.AsRef()
		if s.Names.addMade(ref.Target) {
			s.Account.own.Amounts[quota.Agents]++
		}
	}
}

// messageOverhead is the memory of a message beside its text, in bytes.
const messageOverhead = 512

// ownChange returns the change that an event makes in the usage of the agent itself.
func ownChange(s *State, e events.Event) (c quota.Amounts) {
	switch e := e.(type) {
	case *events.FormRequested:
		if e.From == s.ID {
			n := sizeOfForm(e)
			c[asked(e.Kind)], c[quota.Bytes], c[quota.Daily] = 1, n, n
		}
	case *events.MessagePosted:
		if e.From == s.ID && e.Original.IsZero() { // what a group passes on is its author's, where it goes
			c[quota.Daily] = sizeOfMessage(e) * int64(max(1, len(e.Recipients)))
		}
	case *events.FormAnswered:
		c = freedByEnd(s, e.Form)
		if e.By == s.ID {
			c[quota.Daily] = int64(e.Values.Extent().Bytes)
		}
	case *events.FormCancelled:
		c = freedByEnd(s, e.Form)
		if e.By == s.ID {
			c[quota.Daily] = int64(len(e.Note))
		}
	case *events.FormForwarded:
		if e.By == s.ID {
			if m, err := s.Mail.form(e.Form); err == nil {
				c[quota.Daily] = m.Form.size()
			}
		}
	case *events.FormAmended:
		if m, err := s.Mail.openForm(e.Form); err == nil && m.Form.From == s.ID {
			c[quota.Bytes], c[quota.Daily] = m.Form.growth(e), sizeOfAmendment(e)
		}
	case *events.AnswerQueued:
		c[quota.Daily] = int64(e.Values.Extent().Bytes + len(e.Note))
	case *events.NameBound:
		n := sizeOfName(e.Name, e.Value)
		c[quota.Names], c[quota.Bytes], c[quota.Daily] = 1, n, n
		if old, bound, _ := s.Names.get(e.Name); bound { // see needs
			c[quota.Names], c[quota.Bytes] = 0, n-sizeOfName(e.Name, old)
		}
	case *events.FileStored:
		c[quota.Daily] = e.Size + messageOverhead
		if _, again := s.Files.stored[e.Digest]; !again {
			c[quota.Files] = e.Size
		}
	case *events.FilesDropped:
		for _, d := range e.Digests {
			c[quota.Files] -= s.Files.stored[d].Size
		}
	case *events.NameUnbound:
		if old, bound, _ := s.Names.get(e.Name); bound { // see needs
			c[quota.Names], c[quota.Bytes] = -1, -sizeOfName(e.Name, old)
		}
	default:
		c[quota.Daily] = sizeOfOther(e)
	}
	return c
}

// freedByEnd returns the change that the end of a form makes, if the agent asked it.
func freedByEnd(s *State, form capabilities.ID) (c quota.Amounts) {
	if m, err := s.Mail.form(form); err == nil && m.Form.From == s.ID && m.Form.IsOpen() {
		c[asked(m.Form.Kind)], c[quota.Bytes] = -1, -m.Form.size()
	}
	return c
}

// asked returns the quota of open forms of a kind, for their asker.
func asked(kind events.FormKind) quota.Quota {
	if kind == events.Approval {
		return quota.Approvals
	}
	return quota.Forms
}

// senderChange returns the change that an event makes in the usage of a sender, and the account of that sender.
func senderChange(s *State, e events.Event) (by capabilities.ID, c quota.Amounts) {
	switch e := e.(type) {
	case *events.FormRequested:
		if e.From != s.ID {
			n := sizeOfForm(e)
			c[quota.Forms], c[quota.Inbox], c[quota.Daily] = 1, n, n
			by = s.Account.of(e.From)
		}
	case *events.MessagePosted:
		if e.From != s.ID {
			n := sizeOfMessage(e)
			c[quota.Inbox], c[quota.Daily] = n, n
			by = s.Account.of(payerOf(e))
		}
	case *events.FormAmended:
		if m, err := s.Mail.openForm(e.Form); err == nil && m.Form.From != s.ID {
			by, c[quota.Daily] = s.Account.of(m.Form.From), sizeOfAmendment(e)
			if isHeld(s, m) {
				c[quota.Inbox] = m.Form.growth(e)
			}
		}
	case *events.FormAnswered:
		if m, err := s.Mail.form(e.Form); err == nil {
			return freed(s, m)
		}
	case *events.FormCancelled:
		if m, err := s.Mail.form(e.Form); err == nil {
			return freed(s, m)
		}
	case *events.MessageDismissed:
		if e.Number < s.Mail.Index.Len() {
			if m, err := s.Mail.at(e.Number); err == nil {
				return freed(s, m)
			}
		}
	case *events.MessageRestored:
		if e.Number < s.Mail.Index.Len() {
			if m, err := s.Mail.at(e.Number); err == nil {
				return heldAgain(s, m)
			}
		}
	case *events.CapabilityMinted:
		c[quota.Grants] = 1
		by = s.Account.of(e.Grant.By)
	}
	return by, c
}

// freed returns the change that the dismissal or the end of a message makes, whichever is first.
func freed(s *State, m *Message) (by capabilities.ID, c quota.Amounts) {
	if !isHeld(s, m) {
		return by, c
	}
	n := m.Size()
	c[quota.Inbox] = -n
	if m.Form != nil {
		c[quota.Forms] = -1
	}
	if m.Posted != nil {
		return s.Account.of(payerOf(m.Posted)), c
	}
	return s.Account.of(m.From()), c
}

// payerOf returns the agent for which a message counts where it came: its sender, or the author of what a group has passed on.
// So nobody uses up what a group may have there.
func payerOf(e *events.MessagePosted) capabilities.ID {
	if !e.Author.IsZero() {
		return e.Author
	}
	return e.From
}

// Payer returns the agent for which a copy counts where it comes to.
func (c AcceptDelivery) Payer() capabilities.ID {
	if c.Posted != nil {
		return payerOf(c.Posted)
	}
	return c.Form.From
}

// heldAgain returns the change that the end of a dismissal makes.
func heldAgain(s *State, m *Message) (by capabilities.ID, c quota.Amounts) {
	shown := *m
	if shown.Dismissed = false; !m.Dismissed || !isHeld(s, &shown) {
		return by, c
	}
	by, c = freed(s, &shown)
	for q := range c {
		c[q] = -c[q]
	}
	return by, c
}

// isHeld reports whether a message counts for its sender: another agent sent it, and it is neither dismissed nor
// settled.
func isHeld(s *State, m *Message) bool {
	return !s.Mail.Sent(m) && !m.Dismissed && (m.Form == nil || m.Form.IsOpen())
}

// namesMade reports whether a value is an agent that this one made. No other reference to an agent of this node is
// without a grant. Exceptions are those to the agent itself, its host and its maker.
func namesMade(s *State, v capabilities.Value) bool {
	ref, ok := v.AsRef()
	if !ok || ref.Kind != capabilities.KindAgent || !ref.Grant.IsZero() || !ref.Root.IsZero() || s.isRemote(ref.Target) {
		return false
	}
	return ref.Target != s.ID && !s.Profile.ManagedBy(ref.Target)
}

// checkRoom refuses with QUOTA_EXCEEDED an event that exceeds its sender's quotas in this mailbox. Nil quotas are none.
func checkRoom(s *State, quotas *quota.Amounts, e events.Event, now capabilities.Time) error {
	if quotas == nil {
		return nil
	}
	by, growth := senderChange(s, e)
	used := s.Account.senders[by].On(now)
	for q, n := range growth {
		local := by.ULID != [16]byte{} // its own mailbox counts the rest
		if n <= 0 || n <= quotas[q]-used[q] || local && quota.Quota(q) != quota.Inbox {
			continue
		}
		return roomExceeded(quota.Quota(q), used[q], quotas[q])
	}
	return nil
}

// roomExceeded returns the error for a sender whose quota in a mailbox is used up.
func roomExceeded(q quota.Quota, used, limit int64) *parley.Error {
	what := map[quota.Quota]string{
		quota.Forms: "open forms", quota.Daily: "of mail today", quota.Grants: "grants",
		quota.Inbox: "of mail that is neither dismissed nor settled",
	}[q]
	return parley.Refuse(parley.QuotaExceeded, "the mailbox has %s %s of this sender, and its quota is %s", q.Show(used), what, q.Show(limit)).
		WithHint("the recipient dismisses or answers some of it, or its node's host raises the quota")
}

// Size returns the bytes of a message that count for quotas: those of its text and values, and some for what it takes
// besides.
func (m *Message) Size() int64 {
	if m.Form != nil {
		return m.Form.size()
	}
	return sizeOfMessage(m.Posted)
}

func sizeOfForm(e *events.FormRequested) int64 {
	n := messageOverhead + len(e.Title) + len(e.Description) + len(e.Key) + len(e.Result) + len(e.Asker) + origin.Size(e.Origin)
	if c := e.Call; c != nil {
		n += len(c.Folder) + len(c.Reason) + len(c.Part) + len(c.Session)
		if u := c.Use; u != nil {
			n += len(u.Holder) + len(u.Through) + len(u.Name) + len(u.Called)
		}
	}
	for i := range e.Fields {
		n += form.FieldSize(&e.Fields[i])
	}
	return int64(n)
}

func sizeOfMessage(e *events.MessagePosted) int64 {
	n := messageOverhead + len(e.Key) + len(e.Sender) + len(e.AuthorSaid)
	for _, f := range e.Files {
		n += 128 + len(f.Name) + len(f.Type)
	}
	for _, r := range e.Recipients {
		n += 64 + len(r.Name)
	}
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

// sizeOfOther returns the approximate bytes by which one of the agent's own events grows the log. It returns 0 for
// events that others cause.
func sizeOfOther(e events.Event) int64 {
	const small = 128
	switch e := e.(type) {
	case *events.CapabilityGranted:
		return int64(small + len(e.Grant.Name))
	case *events.ForwardQueued:
		return small
	case *events.AnswerGranted:
		return int64(2*small + len(e.Grant.Name))
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
	case *events.MessageSnoozed, *events.AttentionSet, *events.MessageRestored:
		return small
	case *events.MessageScheduled:
		n := 2*small + len(e.Subject) + len(e.Text)
		for _, f := range e.Files {
			n += small + len(f.Name) + len(f.Type)
		}
		return int64(n)
	case *events.MailQueued:
		return int64(small + len(e.Path))
	case *events.UseQueued:
		return sizeOfUse(e)
	case *events.MessagesRead:
		return int64(small + 4*len(e.Numbers))
	case *events.DraftSaved:
		return int64(small + e.Values.Extent().Bytes)
	case *events.MessageDrafted:
		return int64(small + len(e.Text))
	case *events.RuleUsed:
		return int64(small + len(e.Tool) + len(e.Input))
	case *events.CallerNamed:
		return small
	case *events.PasskeyAdded:
		return int64(2*small + len(e.Name) + len(e.Credential) + len(e.Key))
	case *events.DecisionSigned:
		return int64(2*small + len(e.Key) + len(e.Statement) + len(e.ClientData) + len(e.Authenticator) + len(e.Signature))
	case *events.MandateCharged:
		return int64(small + len(e.Key) + len(e.Tool) + len(e.Input) + len(e.Folder))
	}
	return 0
}

// SetQuota sets quotas of an agent, or of another node. All other quotas stay as they are.
type SetQuota struct {
	Agent  capabilities.ID
	Node   capabilities.NodeID // zero if it is for an agent
	Quotas map[string]int64
	Reset  bool // drop all earlier settings first
}

func (c SetQuota) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if !s.Profile.isNodeHost() {
		return nil, parley.Refuse(parley.NotPermitted, "only the node's own host sets quotas")
	}
	if err := quota.Check(c.Quotas); err != nil {
		return nil, err
	}
	if c.Agent.IsZero() == (c.Node == capabilities.NodeID{}) {
		return nil, parley.Refuse(parley.InvalidArgument, "a quota is of an agent or of a node")
	}
	if _, known := s.Peers.byNode[c.Node]; c.Agent.IsZero() && !known {
		return nil, unknownNode(c.Node)
	}
	all := map[string]int64{}
	i := s.Peers.quota(c.Agent, c.Node)
	if i >= 0 && !c.Reset {
		for _, l := range s.Peers.quotas[i].Quotas {
			all[l.Name] = l.Limit
		}
	}
	maps.Copy(all, c.Quotas)
	e := &events.QuotaSet{Agent: c.Agent, Node: c.Node}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e.Quotas = append(e.Quotas, events.QuotaLimit{Name: name, Limit: all[name]})
	}
	if i >= 0 && slices.Equal(s.Peers.quotas[i].Quotas, e.Quotas) || i < 0 && len(e.Quotas) == 0 {
		return nil, nil
	}
	return []events.Event{e}, nil
}

// quota returns the index of the quotas of an agent or a node; -1 if none are set.
func (r *PeerDirectory) quota(agent capabilities.ID, node capabilities.NodeID) int {
	return slices.IndexFunc(r.quotas, func(q events.QuotaSet) bool { return q.Agent == agent && q.Node == node })
}

func (r *PeerDirectory) setQuota(e *events.QuotaSet) {
	i := r.quota(e.Agent, e.Node)
	switch {
	case i < 0:
		r.quotas = append(r.quotas, *e)
	case len(e.Quotas) == 0:
		r.quotas = slices.Delete(r.quotas, i, i+1)
	default:
		r.quotas[i] = *e
	}
}

// Quotas returns the quotas that the node's host has set. The slice belongs to the state.
func (r *PeerDirectory) Quotas() []events.QuotaSet { return r.quotas }
