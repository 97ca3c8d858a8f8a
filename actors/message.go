package actors

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
	messagetext "parley/mailbox/text"
	"parley/persistence"
)

// Send sends a message in which @name and @edge:name carry what the agent has under those names. Package mailbox/text says
// where they do. To is as in Ask.
func (a *Agent) Send(ctx context.Context, to, text string) (view.Sent, error) {
	return Post(ctx, a, mailbox.PostMessage{To: to, Post: parley.Post{Text: text}})
}

// Reply sends a message to the other party of one that the agent got or sent.
func (a *Agent) Reply(ctx context.Context, ref capabilities.FormRef, text string) (view.Sent, error) {
	return Post(ctx, a, mailbox.PostMessage{Reply: ref, Post: parley.Post{Text: text}})
}

// Post has an agent send a message or a reply.
func Post(ctx context.Context, a *Agent, p mailbox.PostMessage) (view.Sent, error) {
	sent, err := call(ctx, a, postMessage{p})
	sent.result.Unreachable = anyUnreachable(a.node, ctx, sent.waits)
	return sent.result, err
}

// postMessage sends a message.
type postMessage struct{ command mailbox.PostMessage }

func (m postMessage) handle(b *mailboxActor) (pending[view.Sent], error) {
	e, err := postOnce(b, m.command)
	if err != nil {
		return pending[view.Sent]{}, err
	}
	sent := view.Sent{Message: e.Message, Number: e.Number, Queued: e.To != b.reg.id && b.node.works(e.To)}
	sent.Given, sent.Plain = messagetext.References(m.command.Text, e.Text)
	v := b.viewer()
	if sent.Promised, err = promisedOf(b, e.Message); err != nil {
		return pending[view.Sent]{}, err
	}
	sent.Recipients = v.recipients(e.Recipients)
	for _, to := range (&mailbox.Message{Posted: e}).Recipients() {
		if why := v.absence(to); why != nil {
			r := v.receipt(mailbox.Receipt{By: to, Reader: to})
			r.Absent = why
			sent.Absent = append(sent.Absent, r)
		}
	}
	if m.command.All {
		rest, err := recalled(b.old, func() ([]events.Recipient, error) { return m.missed(b) })
		if err != nil {
			return pending[view.Sent]{}, err
		}
		sent.NotTo = v.recipients(rest)
	}
	waits := nodesTo(b, e.To)
	for i := 1; i < len(e.Recipients); i++ {
		waits = append(waits, nodesTo(b, e.Recipients[i].Agent)...)
	}
	return pending[view.Sent]{sent, waits}, v.absent
}

// missed returns those whom a reply to all does not go to.
func (m postMessage) missed(b *mailboxActor) ([]events.Recipient, error) {
	parent, err := b.state.Mail.Find(m.command.Reply)
	if err != nil {
		return nil, err
	}
	_, rest, err := b.state.Others(parent, b.node.now())
	return rest, err
}

// Adopt binds a name to what a message carries under an edge; an empty name is the edge's.
func (a *Agent) Adopt(ctx context.Context, ref capabilities.FormRef, edge, name string) error {
	return a.do(ctx, mailbox.AdoptName{Message: ref, Edge: edge, Name: name})
}

// Dismiss hides a message.
func (a *Agent) Dismiss(ctx context.Context, ref capabilities.FormRef) error {
	return a.do(ctx, mailbox.DismissMessage{Message: ref})
}

// Restore shows a message again that was dismissed.
func (a *Agent) Restore(ctx context.Context, ref capabilities.FormRef) error {
	return a.do(ctx, mailbox.RestoreMessage{Message: ref})
}

// Snooze takes a message out of the list of those that wait, until a time. It comes back unread. A time that has passed
// brings it back now.
func (m Mail) Snooze(ctx context.Context, ref capabilities.FormRef, until capabilities.Time) error {
	return m.agent.do(ctx, mailbox.SnoozeMessage{Message: ref, Until: until})
}

// Move moves messages between the lists of the inbox in one commit. It returns why each is refused, in their order; nil for
// those that are moved.
func (m Mail) Move(ctx context.Context, c mailbox.MoveMessages) ([]error, error) {
	return call(ctx, m.agent, moveMessages{c})
}

type moveMessages struct{ command mailbox.MoveMessages }

func (m moveMessages) handle(b *mailboxActor) (refused []error, err error) {
	now := b.node.now()
	evs, err := recalled(b.old, func() (evs []events.Event, err error) {
		evs, refused = b.state.MoveEach(b.node.accounts.limits(b.reg.id, now), m.command, now, b.node.newID)
		for _, err := range refused {
			if absent, ok := errors.AsType[*mailbox.PagedOut](err); ok {
				return nil, absent
			}
		}
		return evs, nil
	})
	if err != nil || len(evs) == 0 {
		return refused, err
	}
	return refused, b.commit(now, evs)
}

// Prompt sends an agent a message to work on, in plain words. If it has a program that is not running yet, that runs
// when Prompt returns; an error means that it does not. The same key is the same message, however often it is sent.
// It refuses with AGENT_ARCHIVED, and with RATE_LIMITED when as many programs run as may.
func (a *Agent) Prompt(ctx context.Context, to *Agent, text, key string) (view.Prompted, error) {
	if _, err := call(ctx, to, checkPrompt{}); err != nil && !hasSent(a, ctx, key) {
		return view.Prompted{}, err
	}
	sent, err := callRelay(ctx, a, sendPrompt{to.id, mailbox.PostMessage{To: to.id.String(), Post: parley.Post{Text: text, Plain: true, Key: key}}})
	if err != nil || sent.run == nil {
		return sent.Prompted, err
	}
	select {
	case <-sent.run.accepted:
	case <-ctx.Done():
		return view.Prompted{}, errEnded(ctx, a.node)
	}
	if sent.run.failed != nil {
		return view.Prompted{}, programError(sent.run.failed)
	}
	sent.Running = true
	return sent.Prompted, nil
}

// promptResult is an accepted message to an agent, and the run that works on it, if there is one.
type promptResult struct {
	view.Prompted
	run *run
}

// sendPrompt posts a message to an agent of the node, or finds one that was posted before.
type sendPrompt struct {
	to   capabilities.ID
	post mailbox.PostMessage
}

func (m sendPrompt) handle(b *mailboxActor, reply replyTo[promptResult]) {
	posted, err := postOnce(b, m.post)
	if err != nil {
		reply.release(b, promptResult{}, err)
		return
	}
	b.node.registry.tell(m.to, b.last, &queryPrompt{posted.Message, reply})
}

// queryPrompt returns the state of a message at the agent that it was sent to.
type queryPrompt struct {
	message capabilities.ID
	reply   replyTo[promptResult]
}

func (m *queryPrompt) handle(b *mailboxActor) {
	p, r, err := promptState(b, m.message)
	m.reply.release(b, promptResult{p, r}, err)
}

func (m *queryPrompt) fail(err error) { m.reply.fail(err) }

// hasSent reports whether the agent has sent a message with a key.
func hasSent(a *Agent, ctx context.Context, key string) bool {
	sent, err := call(ctx, a, queryPosted{key})
	return err == nil && sent
}

// queryPosted reports whether the agent has posted a message with a key.
type queryPosted struct{ key string }

func (m queryPosted) handle(b *mailboxActor) (bool, error) { return b.state.Mail.Keys.HasPosted(m.key) }

// checkPrompt refuses a message that the agent could not work on now.
type checkPrompt struct{}

func (checkPrompt) handle(b *mailboxActor) (none, error) {
	_, running := b.state.Runs.Current()
	switch {
	case b.state.Profile.Archived:
		return none{}, errArchived()
	case b.state.Runs.HasProgram() && b.node.supervisor.isHeld():
		return none{}, errHeld()
	case b.state.Runs.HasProgram() && !running && b.node.supervisor.full():
		return none{}, errFull()
	}
	return none{}, nil
}

func errArchived() error { return parley.Refuse(parley.AgentArchived, "the agent is archived") }

func errFull() error {
	return parley.Refuse(parley.RateLimited, "as many programs run as may at once").WithHint("try again when one has ended")
}

// postOnce posts a message, or finds the one that was posted under its key.
func postOnce(b *mailboxActor, p mailbox.PostMessage) (*events.MessagePosted, error) {
	known, err := recalled(b.old, func() (*mailbox.Message, error) {
		m, _, err := p.FindExisting(b.state)
		return m, err
	})
	if err != nil {
		return nil, err
	} else if known != nil {
		return known.Posted, nil
	}
	evs, err := b.decide(p)
	if err != nil {
		return nil, err
	}
	for _, e := range evs {
		if posted, ok := e.(*events.MessagePosted); ok { // the first, or the second of one that is queued
			return posted, nil
		}
	}
	return nil, parley.Refuse(parley.Internal, "no message was posted")
}

// promptState returns the state of a message to this agent.
func promptState(b *mailboxActor, message capabilities.ID) (view.Prompted, *run, error) {
	if b.state.Profile.Archived { // since it was asked
		return view.Prompted{}, nil, errArchived()
	}
	m, err := recalled(b.old, func() (*mailbox.Message, error) { return b.state.Mail.FindID(message) })
	if err != nil {
		return view.Prompted{}, nil, parley.Refuse(parley.NotPermitted, "the agent would not have the message")
	}
	p := view.Prompted{Message: message}
	for _, waiting := range b.state.Runs.Prompts() {
		p.Queued = p.Queued || waiting == m
	}
	if r := b.node.supervisor.currentRun(b.reg.id); r != nil && r.prompt == message {
		return p, r, nil
	}
	return p, nil, nil
}

// Counts returns the numbers of messages in the lists of the agent's inbox.
func (m Mail) Counts(ctx context.Context) (view.MessageCounts, error) {
	return read(ctx, m.agent, countMessages{})
}

// countMessages returns the numbers of messages in the lists. It costs no more than the index, and where nothing has changed
// since the last time, nothing: a thousand pages that are open ask after each change.
type countMessages struct{}

func (countMessages) handle(b *mailboxActor) (view.MessageCounts, error) {
	if b.counted.of == b.state && b.counted.version == b.state.Version {
		return b.counted.counts, nil
	}
	if err := b.old.count(); err != nil {
		return view.MessageCounts{}, err
	}
	c, err := mailbox.CountsOf(b.state)
	counts := view.MessageCounts{Pending: c.Pending, Snoozed: c.Snoozed, Done: c.Done, Unread: c.Unread, All: c.All}
	if err == nil {
		b.counted = counted{b.state, b.state.Version, counts}
	}
	return counts, err
}

// counted are the numbers of messages in the lists of a mailbox at a version.
type counted struct {
	of      *mailbox.State
	version uint64
	counts  view.MessageCounts
}

// MarkRead marks messages as read or, with unread, as not read. Without numbers, it marks all unread messages as read, at
// most mailbox.MaxMarked of them, the newest first. It returns the number of unread messages that are left.
func (m Mail) MarkRead(ctx context.Context, numbers []uint64, unread bool) (left int, err error) {
	if _, err := callRelay(ctx, m.agent, markRead{numbers, unread}); err != nil {
		return 0, err
	}
	c, err := m.Counts(ctx)
	return c.Unread, err
}

type markRead struct {
	numbers []uint64
	unread  bool
}

func (m markRead) handle(b *mailboxActor, reply replyTo[none]) {
	numbers := m.numbers
	if len(numbers) == 0 && !m.unread {
		for l, err := range b.old.newest(view.MessageFilter{Unread: true}, math.MaxUint64) {
			if err != nil {
				reply.release(b, none{}, err)
				return
			}
			if numbers = append(numbers, l.Number); len(numbers) == mailbox.MaxMarked {
				break
			}
		}
	}
	evs, err := marking(b, mailbox.MarkMessages{Numbers: numbers, Unread: m.unread}, func(c mailbox.Command) ([]events.Event, error) { return b.propose(c, b.node.now()) })
	if err != nil || len(evs) == 0 && b.notes == nil {
		reply.release(b, none{}, err)
		return
	}
	b.keep(note{reply: reply}, func(n *notes) {
		for _, number := range numbers {
			n.unread[number] = m.unread
		}
	})
}

// SaveDraft keeps the agent's unfinished answer to a form, until the form ends. No texts remove it. It returns when the
// draft, or a later one of the same form, is durable.
func (m Mail) SaveDraft(ctx context.Context, ref capabilities.FormRef, texts []events.FieldText) error {
	_, err := callRelay(ctx, m.agent, saveDraft{ref, texts})
	return err
}

type saveDraft struct {
	form  capabilities.FormRef
	texts []events.FieldText
}

func (m saveDraft) handle(b *mailboxActor, reply replyTo[none]) {
	c, err := m.command(b)
	if err == nil {
		_, err = b.propose(c, b.node.now())
	}
	if err != nil {
		reply.release(b, none{}, err)
		return
	}
	key := draftKey{form: c.Form.ID()}
	b.keep(note{key, reply}, func(n *notes) { n.drafts[key] = c })
}

// command returns the command of the draft, with the form's ID and sealed secrets.
func (m saveDraft) command(b *mailboxActor) (mailbox.SaveDraft, error) {
	msg, err := recalled(b.old, func() (*mailbox.Message, error) { return b.state.Mail.FindForm(m.form) })
	if err != nil {
		return mailbox.SaveDraft{}, err
	}
	values, err := msg.Form.DraftValues(m.texts)
	if err != nil {
		return mailbox.SaveDraft{}, err
	}
	sealed, err := b.node.secrets.SealFields(form.Secrets(msg.Form.Fields), values)
	maps.Copy(values, sealed)
	return mailbox.SaveDraft{Form: capabilities.FormID(msg.ID()), Values: values}, err
}

// DraftMessage keeps the unfinished text of a message to an agent, or of a reply, until it is sent. An empty text removes
// it. It returns when the text, or a later one for the same place, is durable.
func (m Mail) DraftMessage(ctx context.Context, draft mailbox.DraftMessage) error {
	_, err := callRelay(ctx, m.agent, draftMessage{draft})
	return err
}

type draftMessage struct{ draft mailbox.DraftMessage }

func (m draftMessage) handle(b *mailboxActor, reply replyTo[none]) {
	key, err := placeOf(b, m.draft)
	if err == nil {
		_, err = b.propose(m.draft, b.node.now())
	}
	if err != nil {
		reply.release(b, none{}, err)
		return
	}
	b.keep(note{key, reply}, func(n *notes) { n.drafts[key] = m.draft })
}

func placeOf(b *mailboxActor, draft mailbox.DraftMessage) (draftKey, error) {
	return recalled(b.old, func() (key draftKey, err error) {
		key.to, key.replyTo, err = b.state.DraftPlace(draft, b.node.now())
		return key, err
	})
}

// MessageDraft returns the unfinished text of a message to an agent, or of a reply.
func (m Mail) MessageDraft(ctx context.Context, to string, reply capabilities.FormRef) (view.Draft, error) {
	return read(ctx, m.agent, queryMessageDraft{mailbox.DraftMessage{To: to, Reply: reply}})
}

type queryMessageDraft struct{ place mailbox.DraftMessage }

func (m queryMessageDraft) handle(b *mailboxActor) (view.Draft, error) {
	key, err := placeOf(b, m.place)
	if err != nil {
		return view.Draft{}, err
	}
	d := b.state.Mail.Texts.For(key.to, key.replyTo)
	return view.Draft{Texts: []events.FieldText{}, Text: d.Text, SavedAt: d.Date}, nil
}

// Draft returns the agent's unfinished answer to a form. Texts of secret fields are left out for a token whose scopes do not
// include them.
func (m Mail) Draft(ctx context.Context, ref capabilities.FormRef) (view.Draft, error) {
	return read(ctx, m.agent, queryDraft{ref, m.agent.reveals()})
}

type queryDraft struct {
	form   capabilities.FormRef
	reveal bool
}

func (m queryDraft) handle(b *mailboxActor) (view.Draft, error) {
	msg, err := b.state.Mail.FindForm(m.form)
	if err != nil {
		return view.Draft{}, err
	}
	d := view.Draft{Texts: []events.FieldText{}}
	if msg.Form.Draft == nil {
		return d, nil
	}
	values := msg.Form.Draft.Values
	if m.reveal {
		if values, err = b.node.secrets.Open(values); err != nil {
			return d, err
		}
	}
	d.Texts, d.SavedAt = append(d.Texts, msg.Form.DraftTexts(values)...), msg.Form.Draft.Date
	return d, nil
}

// notePause is the time between two writes of an agent's notes. Notes that come earlier wait together, and only the last
// draft of a form or message is written.
const notePause = 500 * time.Millisecond

// notes are marks of messages and drafts that are written together. None is accepted before it is durable.
type notes struct {
	node    *Node
	mailbox capabilities.ID
	unread  map[uint64]bool // by the number of a marked message
	drafts  map[draftKey]mailbox.Command
	waiting []note
}

// draftKey tells what a draft is for: the answer to a form, a message to an agent, or a reply to a message.
type draftKey struct{ form, to, replyTo capabilities.ID }

// note is one of them: a draft, or with no key the marks of messages.
type note struct {
	draft draftKey
	reply replyTo[none]
}

// keep has a note written with those that wait, which add adds it to: now, or when the pause has passed.
func (b *mailboxActor) keep(one note, add func(*notes)) {
	first := b.notes == nil
	if first {
		b.notes = &notes{node: b.node, mailbox: b.reg.id, unread: map[uint64]bool{}, drafts: map[draftKey]mailbox.Command{}}
	}
	n := b.notes
	add(n)
	n.waiting = append(n.waiting, one)
	pause := notePause - time.Since(b.notesAt)
	switch {
	case !first:
	case pause <= 0:
		n.handle(b)
	default:
		time.AfterFunc(pause, n.send)
	}
}

func (n *notes) send() {
	if n.node.life.Err() != nil {
		n.fail(errClosing())
		return
	}
	n.node.registry.tell(n.mailbox, 0, n)
}

func (n *notes) handle(b *mailboxActor) {
	if b.notes == n {
		b.notes = nil
	}
	b.notesAt = time.Now()
	errs := map[draftKey]error{{}: n.mark(b)}
	for key, c := range n.drafts {
		_, errs[key] = b.decide(c)
	}
	for _, one := range n.waiting {
		one.reply.release(b, none{}, errs[one.draft])
	}
}

// marking has a mailbox decide on marks. Those of messages whose content is elsewhere are for the mailbox alone.
func marking(b *mailboxActor, c mailbox.MarkMessages, decide func(mailbox.Command) ([]events.Event, error)) ([]events.Event, error) {
	evs, err := decide(c)
	if _, is := errors.AsType[*persistence.Elsewhere](err); !is {
		return evs, err
	}
	if c.Elsewhere, err = b.old.elsewhere(c.Numbers); err != nil {
		return nil, err
	}
	return decide(c)
}

// mark marks the messages.
func (n *notes) mark(b *mailboxActor) error {
	for _, unread := range []bool{false, true} {
		numbers := slices.Sorted(maps.Keys(n.unread))
		numbers = slices.DeleteFunc(numbers, func(number uint64) bool { return n.unread[number] != unread })
		for some := range slices.Chunk(numbers, mailbox.MaxMarked) {
			if _, err := marking(b, mailbox.MarkMessages{Numbers: some, Unread: unread}, b.decide); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *notes) fail(err error) {
	for _, one := range n.waiting {
		one.reply.fail(err)
	}
}
