package actors

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"math"
	"slices"

	"parley/actors/keys"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Inbox lists the messages of a view by number.
func (m Mail) Inbox(ctx context.Context, v view.MessageFilter) (view.Inbox, error) {
	return m.list(ctx, v, 0, math.MaxInt)
}

// maxListed bounds a list of messages, in bytes of JSON. One message is listed however large it is.
const maxListed = 512 << 10

// maxChanges bounds how many changed messages are given at once.
const maxChanges = 500

// Page is Inbox from a message number on: at most limit messages, and no more than fit into half a mebibyte of JSON. If
// there are more, Next is the number of the next message.
func (m Mail) Page(ctx context.Context, v view.MessageFilter, first uint64, limit int) (view.Inbox, error) {
	in, err := m.list(ctx, v, first, limit)
	if err != nil {
		return in, err
	}
	fit, err := m.fitting(ctx, in.Messages)
	if fit < len(in.Messages) {
		in.Next = in.Messages[fit].Number
		in.Messages = in.Messages[:fit]
	}
	return in, err
}

// Last returns the messages of a view that came last before a number, by number: at most limit, and no more than fit into
// half a mebibyte of JSON. Before 0 means all messages.
func (m Mail) Last(ctx context.Context, v view.MessageFilter, before uint64, limit int) (view.Inbox, error) {
	in := view.Inbox{Messages: []view.Message{}}
	for part := (inboxPart{on: before}); ; {
		var err error
		if part, err = readPiece(ctx, m.agent, ofLists, queryLast{v, part.on, limit - len(in.Messages), part.size}); err != nil {
			return in, err
		}
		if in.Cursor == 0 { // what changes later is after the cursor
			in.Cursor = part.Cursor
		}
		if in.Messages = append(in.Messages, part.Messages...); part.on == 0 {
			break
		}
	}
	fit, err := m.fitting(ctx, in.Messages)
	in.Messages = in.Messages[:fit]
	slices.Reverse(in.Messages)
	return in, cmp.Or(err, tellVoted(ctx, m.agent, in.Messages))
}

// lookAtOnce is how many messages one request looks at, before others that the same mailbox has.
const lookAtOnce = 8 * readAtOnce

// inboxPart is a part of a list.
type inboxPart struct {
	view.Inbox
	size int    // of the list so far: see sizeOf
	on   uint64 // the number from which the list goes on; 0 if it has ended
}

// queryLast returns the messages of a view that came last, the newest first. If before is not 0, they came before it.
type queryLast struct {
	view   view.MessageFilter
	before uint64
	limit  int
	size   int // of the list so far
}

func (m queryLast) handle(b *mailboxActor) (inboxPart, error) {
	b.recordAcksToShow()
	in := inboxPart{Inbox: view.Inbox{Cursor: b.state.Version}, size: m.size}
	looked := 0
	for e, err := range b.old.list(b.old.newest(m.view, cmp.Or(m.before, math.MaxUint64)), min(m.limit, readAtOnce)) {
		if err != nil {
			return in, err
		}
		if m.view.Matches(&e) {
			in.Messages = append(in.Messages, e)
			if in.size += sizeOf(&e); len(in.Messages) == m.limit || in.size > maxListed {
				break
			}
		}
		if looked++; looked == lookAtOnce {
			in.on = e.Number // 0 if that was the first
			break
		}
	}
	return in, nil
}

// All yields the messages of a view by number, read page by page. An error comes last.
func (m Mail) All(ctx context.Context, v view.MessageFilter) iter.Seq2[view.Message, error] {
	return func(yield func(view.Message, error) bool) {
		for first := uint64(0); ; {
			in, err := m.Page(ctx, v, first, maxChanges)
			for _, e := range in.Messages {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(view.Message{}, err)
				return
			}
			if first = in.Next; first == 0 {
				return
			}
		}
	}
}

// fitting is the function of that name, in a turn of the agent.
func (m Mail) fitting(ctx context.Context, messages []view.Message) (fit int, err error) {
	if len(messages) <= 1 {
		return len(messages), nil
	}
	err = m.InTurn(ctx, func() (err error) {
		fit, err = fitting(messages)
		return err
	})
	return fit, err
}

// fitting returns how many of some messages fit into one list.
func fitting(messages []view.Message) (int, error) {
	size := 0
	for i, e := range messages {
		text, err := json.Marshal(e)
		if err != nil {
			return i, err
		}
		if size += len(text); size > maxListed && i > 0 {
			return i, nil
		}
	}
	return len(messages), nil
}

// Since returns messages of a view that changed after a cursor, as they are now. They are in the order of their
// numbers, and come with the next cursor. It does not block. If there are more messages than fit, those that changed
// first come first. The next cursor leads to the others.
func (m Mail) Since(ctx context.Context, v view.MessageFilter, cursor uint64) (view.Inbox, error) {
	in, err := m.changed(ctx, v, cursor)
	if err == nil {
		err = tellVoted(ctx, m.agent, in.Messages)
	}
	if err != nil {
		return in, err
	}
	fit, err := m.fitting(ctx, in.Messages)
	if err != nil {
		return in, err
	}
	if fit < len(in.Messages) {
		last := in.Messages[fit-1].Changed
		for fit < len(in.Messages) && in.Messages[fit].Changed == last { // they changed at once
			fit++
		}
		if fit < len(in.Messages) {
			in.Messages, in.Cursor = in.Messages[:fit], last
		}
	}
	slices.SortFunc(in.Messages, func(x, y view.Message) int { return cmp.Compare(x.Number, y.Number) })
	return in, nil
}

// changed returns messages of a view that changed after a cursor, in the order of their changes. It returns none only if there
// are none.
func (m Mail) changed(ctx context.Context, v view.MessageFilter, cursor uint64) (in view.Inbox, err error) {
	err = inLine(ctx, m.agent, m.pieceAfter(cursor), func() error {
		in = view.Inbox{Messages: []view.Message{}, Cursor: cursor}
		size := 0
		for more := true; more && len(in.Messages) < maxChanges && size <= maxListed; {
			part, err := read(ctx, m.agent, queryChanges{v, in.Cursor, min(lookAtOnce, maxChanges-len(in.Messages)), size})
			if err != nil {
				return err
			}
			in.Messages = append(dropChangedAgain(in.Messages, part.Messages), part.Messages...)
			in.Cursor, size, more = part.Cursor, part.size, part.on != 0
		}
		return nil
	})
	return in, err
}

// dropChangedAgain drops messages that have changed again since they were read, and are among those that were read later.
func dropChangedAgain(messages, later []view.Message) []view.Message {
	if len(messages) == 0 {
		return messages
	}
	again := make(map[uint64]bool, len(later))
	for i := range later {
		again[later[i].Number] = true
	}
	return slices.DeleteFunc(messages, func(m view.Message) bool { return again[m.Number] })
}

// pieceAfter returns of which line the piece is that a follower reads after a cursor.
func (m Mail) pieceAfter(cursor uint64) pieceOf {
	if at, there := m.agent.node.journal.Mailbox(m.agent.id); there && at.Version > cursor+lookAtOnce {
		return ofLoads
	}
	return ofChanges
}

// queryChanges returns messages of a view that changed after a cursor, in the order of their changes. It looks at some of them:
// all that changed at the same version as the last one are among those. If there may be more, on is not 0.
type queryChanges struct {
	view   view.MessageFilter
	cursor uint64
	limit  int // of the messages that it looks at
	size   int // of the list so far
}

func (m queryChanges) handle(b *mailboxActor) (inboxPart, error) {
	b.recordAcksToShow()
	in := inboxPart{Inbox: view.Inbox{Cursor: b.state.Version}, size: m.size}
	may := func(l mailbox.Listed) bool { return mayShow(m.view, l) }
	changed, more, err := b.old.changed(mailbox.NewChangedMessages(m.cursor, m.limit, m.view.Pending, may))
	if err != nil {
		return in, err
	}
	cursor := m.cursor
	for e, err := range b.old.list(these(slices.Values(changed)), min(readAtOnce, max(len(changed), 1))) {
		if err != nil {
			return in, err
		}
		if in.size > maxListed && e.Changed > cursor {
			more = true
			break
		}
		cursor = e.Changed
		if m.view.Matches(&e) {
			in.Messages = append(in.Messages, e)
			in.size += sizeOf(&e)
		}
	}
	if more {
		in.Cursor, in.on = cursor, cursor
	}
	return in, nil
}

// changed returns the messages that changed first, and whether there may be more. It lets pages of the index go out of
// memory after each.
func (o *oldMail) changed(c *mailbox.ChangedMessages) ([]mailbox.Listed, bool, error) {
	for again := true; again; o.trimPages() {
		var err error
		if again, err = inTurn(o, func() (bool, error) { return c.Step(&o.state.Mail) }); err != nil {
			return nil, false, err
		}
	}
	all, more := c.First()
	return all, more, nil
}

// list lists the messages of a view from a number on.
func (m Mail) list(ctx context.Context, v view.MessageFilter, first uint64, limit int) (view.Inbox, error) {
	if at, rests := m.agent.atRest(); rests && v.Pending && at.Summary.Waiting == 0 {
		return view.Inbox{Messages: []view.Message{}, Cursor: at.Version}, nil
	}
	in := view.Inbox{Messages: []view.Message{}}
	for part, left := (inboxPart{on: first}), limit; ; {
		var err error
		if part, err = readPiece(ctx, m.agent, ofLists, queryMessages{v, part.on, left, part.size}); err != nil {
			return in, err
		}
		if in.Cursor == 0 { // what changes later is after the cursor
			in.Cursor = part.Cursor
		}
		if limit < math.MaxInt {
			left -= len(part.Messages)
		}
		in.Next = part.Next
		if in.Messages = append(in.Messages, part.Messages...); part.on == 0 {
			return in, tellVoted(ctx, m.agent, in.Messages)
		}
	}
}

// queryMessages returns the messages of a view from a number on. If there is a limit, it returns at most limit, and no
// more than fit into a list.
type queryMessages struct {
	view  view.MessageFilter
	first uint64
	limit int
	size  int // of the list so far
}

func (m queryMessages) handle(b *mailboxActor) (inboxPart, error) {
	b.recordAcksToShow()
	in := inboxPart{Inbox: view.Inbox{Cursor: b.state.Version}, size: m.size}
	most := readAtOnce
	if m.limit < most {
		most = m.limit + 1
	}
	looked := 0
	for e, err := range b.old.list(b.old.listed(m.view, m.first), most) {
		if err != nil {
			return in, err
		}
		if m.view.Matches(&e) {
			if len(in.Messages) == m.limit || m.limit < math.MaxInt && in.size > maxListed {
				in.Next = e.Number
				break
			}
			in.Messages = append(in.Messages, e)
			in.size += sizeOf(&e)
		}
		if looked++; looked == lookAtOnce {
			in.on = e.Number + 1
			break
		}
	}
	return in, nil
}

// FormsOf returns the forms of an origin, as origin.Index finds them, and the cursor of the mailbox.
func (m Mail) FormsOf(ctx context.Context, o events.Origin) (view.Inbox, error) {
	return readPiece(ctx, m.agent, ofLists, queryForms{o})
}

// queryForms returns the forms of an origin.
type queryForms struct{ origin events.Origin }

func (m queryForms) handle(b *mailboxActor) (view.Inbox, error) {
	b.recordAcksToShow()
	in := view.Inbox{Cursor: b.state.Version}
	for some := range slices.Chunk(b.state.Mail.Origins.Of(&m.origin), readAtOnce) {
		shown, err := inTurn(b.old, func() ([]view.Message, error) { return b.old.views(some) })
		if err != nil {
			return in, err
		}
		in.Messages = append(in.Messages, shown...)
		trimOld(b.old.lent, maxOld)
	}
	return in, nil
}

// HasAsked reports whether the agent has asked a form under an idempotency key.
func (m Mail) HasAsked(ctx context.Context, key string) (bool, error) {
	return call(ctx, m.agent, queryAsked{key})
}

// queryAsked reports whether a form was asked under a key.
type queryAsked struct{ key string }

func (m queryAsked) handle(b *mailboxActor) (bool, error) { return b.state.Mail.Keys.HasAsked(m.key) }

// Message returns one message.
func (a *Agent) Message(ctx context.Context, ref capabilities.FormRef) (view.Message, error) {
	e, err := read(ctx, a, queryMessage{ref})
	if err != nil {
		return e, err
	}
	one := []view.Message{e}
	if err = tellVoted(ctx, a, one); err == nil {
		err = tellWaiting(ctx, a, &one[0])
	}
	return one[0], err
}

// queryMessage returns one message.
type queryMessage struct{ ref capabilities.FormRef }

func (m queryMessage) handle(b *mailboxActor) (view.Message, error) {
	b.recordAcksToShow()
	msg, err := b.state.Mail.Find(m.ref)
	if err != nil {
		return view.Message{}, err
	}
	return b.viewer().envelope(msg)
}

// Changes blocks until messages of a view have changed after a cursor. It returns them as they are now, with the next
// cursor. If ctx ends first, it returns none, the same cursor and no error.
func (m Mail) Changes(ctx context.Context, v view.MessageFilter, cursor uint64) (view.Inbox, error) {
	changed := make(chan struct{}, 1)
	defer m.agent.node.changed.drop(m.agent.node.changed.wait(m.agent.id, changed))
	for {
		in, err := m.Since(ctx, v, cursor)
		if ctx.Err() != nil {
			return view.Inbox{Messages: []view.Message{}, Cursor: cursor}, nil
		}
		if err != nil || len(in.Messages) > 0 {
			return in, err
		}
		cursor = in.Cursor
		select {
		case <-changed:
		case <-ctx.Done():
			return in, nil
		case <-m.agent.node.life.Done():
			return in, errClosing()
		}
	}
}

// Watch calls changed after each change of the mailbox that is durable, until stop. Changed must not block, nor call stop.
func (m Mail) Watch(changed func()) (stop func()) {
	w := &waiter[capabilities.ID, none]{then: func(none) { changed() }}
	m.agent.node.changed.add(m.agent.id, w)
	return func() { m.agent.node.changed.drop(w) }
}

// Follow yields the messages of a view that changed after a cursor (0: all of them), then each that changes,
// until ctx ends or an error, which comes last.
func (m Mail) Follow(ctx context.Context, v view.MessageFilter, cursor uint64) iter.Seq2[view.Message, error] {
	return func(yield func(view.Message, error) bool) {
		for ctx.Err() == nil {
			in, err := m.Changes(ctx, v, cursor)
			if err != nil {
				yield(view.Message{}, err)
				return
			}
			cursor = in.Cursor
			for _, e := range in.Messages {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// viewer shows a mailbox to its agent, with the agent's own names for others.
type viewer struct {
	state   *mailbox.State
	secrets *keys.SecretBox
	waiting map[*mailbox.Message]bool // what has not arrived, once it was asked for
	absent  error                     // of a name that is not in memory
	now     capabilities.Time
	sees    bool // it is of the node's host, which looks up each agent of the node by its ID

	works func(capabilities.ID) bool         // whether an agent's program is in a turn
	reads func(capabilities.ID) *view.Absent // why nobody reads an agent's mail; nil if somebody may
}

func newViewer(s *mailbox.State, n *Node) *viewer {
	return &viewer{state: s, secrets: n.secrets, now: n.clock(), sees: s.ID == n.host, works: n.works, reads: n.reads}
}

func (b *mailboxActor) viewer() *viewer { return newViewer(b.state, b.node) }

// works reports whether an agent of the node has a program that runs, or gets ready. A message to it waits until that turn ends.
func (n *Node) works(id capabilities.ID) bool {
	if id.Node != n.id {
		return false
	}
	m, there := n.journal.Mailbox(id)
	if !there {
		return false
	}
	s, err := statusByNote(id, n.host, m)
	return err == nil && s.Runtime != "" && (s.Status == mailbox.Running || s.Status == mailbox.Initializing)
}

// reads returns why nobody reads the mailbox of an agent of the node now; nil if somebody may, and for agents of other nodes.
func (n *Node) reads(id capabilities.ID) *view.Absent {
	if id.Node != n.id {
		return nil
	}
	m, there := n.journal.Mailbox(id)
	if !there {
		return nil
	}
	if r, err := openNote(m.Note); err != nil || r.status() != mailbox.Closed { // most are not
		return nil
	}
	s, err := statusByNote(id, n.host, m)
	if err != nil {
		return nil
	}
	why := &view.Absent{Archived: !s.Ended}
	if s.Of.IsZero() {
		return why
	}
	if m, there := n.journal.Mailbox(s.Of); there {
		if address, err := statusByNote(s.Of, n.host, m); err == nil && address.Status != mailbox.Closed {
			why.Address, why.AddressName = s.Of, address.Title
		}
	}
	return why
}

// absence returns why nobody reads what the agent sent to another, with the agent's names; nil if somebody may.
func (v *viewer) absence(to capabilities.ID) *view.Absent {
	why := v.reads(to)
	if why != nil && !why.Address.IsZero() {
		why.AddressName = cmp.Or(v.nameOf(why.Address), why.AddressName)
	}
	return why
}

// absences notes with the receipts of what the agent sent which recipients will not read it for now.
func (v *viewer) absences(e *view.Message, m *mailbox.Message) {
	if !e.Sent || e.Received || m.Refused != "" || m.Form != nil && !m.Form.IsOpen() {
		return
	}
	wanted := m.Form != nil || m.Posted.AckBy != 0 && !e.Acknowledged
	for i := range e.Receipts {
		if r := &e.Receipts[i]; wanted || r.State.Rank() < events.Shown.Rank() {
			r.Absent = v.absence(r.By)
		}
	}
	to := m.To()
	if slices.ContainsFunc(e.Receipts, func(r view.Receipt) bool { return r.By == to }) || slices.ContainsFunc(e.Unreached, func(u view.Unreached) bool { return u.ID == to }) {
		return
	}
	if why := v.absence(to); why != nil {
		r := v.receipt(mailbox.Receipt{By: to, Reader: to, State: e.State})
		r.Absent = why
		e.Receipts = append(e.Receipts, r)
	}
}

// nameOf returns the agent's name for another. It notes a name that is not in memory.
func (v *viewer) nameOf(id capabilities.ID) string {
	name, err := v.state.Names.Of(id)
	if err != nil {
		v.absent = err
	}
	return name
}

// deciderOf returns the viewer's name for who has ended a form, is on it, or got or read a message: SELF for itself, as the host is to itself too.
func (v *viewer) deciderOf(id capabilities.ID) string {
	if id == v.state.ID {
		return "SELF"
	}
	return v.nameOf(id)
}

func (v *viewer) wasDelivered(m *mailbox.Message) bool {
	if v.waiting == nil {
		v.waiting = v.state.Undelivered()
	}
	return !v.waiting[m]
}

func (v *viewer) envelope(m *mailbox.Message) (view.Message, error) {
	v.absent = nil
	e := view.Message{
		Number: m.Number, Changed: m.Changed, Type: m.Type(), MessageID: m.ID(), Date: m.Date(), Dismissed: m.Dismissed,
		From: m.From(), FromName: v.nameOf(m.From()), To: m.To(), ToName: v.nameOf(m.To()),
		Sent: v.state.Mail.Sent(m), Received: v.state.Mail.Received(m), ReplyTo: m.ReplyTo(), SnoozedUntil: v.state.Mail.Snoozed.Until(m.Number),
	}
	var err error
	if e.Unread, err = v.state.Mail.Index.IsUnread(m.Number); err != nil {
		return e, err
	}
	if p := m.Posted; p != nil && !p.Author.IsZero() && p.Author != p.From {
		e.Author, e.AuthorName = p.Author, v.nameOf(p.Author)
		e.AuthorSaid = v.said(p.Author, e.AuthorName, p.AuthorSaid)
	}
	if !e.ReplyTo.IsZero() { // most are no reply
		e.Thread = m.Thread()
		parent, ok, err := v.state.Mail.Index.NumberOf(e.ReplyTo)
		if err != nil {
			return e, err
		}
		if ok {
			e.ReplyNumber = &parent
		}
	}
	if m.Behind != nil && m.To() == m.Behind.Promise {
		e.ToName = m.Behind.Path
	}
	if e.Promised = v.promised(m); e.Promised == nil {
		e.Delivered = e.Sent && m.Refused == "" && v.wasDelivered(m)
	}
	e.ToFollow = v.toFollow(m)
	if e.Received || e.Delivered {
		if e.State, err = mailbox.StateOf(&v.state.Mail, m); err != nil {
			return e, err
		}
	}
	if e.Acknowledged, e.Overdue, err = mailbox.IsAcknowledged(&v.state.Mail, m.Number); err != nil {
		return e, err
	}
	for _, r := range m.Receipts {
		e.Receipts = append(e.Receipts, v.receipt(r))
	}
	arrived, waiting := v.state.Arrived(m)
	for _, id := range append(arrived, waiting...) {
		if slices.ContainsFunc(m.Receipts, func(r mailbox.Receipt) bool { return r.By == id }) {
			continue
		}
		r := v.receipt(mailbox.Receipt{By: id, Reader: id, State: events.Delivered})
		if r.Known = view.KnownByLog; slices.Contains(waiting, id) {
			r.State = ""
		}
		e.Receipts = append(e.Receipts, r)
	}
	for i := range m.Unreached {
		e.Unreached = append(e.Unreached, v.unreached(&m.Unreached[i]))
	}
	for i := range m.Members {
		e.Members = append(e.Members, v.member(&m.Members[i]))
	}
	for _, c := range m.Counts {
		if m.From() != v.state.ID && c.By != v.state.ID { // what a group in this group counts is in the group's own
			continue
		}
		shown := view.Counted{By: c.By, ByName: v.deciderOf(c.By), Known: view.KnownByLog, MemberCounts: c.Counts}
		if c.By.Node != v.state.ID.Node {
			shown.Known = view.KnownByNode
		}
		e.Counts = append(e.Counts, shown)
	}
	v.absences(&e, m)
	if m.Posted != nil {
		e.Refused = m.Refused
		v.message(&e, m.Posted)
		if e.Received {
			e.DraftAt = v.state.Mail.Texts.For(m.From(), m.ID()).Date
		}
		return e, v.absent
	}
	return e, cmp.Or(v.form(&e, m.Form), v.absent)
}

func (v *viewer) receipt(r mailbox.Receipt) view.Receipt {
	shown := view.Receipt{
		By: r.By, ByName: v.nameOf(r.By), Reader: r.Reader, ReaderName: v.deciderOf(r.Reader), State: r.State, At: r.At, How: r.How, Known: view.KnownByLog,
	}
	if !r.By.IsZero() && r.By.Node != v.state.ID.Node {
		shown.Known = view.KnownByNode
	}
	return shown
}

// recipients returns recipients as they are shown.
func (v *viewer) recipients(all []events.Recipient) (shown []view.Recipient) {
	for _, r := range all {
		one := view.Recipient{Party: view.Party{ID: r.Agent, Name: v.deciderOf(r.Agent)}}
		if one.Name == "" {
			one.Said = r.Name
		}
		shown = append(shown, one)
	}
	return shown
}

// unreached returns whom a message did not reach, as it is shown.
func (v *viewer) unreached(e *events.MessageUnreached) view.Unreached {
	shown := view.Unreached{
		Recipient: v.recipients([]events.Recipient{{Agent: e.Agent, Name: e.Name}})[0], Why: e.Why, At: e.Date, By: e.By, ByName: v.nameOf(e.By), Known: view.KnownByLog,
	}
	if e.By.Node != v.state.ID.Node {
		shown.Known = view.KnownByNode
	}
	return shown
}

// member returns how far a message has come with a member of a group, as it is shown.
func (v *viewer) member(e *events.MemberReported) view.Member {
	shown := view.Member{
		Recipient: v.recipients([]events.Recipient{{Agent: e.Member, Name: e.Name}})[0], State: e.State, How: e.How, At: e.Date, By: e.By, ByName: v.nameOf(e.By), Known: view.KnownByLog,
	}
	if e.By.Node != v.state.ID.Node || e.Member.Node != v.state.ID.Node {
		shown.Known = view.KnownByNode
	}
	return shown
}

func (v *viewer) message(e *view.Message, p *events.MessagePosted) {
	e.FromSaid = v.said(e.From, e.FromName, p.Sender)
	e.Header = p.Header
	e.Recipients, e.Late = v.recipients(p.Recipients), v.recipients(p.Late)
	if p.Escalate != nil {
		e.Escalate = &v.recipients([]events.Recipient{*p.Escalate})[0]
	}
	e.Text, e.Queued, e.Interrupted = mailbox.ShowText(p.Text), v.state.Runs.IsPrompt(e.Number), v.state.Runs.WasInterrupted(e.Number)
	if e.Sent && !e.Received && e.Refused == "" && e.State.Rank() == 0 {
		e.Queued = v.works(p.To)
	}
	for _, s := range p.Text {
		if s.Edge == "" {
			continue
		}
		if e.Edges == nil {
			e.Edges = map[string]capabilities.Value{}
		}
		e.Edges[s.Edge] = s.Value
	}
}

// said returns what an agent calls itself, where the viewer has no name for it and cannot look it up; else "".
func (v *viewer) said(id capabilities.ID, name, itself string) string {
	if name != "" || capabilities.Special(itself) != "" {
		return ""
	}
	if v.sees && id.Node == v.state.ID.Node {
		if gone := v.reads(id); gone == nil || !gone.Archived { // as a topic that has ended, which no list has
			return ""
		}
	}
	return itself
}

func (v *viewer) form(e *view.Message, f *mailbox.Form) error {
	e.Title, e.Description, e.Fields, e.Permission = f.Title, f.Description, f.Fields, f.Permission()
	if e.Permission != nil {
		e.Folder, e.Digest = e.Permission.Folder, e.Permission.Digest()
		if u := e.Permission.Use; u != nil && e.Received { // of several names, the one that the reference was given by
			e.FromName = u.Name
		}
	}
	e.FromSaid = v.said(e.From, e.FromName, f.Asker)
	e.PromiseID, e.ResolverID = f.Promise, f.Resolver
	e.Deadline, e.NoForward, e.Passkey, e.Origin = f.Deadline, f.NoForward, f.AsksPasskey(), f.AskedIn()
	e.Held = f.IsOpen() && e.Origin != nil && e.Origin.Dialect == events.Held
	e.Forwarder, e.ForwardName = f.Forwarder, v.nameOf(f.Forwarder)
	for _, id := range f.Chain {
		e.Chain = append(e.Chain, view.Party{ID: id, Name: v.nameOf(id)})
	}
	e.Steps, e.ForwardedTo = v.steps(f), v.forwardedTo(f)
	if f.Draft != nil {
		e.DraftAt = f.Draft.Date
	}
	e.Answering, e.Refused = f.Queued().Answer != nil, f.Queued().Refused
	if a := f.Amended(); a != nil {
		e.Revision = a.Revision
		e.Amendment = &view.Amendment{At: a.Date, Note: a.Note, Changes: f.Changes()}
	}
	e.Route, e.Votes, e.Review = v.route(f), v.votes(f), v.review(f)
	e.AnswerNeeded = e.Received && f.NeedsAnswer(v.state)
	if f.IsOpen() {
		e.Claim = v.claim(f)
		return nil
	}
	outcome, err := v.outcome(f, false)
	e.Outcome = &outcome
	return err
}

// review returns the review of an approval; nil if there is none.
func (v *viewer) review(f *mailbox.Form) *view.Review {
	r := f.Review()
	if r.By().IsZero() {
		return nil
	}
	shown := &view.Review{By: r.By(), ByName: v.nameOf(r.By())}
	if a := r.Asked; a != nil {
		shown.MayAllow, shown.Until = a.MayAllow, a.Until
	}
	if e := r.Ended; e != nil {
		shown.How, shown.Note, shown.At = e.How, e.Note, e.Date
	}
	return shown
}

// outcome returns the outcome of a form. With reveal, sealed values are opened for the asker.
func (v *viewer) outcome(f *mailbox.Form, reveal bool) (view.Outcome, error) {
	o := view.Outcome{Status: view.StatusOpen, Form: f.ID, Promise: f.Promise}
	if c := f.Ended; c != nil {
		o.Status, o.By, o.At, o.Note, o.Settlement = view.FormStatus(c.Reason), c.By, c.Date, c.Note, c.Answer
		o.ByName = v.deciderOf(c.By)
		return o, v.absent
	}
	a := f.Answered
	if a == nil {
		return o, nil
	}
	o.Status, o.By, o.ByName, o.At, o.Settlement = view.StatusAnswered, a.By, v.deciderOf(a.By), a.Date, a.Answer
	o.Signed = mailbox.Signed(f) != nil
	if o.Allowed = v.state.Allows(f); f.From == v.state.ID {
		o.Digest = f.Digest()
	}
	if a.Withheld && a.Values.IsNull() || v.absent != nil {
		return o, v.absent
	}
	o.Values = a.Values
	if f.Kind == events.Approval {
		if o.EditedInput = mailbox.EditedInput(a.Values); o.EditedInput != "" {
			edited := f.Permission()
			edited.Input = o.EditedInput
			o.EditedDigest = edited.Digest()
		}
	}
	for _, field := range f.Fields {
		if record, _ := a.Values.AsRecord(); !a.Withheld || !record[field.Name].IsNull() {
			o.Order = append(o.Order, field.Name)
		}
	}
	if !reveal || f.From != v.state.ID {
		return o, nil
	}
	opened, err := v.secrets.Open(a.Values)
	o.Values = opened
	return o, err
}

// sizeOf returns the bytes of text in a message, which is less than its JSON has.
func sizeOf(m *view.Message) int {
	n := len(m.Text) + len(m.Title) + len(m.Description)
	if m.Permission != nil {
		n += len(m.Permission.Input)
	}
	return n
}

// Mail lists and follows an agent's messages and forms.
type Mail struct{ agent *Agent }

// Mail returns the agent's messages and forms.
func (a *Agent) Mail() Mail { return Mail{a} }
