package actors

import (
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// box is the actor of one mailbox. Its state is ahead of the disk by what is on its way there.
type box struct {
	node  *Node
	seat  *seat
	state *mailbox.State // nil until it is needed
	last  persistence.Position
	saved uint64 // version of the newest snapshot

	// The state was read while the journal had failed: a commit that was in doubt then may prove to be stored.
	doubtful bool
	fresh    bool // the state was just made from the log
	silent   bool // the run that was under way then has put out nothing

	failures uint64 // of the journal, when the visit began: what it appends is lost if there are more by then
	owing    bool   // what is owed to mailboxes of this node is to be delivered anew
	lines    map[capabilities.ID]*line

	receipts  []receipt             // room for those being noted
	lettingGo bool                  // receipts are not to be noted with what is decided now
	use       mailbox.Usage         // as the node's accounts have it
	holding   []capabilities.NodeID // other nodes whose mail counts for them here
	scribe    scribe
}

// Receive runs one visit.
func (b *box) Receive(ctx actor.Context) {
	if last, ok := ctx.Message().(farewell); ok {
		b.state = nil
		last.heard()
		return
	}
	v, ok := ctx.Message().(visit)
	if !ok {
		return
	}
	defer b.node.roster.done(b.seat, v)
	defer func() {
		if p := recover(); p != nil {
			b.node.log.Error("mailbox crashed", "mailbox", b.seat.id.String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			v.lost(fmt.Errorf("mailbox %s crashed: %v", b.seat.id, p))
			panic(p) // the supervisor's business
		}
	}()
	if err := b.ready(v.after); err != nil {
		v.lost(err)
		return
	}
	b.last = max(b.last, v.after)
	b.deliverAnew()
	b.takeUp()
	b.meetDeadlines()
	v.run(b)
	b.work()
	b.snapshotIfDue()
}

// meetDeadlines ends the forms whose deadline has passed, so that nobody finds one open and the next one
// finds it expired. The clock only sees to it that somebody comes.
func (b *box) meetDeadlines() {
	at := b.state.Summary().Deadline
	if at == 0 || at > b.node.now() {
		return
	}
	if _, err := b.decide(mailbox.ExpireForms{}); err != nil {
		b.node.log.Warn("deadline not met", "mailbox", b.seat.id.String(), "error", err)
	}
}

// ready sees to it that the state is there and is one that the log will bear out.
func (b *box) ready(after persistence.Position) error {
	if failures := b.node.journal.Failures(); failures != b.failures {
		b.failures, b.owing = failures, true
	}
	if b.node.journal.Lost(after) {
		return errLost(b.node.journal.Err())
	}
	if b.node.journal.Lost(b.last) {
		b.state, b.last = nil, 0
		b.seat.last.Store(0)
	}
	if b.doubtful && b.node.journal.Err() == nil {
		b.state = nil
	}
	if b.state != nil {
		return nil
	}
	return b.node.roster.turns.aside(b.load)
}

func errLost(err error) error {
	if err != nil {
		return err
	}
	return parley.Refuse(parley.ReadOnly, "it could not be stored").WithHint("try again")
}

// load makes the state from the log. What this mailbox appended must be on disk for that, which only a
// crashed one has to wait for.
func (b *box) load() error {
	if !b.node.journal.Durable(b.last) {
		stored := make(chan error, 1)
		b.node.journal.Release(b.last, func(err error) { stored <- err })
		if err := <-stored; err != nil {
			return err
		}
	}
	troubled := b.node.journal.Err() != nil
	s, saved, err := b.node.replay(b.node.life, b.seat.id)
	if err != nil {
		b.node.log.Error("mailbox put aside", "mailbox", b.seat.id.String(), "error", err)
		return err
	}
	b.state, b.saved, b.fresh, b.silent = s, saved, true, b.node.wasSilent(s)
	b.doubtful = troubled || b.node.journal.Err() != nil
	b.seat.doubtful.Store(b.doubtful)
	if b.seat.id == b.node.host {
		b.node.peers.remember(s)
		b.node.accounts.remember(s)
	}
	b.openAccount()
	b.owing = true
	b.owesAbroad()
	if b.seat.loaded.Swap(true) {
		b.catchUp()
	}
	return nil
}

// decide has the state decide on a command, and appends and applies what follows. Nothing leaves the node
// before b.release lets it.
func (b *box) decide(c mailbox.Command) ([]events.Event, error) {
	now := b.node.now()
	evs, err := b.propose(c, now)
	if err != nil || len(evs) == 0 {
		return nil, err
	}
	return evs, b.commit(now, evs)
}

// commit appends and applies events, with those that receipts amount to before them, and with sections of
// new mailboxes in the same commit.
func (b *box) commit(now capabilities.Time, evs []events.Event, more ...events.Section) error {
	if err := b.node.journal.Err(); err != nil {
		return err
	}
	atLeast := receiptsAtOnce
	switch {
	case len(evs) == 0:
		atLeast = 1
	case b.lettingGo:
		atLeast = math.MaxInt // of parcels that are being given up, perhaps
	}
	rs := b.seat.receipts.take(b.receipts[:0], atLeast)
	b.receipts = rs
	noted := b.noted(rs, now)
	if len(noted)+len(evs) == 0 {
		return nil
	}
	section, recorded, err := b.scribe.section(b.state, now, noted, evs)
	if err != nil {
		b.seat.receipts.add(rs...)
		return err
	}
	if b.seat.id == b.node.host {
		b.node.acting.note(evs)
		b.node.peers.note(evs)
		b.node.accounts.note(evs)
	}
	owed, shown := b.state.LastSeq(), b.state.ProfileVersion()
	b.apply(recorded)
	b.account(evs)
	section.Summary = b.state.Summary()
	b.last = b.node.journal.AppendSince(b.failures, append([]events.Section{section}, more...)...)
	b.seat.last.Store(uint64(b.last))
	b.node.clock.expect(b.seat.id, section.Summary.Deadline)
	if len(b.state.Outbox()) == 0 {
		b.lines = nil
	}
	if b.state.LastSeq() > owed {
		b.deliver(b.state.OutboxAfter(owed))
	}
	b.recount(evs)
	if len(rs) > 0 {
		b.mintsArrived(rs)
		b.judged(rs)
		b.announce(noted)
	}
	b.announce(evs)
	b.show(shown)
	return nil
}

func (b *box) apply(recorded []events.Recorded) {
	for _, r := range recorded {
		if err := b.state.Apply(r); err != nil {
			panic(err) // what Decide returned does not fit: the state is not to be used any more
		}
	}
}

// release calls fn when all that the box knows is on disk, or will never be.
func (b *box) release(fn func(error)) { b.node.journal.Release(b.last, fn) }

// announce wakes, once it is durable, who waits for what has happened.
func (b *box) announce(evs []events.Event) {
	for _, e := range evs {
		if form, ended := endOf(e); ended {
			b.wake(form)
			b.node.contracts.drop(b.contractKey(form))
		}
		if endsToken(e) {
			b.release(func(error) { b.node.waits.changed(capabilities.ID{}) })
		}
	}
	if b.node.waits.watched(b.seat.id) {
		b.release(func(error) { b.node.waits.changed(b.seat.id) })
	}
}

// endOf gives the form that an event ends.
func endOf(e events.Event) (form capabilities.ID, ended bool) {
	switch e := e.(type) {
	case *events.FormAnswered:
		return e.Form, true
	case *events.FormCancelled:
		return e.Form, true
	}
	return form, false
}

func (b *box) wake(form capabilities.ID) {
	waiting := b.node.waits.take(b.seat.id, form)
	if len(waiting) == 0 {
		return
	}
	outcome, err := b.outcome(form)
	b.release(func(lost error) {
		if lost != nil {
			err = lost
		}
		for _, w := range waiting {
			w <- result[Outcome]{outcome, err}
		}
	})
}

func (b *box) outcome(form capabilities.ID) (Outcome, error) {
	m, err := b.state.FindFormID(form)
	if err != nil {
		return Outcome{}, err
	}
	return b.view().outcome(m.Form, true)
}

// snapshotIfDue has a snapshot written when enough has happened since the last one: never less than
// half of all, so that the work stays in proportion to the mail.
func (b *box) snapshotIfDue() {
	if b.state == nil || b.state.Version-b.saved < max(snapshotEvents, b.state.Version/2) || !b.node.snapshots.claim() {
		return
	}
	image, err := b.state.Snapshot()
	if err != nil {
		b.node.log.Error("snapshot", "mailbox", b.seat.id.String(), "error", err)
		b.node.snapshots.forgo()
		return
	}
	b.saved = b.state.Version
	id, version := b.seat.id, b.state.Version
	b.release(func(lost error) {
		if lost != nil {
			b.node.snapshots.forgo()
			return
		}
		b.node.snapshots.offer(snapshot{id, version, image})
	})
}

func logTo(log *slog.Logger) func(*actor.ActorSystem) *slog.Logger {
	return func(*actor.ActorSystem) *slog.Logger { return log }
}
