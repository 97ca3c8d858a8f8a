package sim

import (
	"errors"
	"slices"

	"parley"
	"parley/actors/outbox"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/quota"
)

// mailboxActor is a mailbox as package actors runs it. Its state includes appended events that are not yet durable. It
// has a queue of messages, the acks of its items, and lines to the other mailboxes of its node.
type mailboxActor struct {
	node *node
	id   capabilities.ID
	name string

	disk []events.Section // durable
	log  []events.Section // all that the state is made of
	snap []byte           // the newest snapshot, of a durable state

	state     *mailbox.State // nil until it is needed
	old       map[uint64]*mailbox.Message
	last      position
	failures  uint64
	redeliver bool
	doubtful  bool
	lines     map[capabilities.ID]*line
	acks      acks
	inbox     []delivery
	deadline  capabilities.Time
	waiters   map[capabilities.ID][]*wait

	forms  []capabilities.ID // that it ever had, also if a crash lost them
	shadow shadow
}

// delivery is a message in a mailbox's queue. It follows from an append of its node.
type delivery struct {
	after position
	what  string
	do    func(*mailboxActor)
	fail  func(error)
}

// ackBatch is the number of acks that are worth an event.
const ackBatch = 4

type (
	ack  = outbox.Ack[position]
	acks = outbox.Acks[position]
)

func (b *mailboxActor) tell(after position, what string, do func(*mailboxActor), fail func(error)) {
	b.inbox = append(b.inbox, delivery{after, what, do, fail})
}

// handle handles the first message of the queue.
func (b *mailboxActor) handle() {
	d := b.inbox[0]
	b.inbox = b.inbox[1:]
	w := b.node.world
	w.trace("%s handles %s", b.name, d.what)
	if err := b.ready(d.after); err != nil {
		d.fail(err)
		return
	}
	b.last = max(b.last, d.after)
	b.redeliverLocal()
	if at := b.state.Summary().Deadline; at != 0 && at <= b.node.now() {
		_, _ = b.decide(mailbox.ExpireForms{})
		_, _ = b.decide(mailbox.RemindForms{})
		_, _ = b.decide(mailbox.EscalateForms{})
	}
	d.do(b)
}

// crash has the first message of the queue crash the mailbox. Its state is made from the log again.
func (b *mailboxActor) crash() {
	if b.last > b.node.journal.settled {
		return // it would wait for its own appends first
	}
	d := b.inbox[0]
	b.inbox = b.inbox[1:]
	b.node.world.trace("%s crashes at %s", b.name, d.what)
	b.node.world.sometimes(mailboxCrashed)
	b.state = nil
	d.fail(errCrashed)
}

// ready makes sure that the state is in memory and agrees with the log.
func (b *mailboxActor) ready(after position) error {
	j := &b.node.journal
	if j.times != b.failures {
		b.failures, b.redeliver = j.times, true
	}
	if j.lost(after) {
		return errFull
	}
	if j.lost(b.last) {
		b.state, b.last = nil, 0
	}
	if b.doubtful && j.failure == nil {
		b.state = nil
	}
	if b.state == nil {
		b.load()
	}
	return nil
}

// load makes the state from the snapshot and the log.
func (b *mailboxActor) load() {
	b.log = slices.Clone(b.disk)
	if b.state = b.replay(b.snap); b.snap != nil {
		b.node.world.sometimes(snapshotUsed)
	}
	b.doubtful = b.node.journal.failure != nil
	b.redeliver = true
	for _, p := range b.state.Outbox.Items() {
		if n := b.node.world.nodeOf(p.To); n != b.node {
			b.node.peer(n).ask(b)
		}
	}
	for form := range b.waiters {
		if m, err := b.find(form); err == nil && !m.Form.IsOpen() {
			b.notify(form)
		}
	}
}

// replay returns the state of the durable log.
func (b *mailboxActor) replay(snap []byte) *mailbox.State {
	w := b.node.world
	s := mailbox.New(b.id)
	if snap != nil {
		var err error
		if s, err = mailbox.Restore(b.id, snap); err != nil {
			w.failf("%s: a snapshot cannot be read: %v", b.name, err)
		}
		if s.Version > b.shadow.version {
			w.failf("%s: a snapshot of version %d is ahead of the log at %d", b.name, s.Version, b.shadow.version)
		}
	}
	old := map[uint64]*mailbox.Message{}
	s.Mail.UseOld(old)
	b.old = old
	for _, section := range b.disk {
		if section.First+uint64(section.Count) <= s.Version+1 {
			continue
		}
		recorded, err := events.Decode(section.Body, int(section.Count))
		if err != nil {
			w.failf("%s: %v", b.name, err)
		}
		for i, r := range recorded {
			if section.First+uint64(i) <= s.Version {
				continue
			}
			if err := b.apply(s, r); err != nil {
				w.failf("%s: the log cannot be replayed: %v", b.name, err)
			}
		}
	}
	return s
}

// apply folds an event into a state, with the old messages that it needs.
func (b *mailboxActor) apply(s *mailbox.State, r events.Recorded) error {
	_, err := recalled(b, s, func() (struct{}, error) { return struct{}{}, s.Apply(r) })
	return err
}

// recalled calls fn until it has all the old messages that it needs.
func recalled[T any](b *mailboxActor, s *mailbox.State, fn func() (T, error)) (T, error) {
	for {
		v, err := fn()
		absent, ok := errors.AsType[*mailbox.PagedOut](err)
		if !ok {
			return v, err
		}
		for _, n := range absent.Numbers {
			var evs []events.Recorded
			for _, version := range s.Mail.Index.Versions(n) {
				evs = append(evs, b.event(version))
			}
			m, err := s.Mail.Rebuild(n, evs)
			if err != nil {
				b.node.world.failf("%s: message %d: %v", b.name, n, err)
			}
			b.old[n] = m
		}
	}
}

// event returns an event of the log.
func (b *mailboxActor) event(version uint64) events.Recorded {
	for _, s := range b.log {
		if version < s.First || version >= s.First+uint64(s.Count) {
			continue
		}
		recorded, err := events.Decode(s.Body, int(s.Count))
		if err != nil {
			b.node.world.failf("%s: %v", b.name, err)
		}
		return recorded[version-s.First]
	}
	b.node.world.failf("%s has no event %d", b.name, version)
	return events.Recorded{}
}

// decide has the state decide on a command, and applies and appends the events that follow.
func (b *mailboxActor) decide(c mailbox.Command) ([]events.Event, error) {
	now := b.node.now()
	evs, err := recalled(b, b.state, func() ([]events.Event, error) {
		return b.state.DecideWithin(b.limits(), c, now, b.node.newID)
	})
	if code := parley.CodeOf(err); code == parley.Internal {
		b.node.world.failf("%s, %T: %v", b.name, c, err)
	}
	if err != nil || len(evs) == 0 {
		return nil, err
	}
	return evs, b.commit(now, evs)
}

// limits returns the quotas of the agent. The host has none.
func (b *mailboxActor) limits() *quota.Limits {
	if b == b.node.mailboxes[0] {
		return nil
	}
	return &b.node.world.limits
}

// commit applies events and appends them, after the events for pending acks.
func (b *mailboxActor) commit(now capabilities.Time, evs []events.Event) error {
	j := &b.node.journal
	if j.failure != nil {
		return j.failure
	}
	atLeast := ackBatch
	if len(evs) == 0 {
		atLeast = 1
	}
	acks := b.acks.Take(nil, atLeast)
	if len(evs) > 0 {
		var refused []ack
		acks, refused = outbox.Split(acks)
		b.acks.Add(refused...)
	}
	noted := b.ackEvents(acks, now)
	all := append(slices.Clone(noted), evs...)
	if len(all) == 0 {
		return nil
	}
	recorded := make([]events.Recorded, len(all))
	for i, e := range all {
		recorded[i] = events.Recorded{At: now, Event: e}
	}
	body, err := events.Append(nil, recorded...)
	if err != nil {
		b.node.world.failf("%s: %v", b.name, err)
	}
	section := events.Section{Mailbox: b.id, First: b.state.Version + 1, Count: uint32(len(all)), Body: body}
	b.log = append(b.log, section)
	last := b.state.Outbox.LastSeq()
	for _, r := range recorded {
		if err := b.apply(b.state, r); err != nil {
			b.node.world.failf("%s decided on %s, which cannot be applied: %v", b.name, events.Name(r.Event), err)
		}
	}
	section.Summary = b.state.Summary()
	b.deadline = section.Summary.Deadline
	b.last = j.append(b.failures, appended{b, section})
	b.node.world.progress++
	if len(b.state.Outbox.Items()) == 0 {
		b.lines = nil
	}
	if b.state.Outbox.LastSeq() > last {
		b.deliver(b.state.Outbox.After(last))
	}
	b.wakePeers(acks)
	for _, e := range all {
		b.noticed(e)
	}
	return nil
}

// ackEvents returns the events for some acks.
func (b *mailboxActor) ackEvents(acks []ack, now capabilities.Time) (evs []events.Event) {
	lost := func(after position) bool {
		is := b.node.journal.lost(after)
		if is {
			b.node.world.sometimes(ackLost)
		}
		return is
	}
	for _, c := range outbox.Records(acks, lost) {
		e, err := recalled(b, b.state, func() ([]events.Event, error) { return b.state.Decide(c, now, b.node.newID) })
		if err != nil {
			b.node.world.failf("%s: a delivery cannot be noted: %v", b.name, err)
		}
		evs = append(evs, e...)
	}
	return evs
}

// noticed wakes the waiters for a form that an event ends.
func (b *mailboxActor) noticed(e events.Event) {
	switch e := e.(type) {
	case *events.FormRequested:
		b.forms = append(b.forms, e.ID)
	case *events.FormAnswered:
		b.notify(e.Form)
	case *events.FormCancelled:
		b.notify(e.Form)
	}
}

func (b *mailboxActor) release(fn func(error)) { b.node.journal.release(b.last, fn) }

// find returns a form of the mailbox.
func (b *mailboxActor) find(form capabilities.ID) (*mailbox.Message, error) {
	return recalled(b, b.state, func() (*mailbox.Message, error) { return b.state.Mail.FindFormID(form) })
}

// deliver sends items on: along lines within the node, and by peers to others.
func (b *mailboxActor) deliver(items []mailbox.OutboxItem) {
	here := false
	for _, p := range items {
		switch n := b.node.world.nodeOf(p.To); {
		case n != b.node:
			b.node.peer(n).ask(b)
		case b.redeliver:
			here = true
		default:
			b.hand(p, b.lineTo(p.To))
		}
	}
	if here {
		b.tell(0, "activate", func(*mailboxActor) {}, func(error) {})
	}
}

// leaveAck notes the ack of an item. A refusal waits for a tick. So it does if the message that has it written meets a
// crash of the mailbox.
func (b *mailboxActor) leaveAck(a ack) {
	b.acks.Add(a)
	if a.Item.Kind == events.OutboxMint || a.Item.Kind == events.OutboxForward {
		b.recordAcks()
	}
}

// recordAcks has the mailbox write its acks.
func (b *mailboxActor) recordAcks() {
	b.tell(0, "record acks", func(b *mailboxActor) { b.commitAcks() }, func(error) {})
}

// wakePeers has items sent that waited for the ack of a grant.
func (b *mailboxActor) wakePeers(acks []ack) {
	if !slices.ContainsFunc(acks, func(a ack) bool { return a.Item.Kind == events.OutboxMint }) {
		return
	}
	for _, p := range b.state.Outbox.Items() {
		if n := b.node.world.nodeOf(p.To); n != b.node {
			b.node.peer(n).ask(b)
		}
	}
}

// isTransient reports whether a failure may pass.
func isTransient(err error) bool {
	code := parley.CodeOf(err)
	return code == parley.ReadOnly || code == parley.Internal
}

func refusal(err error) string {
	if err == nil {
		return ""
	}
	e := parley.AsError(err)
	return string(e.Code) + ": " + e.Message
}
