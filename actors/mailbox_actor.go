package actors

import (
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley"
	"parley/actors/trace"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// mailboxActor is the actor of one mailbox. State includes appended events that are not yet durable.
type mailboxActor struct {
	node  *Node
	reg   *registration
	state *mailbox.State // nil until it is needed
	last  persistence.Position
	saved uint64 // version of the newest snapshot

	head int // bytes of the head of the newest snapshot; 0 if unknown

	old      *oldMail // of the state
	commands uint64   // commands that had an effect

	// Doubtful reports that the state was read while the journal had failed. A commit whose result was unknown then may be
	// stored.
	doubtful bool
	fresh    bool // the state was just made from the log
	unswept  bool // it was not looked whether those who have leases are archived
	silent   bool // the run in it had no output

	counted counted // when they were last asked for

	noted bool             // the newest note in the log is of this state
	shown view.AgentStatus // in that note
	alone bool             // in that note

	failures  uint64 // of the journal, when the message came: what it appends is lost if there are more by then
	redeliver bool   // all items for mailboxes of this node have to be delivered again
	lines     map[capabilities.ID]*line

	ackBuffer []ack                 // reused by commit
	releasing bool                  // acks are not recorded with the present events
	use       mailbox.Usage         // as the node's accounts have it
	holding   []capabilities.NodeID // other nodes whose mail counts for them here
	writer    eventWriter

	notes   *notes    // that wait to be written; nil if there are none
	notesAt time.Time // when the last ones were written
}

// Receive handles one message.
func (b *mailboxActor) Receive(ctx actor.Context) {
	if last, ok := ctx.Message().(shutdown); ok {
		b.state = nil
		last.done()
		return
	}
	if last, ok := ctx.Message().(lastSnapshot); ok {
		last.handle(b)
		return
	}
	d, ok := ctx.Message().(delivery)
	if !ok {
		return
	}
	defer b.node.registry.done(b.reg, d)
	defer func() {
		if p := recover(); p != nil {
			b.node.log.Error("mailbox crashed", "mailbox", b.reg.id.String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			d.fail(fmt.Errorf("mailbox %s crashed: %v", b.reg.id, p))
			panic(p) // the strategy restarts the actor
		}
	}()
	if err := b.ready(d.after); err != nil {
		d.fail(err)
		return
	}
	b.last = max(b.last, d.after)
	b.dropDurable()
	b.redeliverLocal()
	b.reconcileRun()
	mailbox.SetClock(b.state, b.node.now(), b.node.behind())
	b.expireForms()
	expireLeases(b)
	loseUses(b)
	sendQueued(b)
	d.handle(b)
	if b.state != nil {
		sendQueued(b)
	}
	b.startNextRun()
	if b.state != nil {
		b.old.trimPages()
		b.old.trim()
		b.snapshotIfDue()
	}
}

// expireForms ends the forms whose deadline has passed, reminds of others and escalates them. It brings back the
// messages whose snooze has ended. It runs before every message, so no message finds such a form open. The scheduler
// only makes sure that a message comes.
func (b *mailboxActor) expireForms() {
	at := b.state.Summary().Deadline
	if at == 0 || at > b.node.clock() {
		return
	}
	if _, err := b.decide(mailbox.ExpireForms{}); err != nil {
		b.node.log.Warn("deadline not met", "mailbox", b.reg.id.String(), "error", err)
	}
	for _, c := range []mailbox.Command{mailbox.RemindForms{}, mailbox.EscalateForms{}, mailbox.EndReviews{}, mailbox.WakeMessages{}, mailbox.NoteOverdue{}} {
		if _, err := b.decide(c); err != nil {
			b.node.log.Warn("timer not met", "mailbox", b.reg.id.String(), "timer", fmt.Sprintf("%T", c), "error", err)
		}
	}
	for _, n := range b.state.Mail.DueSchedules(b.node.clock()) {
		if _, err := b.decide(mailbox.FireSchedule{Schedule: n, Next: nextTime}); err != nil {
			b.node.log.Warn("scheduled message not sent", "mailbox", b.reg.id.String(), "schedule", n, "error", err)
		}
	}
	if b.state.Topic.IsDue(b.node.clock()) {
		_, err := b.decide(mailbox.PostDigests{Gone: b.node.isArchived})
		if err != nil { // a post is in an archive
			_, err = b.decide(mailbox.PostDigests{Gone: b.node.isArchived, Unread: true})
		}
		if err != nil {
			b.node.log.Warn("digests are not sent", "mailbox", b.reg.id.String(), "error", err)
		}
	}
}

// ready makes sure that the state is in memory and agrees with the log.
func (b *mailboxActor) ready(after persistence.Position) error {
	if why := b.reg.quarantined.Load(); why != nil {
		return why
	}
	if failures := b.node.journal.Failures(); failures != b.failures {
		b.failures, b.redeliver = failures, true
	}
	if b.node.journal.Lost(after) {
		return errLost(b.node.journal.Err())
	}
	if b.node.journal.Lost(b.last) {
		b.state, b.last = nil, 0
		b.reg.last.Store(0)
	}
	if b.doubtful && b.node.journal.Err() == nil {
		b.state = nil
	}
	if b.state == nil {
		return b.node.registry.dispatcher.block(b.load)
	}
	if b.old == nil {
		b.old = lendTo(b)
	}
	return nil
}

// errLost returns the error of a message that follows from a lost append.
func errLost(err error) error {
	if err != nil {
		return err
	}
	return parley.Refuse(parley.ReadOnly, "it could not be stored").WithHint("try again")
}

// load makes the state from the log. It first waits until the mailbox's own appends are durable, which takes time only
// after a crash.
func (b *mailboxActor) load() error {
	if err := b.awaitDurable(); err != nil {
		return err
	}
	troubled := b.node.journal.Err() != nil
	s, saved, err := b.node.replay(b.node.life, b.reg.id)
	if err != nil {
		b.node.log.Error("mailbox put aside", "mailbox", b.reg.id.String(), "error", err)
		if parley.CodeOf(err) == parley.CorruptLog {
			b.node.registry.problem.Store(true)
			b.reg.quarantined.Store(parley.AsError(err))
			b.node.directory.fail(b.reg.id, err)
		}
		return err
	}
	b.node.directory.recovered(b.reg.id)
	b.state, b.saved, b.head, b.counted = s, saved, 0, counted{}
	b.unswept = true
	b.fresh, b.silent = true, wasSilent(b.node, s)
	b.shown, b.alone = statusOf(s), b.reg.id == b.node.host && isAlone(s)
	b.old = lendTo(b)
	b.doubtful = troubled || b.node.journal.Err() != nil
	b.reg.doubtful.Store(b.doubtful)
	if b.reg.id == b.node.host {
		b.node.peers.Remember(s)
		b.node.accounts.remember(s)
	}
	m, _ := b.node.journal.Mailbox(b.reg.id)
	b.noted = m.Note == noteOf(b.shown, b.node.host, b.alone, s.Files.Any())
	b.openAccount()
	b.redeliver = true
	announceOutbox(b)
	if b.reg.loaded.Swap(true) {
		notifyMissed(b)
	}
	return nil
}

// decide has the state decide on a command, and applies and appends the events that follow. They are not durable yet:
// release says when they are.
func (b *mailboxActor) decide(c mailbox.Command) ([]events.Event, error) {
	now := b.node.now()
	evs, err := b.propose(c, now)
	if err != nil || len(evs) == 0 {
		return nil, err
	}
	return evs, b.commit(now, evs)
}

// commit applies events and appends them, after the events for pending acks. Sections of new mailboxes go into the same
// commit.
func (b *mailboxActor) commit(now capabilities.Time, evs []events.Event, more ...events.Section) error {
	if err := b.node.journal.Err(); err != nil {
		return err
	}
	atLeast := ackBatch
	switch {
	case len(evs) == 0:
		atLeast = 1
	case b.releasing:
		atLeast = math.MaxInt // the events may give up these items
	}
	rs := b.reg.acks.take(b.ackBuffer[:0], atLeast)
	b.ackBuffer = rs
	if len(evs) > 0 {
		rs = b.node.registry.putBackRefusals(b.reg, rs)
	}
	noted := ackEvents(b, rs, now)
	if len(noted)+len(evs) == 0 {
		return nil
	}
	section, recorded, err := b.writer.section(b.state, now, noted, evs)
	if err != nil {
		b.node.registry.returnAcks(b.reg, rs)
		return err
	}
	if b.reg.id == b.node.host {
		b.node.hostAliases.note(evs)
		b.node.peers.Note(evs)
		b.node.accounts.note(evs)
	}
	if len(evs) > 0 {
		b.commands++
	}
	last, shown := b.state.Outbox.LastSeq(), b.state.ProfileVersion()
	b.apply(recorded)
	b.account(evs)
	section.Summary, section.Note = b.state.Summary(), b.note(shown)
	b.last = b.node.journal.AppendSince(b.failures, append([]events.Section{section}, more...)...)
	b.reg.last.Store(uint64(b.last))
	b.node.searches.note(b.reg)
	b.node.scheduler.expect(b.reg.id, section.Summary.Deadline)
	if len(b.state.Outbox.Items()) == 0 {
		b.lines = nil
	}
	if b.state.Outbox.LastSeq() > last {
		b.deliver(b.state.Outbox.After(last))
	}
	recountItems(b, evs)
	if len(rs) > 0 {
		resumeAfterMint(b, rs)
		notifyRemoteWaiters(b, rs)
		b.announce(noted)
	}
	b.announce(evs)
	b.notifyTouched(len(noted) + len(evs))
	b.publishStatus(shown)
	return nil
}

// note returns the agent's note, or "" if it is as before. Before is the version of the profile in the present note.
func (b *mailboxActor) note(before uint64) string {
	changed := b.state.ProfileVersion() != before
	alone := b.reg.id == b.node.host && isAlone(b.state)
	if b.noted && !changed && alone == b.alone {
		return ""
	}
	if !b.noted || changed {
		b.shown = statusOf(b.state)
	}
	b.noted, b.alone = true, alone
	return noteOf(b.shown, b.node.host, alone, b.state.Files.Any())
}

func (b *mailboxActor) apply(recorded []events.Recorded) {
	for _, r := range recorded {
		if err := b.state.Apply(r); err != nil {
			panic(err) // events that Decide returned do not fit: the state must not be used any more
		}
	}
}

// release calls fn when the state's events are durable, or with an error when they are lost.
func (b *mailboxActor) release(fn func(error)) { b.node.journal.Release(b.last, fn) }

// announce notifies the waiters for events once the events are durable.
func (b *mailboxActor) announce(evs []events.Event) {
	if b.node.trace != nil {
		b.traceSteps(evs)
	}
	for _, e := range evs {
		if form, ended := endOf(e); ended {
			b.notifyWaiters(form)
		}
		if p, ok := e.(*events.MessagePosted); ok {
			if m := b.state.Mail.OpenIn(p.Thread); m != nil {
				b.notifyAsked(m.ID())
			}
		}
		if u, ok := e.(*events.QueuedUseEnded); ok {
			for _, w := range b.node.remoteAcks.take(formKey{b.reg.id, u.Use}) {
				b.release(func(lost error) { w.put(lost) })
			}
		}
		if m, ok := e.(*events.CapabilityMinted); ok {
			for _, w := range b.node.remoteAcks.take(formKey{b.reg.id, m.Grant.ID}) {
				b.release(func(lost error) { w.put(lost) })
			}
		}
		if number := leaseChanged(e); number != 0 {
			b.release(func(error) { b.node.leases.notify(leaseKey{b.reg.id, number}, none{}) })
		}
		if form, by := voteOf(e); by == b.reg.id {
			b.notifyVoter(form)
		}
		if endsToken(e) {
			b.node.tokenEpoch.Add(1)
			b.release(func(error) { b.node.changed.notify(capabilities.ID{}, none{}) })
		}
	}
	if b.node.changed.has(b.reg.id) {
		b.release(func(error) { b.node.changed.notify(b.reg.id, none{}) })
	}
}

// traceSteps records the spans of events once they are durable.
func (b *mailboxActor) traceSteps(evs []events.Event) {
	for _, e := range evs {
		form, ok := trace.FormOf(e)
		if !ok {
			continue
		}
		step := trace.StepOf(b.reg.id, b.isHome(form), e)
		b.release(func(lost error) {
			if lost == nil {
				b.node.trace.Record(step)
			}
		})
	}
}

// isHome reports whether the mailbox is the home of a form. It looks only while somebody receives spans.
func (b *mailboxActor) isHome(form capabilities.ID) bool {
	if b.node.trace == nil {
		return false
	}
	m, err := b.formOf(form)
	return err == nil && m.Form.From == b.reg.id
}

// endOf returns the form that an event ends.
func endOf(e events.Event) (form capabilities.ID, ended bool) {
	switch e := e.(type) {
	case *events.FormAnswered:
		return e.Form, true
	case *events.FormCancelled:
		return e.Form, true
	}
	return form, false
}

// notifyAsked sends the newest question about an open form of the agent's to those of its waiters that wait for one, once it is durable.
func (b *mailboxActor) notifyAsked(form capabilities.ID) {
	key := formKey{b.reg.id, form}
	if !b.node.ended.has(key) {
		return
	}
	m, err := b.formOf(form)
	if err != nil || len(m.Form.Questions()) == 0 {
		return
	}
	asked := m.Form.Questions()
	newest := asked[len(asked)-1]
	waiting := b.node.ended.takeAsked(key, newest)
	if len(waiting) == 0 {
		return
	}
	o, err := recalled(b.old, func() (view.Outcome, error) { return b.question(m, newest-1) })
	b.release(func(lost error) {
		if lost != nil {
			err = lost
		}
		for _, w := range waiting {
			w.put(result[view.Outcome]{o, err})
		}
	})
}

// question returns the first question about a form of the agent's with a number after one that is known. Its status is open if there
// is none.
func (b *mailboxActor) question(m *mailbox.Message, after uint64) (view.Outcome, error) {
	o := view.Outcome{Status: view.StatusOpen, Form: m.ID(), Promise: m.Form.Promise}
	for _, n := range m.Form.Questions() {
		if n <= after {
			continue
		}
		asked, err := b.state.Mail.Find(capabilities.FormNumber(n))
		if err != nil {
			return o, err
		}
		e, err := b.viewer().envelope(asked)
		if err != nil {
			return o, err
		}
		o.Status, o.By, o.ByName, o.At, o.Note, o.Message = view.StatusAsked, e.From, e.FromName, e.Date, e.Text, &n
		break
	}
	return o, nil
}

// notifyWaiters sends the outcome of a form to its waiters, once it is durable.
func (b *mailboxActor) notifyWaiters(form capabilities.ID) {
	waiting := b.node.ended.take(formKey{b.reg.id, form})
	if len(waiting) == 0 {
		return
	}
	var outcome view.Outcome
	m, err := b.formOf(form)
	if err == nil {
		outcome, err = b.outcomeOf(m.Form, true)
	}
	began, isHome := b.node.now().Std(), b.isHome(form)
	b.release(func(lost error) {
		if lost != nil {
			err = lost
		}
		for _, w := range waiting {
			w.put(result[view.Outcome]{outcome, err})
		}
		if b.node.trace != nil && err == nil && isHome {
			b.node.trace.Record(trace.Told(b.reg.id, form, began))
		}
	})
}

// voteOf returns the form and the agent of a vote that was cast or withdrawn; zero for another event.
func voteOf(e events.Event) (form, by capabilities.ID) {
	switch e := e.(type) {
	case *events.VoteCast:
		return e.Form, e.By
	case *events.VoteWithdrawn:
		return e.Form, e.By
	}
	return form, by
}

// notifyVoter notifies the callers that wait for the home of a form. The home has recorded or withdrawn the agent's
// vote, and that is durable here.
func (b *mailboxActor) notifyVoter(form capabilities.ID) {
	for _, w := range b.node.remoteAcks.take(formKey{b.reg.id, form}) {
		b.release(func(lost error) { w.put(lost) })
	}
}

func logTo(log *slog.Logger) func(*actor.ActorSystem) *slog.Logger {
	return func(*actor.ActorSystem) *slog.Logger { return log }
}

// eventWriter encodes events into a buffer that it reuses.
type eventWriter struct {
	body     []byte
	recorded []events.Recorded
}

// writerBuffer is the size, in bytes, of the largest buffer that an eventWriter keeps.
const writerBuffer = 16 << 10

// section writes down the events that follow a state. What it returns as recorded is good until the next.
func (w *eventWriter) section(s *mailbox.State, now capabilities.Time, evs ...[]events.Event) (events.Section, []events.Recorded, error) {
	clear(w.recorded)
	w.recorded = w.recorded[:0]
	for _, some := range evs {
		for _, e := range some {
			w.recorded = append(w.recorded, events.Recorded{At: now, Event: e})
		}
	}
	body, err := events.Append(w.body[:0], w.recorded...)
	if err != nil {
		return events.Section{}, nil, err
	}
	if len(body) > maxSectionBytes {
		return events.Section{}, nil, parley.Refuse(parley.TooLarge, "%d bytes at once are over the limit of %d", len(body), maxSectionBytes)
	}
	if w.body = body; cap(body) > writerBuffer {
		w.body = nil
	}
	return events.Section{
		Mailbox: s.ID, First: s.Version + 1, Count: uint32(len(w.recorded)), Body: slices.Clone(body),
	}, w.recorded, nil
}

// firstSection writes down the first events of a new mailbox.
func firstSection(s *mailbox.State, now capabilities.Time, genesis ...events.Event) (events.Section, error) {
	var w eventWriter
	section, _, err := w.section(s, now, genesis)
	return section, err
}
