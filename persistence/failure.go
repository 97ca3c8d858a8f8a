package persistence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/internal/disk"
	"parley/internal/regular"
)

// errFenced is the failure of a journal after another process has written to its log. It is permanent.
var errFenced = parley.Refuse(parley.ReadOnly, "another process writes as this node: this one never will again").
	WithHint("one node runs in one place at a time; stop the other, then start this one again")

// errClosed is the failure of a closed journal.
var errClosed = parley.Refuse(parley.ReadOnly, "the journal is closed")

// fail loses all appends that are not settled. The first failure is kept, unless a later one is permanent.
func (o *order) fail(err error) { o.failWith(err, nil) }

// failInDoubt is fail for a commit that may be in the log nevertheless. Its appends have an error of their own: who repeats what
// they say may do it twice, and those behind them were surely not stored.
func (o *order) failInDoubt(err error) { o.failWith(err, outcomeUnknown(err)) }

func (o *order) failWith(err, taken error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failure != nil && !(permanent(err) && !permanent(o.failure)) {
		return
	}
	if taken != nil && o.failure == nil && o.taken > 0 {
		o.doubted = o.settled + Position(o.taken)
		o.spans = append(o.spans, span{o.settled + 1, o.doubted, taken})
	}
	if o.failure == nil {
		o.times++
	}
	o.failure = err
	o.failed.Store(true)
	o.queued, o.taken, o.backlog = nil, 0, 0
	o.waits.Store(false)
	close(o.changed)
	o.changed = make(chan struct{})
	o.settledSome()
	if permanent(err) && !isExactly(err, errClosed) { // the one who reopens it tells of the others
		o.log.Error("the journal has stopped for good", "error", err)
	}
}

// explain has Err say why a server refuses the node. What failed at first, the connection as a rule, does not say that.
func (o *order) explain(why *parley.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failure == nil || permanent(o.failure) || o.failure.Error() == why.Error() {
		return
	}
	o.failure = why
	close(o.changed)
	o.changed = make(chan struct{})
}

// recovered accepts appends again, unless the failure is permanent. Lost appends stay lost.
func (o *order) recovered() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if permanent(o.failure) {
		return o.failure
	}
	if o.next > o.settled {
		if first := max(o.settled, o.doubted) + 1; first <= o.next {
			o.spans = append(o.spans, span{first, o.next, o.failure})
		}
		o.settled = o.next
	}
	o.failure = nil
	close(o.changed)
	o.changed = make(chan struct{})
	o.settledSome()
	return nil
}

// permanent reports whether Reopen cannot end a failure.
func permanent(err error) bool {
	return isExactly(err, errFenced) || isExactly(err, errClosed) || isUnusable(err)
}

// isUnusable reports whether an error is of a log that this program cannot read.
func isUnusable(err error) bool {
	code := parley.CodeOf(err)
	return code == parley.CorruptLog || code == parley.NewerLog
}

// isExactly reports whether err is want itself. errors.Is compares codes only.
func isExactly(err error, want *parley.Error) bool {
	e, ok := errors.AsType[*parley.Error](err)
	return ok && e == want
}

// Err returns nil while the journal works. It returns READ_ONLY while the journal is failed, fenced or closed, and
// CORRUPT_LOG after damage was found.
func (o *order) Err() error {
	if !o.failed.Load() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failure
}

// Failures returns the number of failures so far. It grows before any caller learns of a failure.
func (o *order) Failures() uint64 {
	if !o.failed.Load() {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.times
}

// Fenced reports whether another process has written as this node. It is permanent.
func (o *order) Fenced() bool { return isExactly(o.Err(), errFenced) }

// Changed returns a channel that is closed at the next change of Err. Callers get it before they call Err.
func (o *order) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

// readOnly returns the READ_ONLY error of a failed step. An error with a code is returned unchanged.
func readOnly(doing string, err error) error {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e
	}
	if errors.Is(err, regular.ErrNot) { // which no disk mends
		return parley.Refuse(parley.CorruptLog, "%s: %v", doing, err).
			WithHint("something else is in the place of a file of the node: put that back, or restore a backup into a new folder")
	}
	e := parley.Refuse(parley.ReadOnly, "%s: %v", doing, err)
	matter := cmp.Or(disk.Hint(err), refusalHint(err))
	if errors.Is(err, fs.ErrPermission) { // which a start meets, and somebody has to mend
		return e.WithHint("%s", matter)
	}
	if matter != "" {
		matter += ": "
	}
	return e.WithHint("%sthe node takes mail again as soon as its journal can be written; ask again then to see what became of this", matter)
}

// outcomeUnknown returns the error of an append whose commit may be in the log after the failure, as a disk leaves it that has taken a
// write and fails to flush it. READ_ONLY alone would read as not done.
func outcomeUnknown(err error) error {
	return parley.Refuse(parley.ReadOnly, "%s; whether this was done is not known yet", parley.AsError(err).Message).
		WithHint("do not repeat it blindly: look whether it was done as soon as the node writes again; with the same idempotency key a repeat is not done twice")
}

// Reopen repairs a failed journal. It starts the server or connects again, and compares the end of the log with the
// durable part. It keeps the commit in doubt if the log has it. It stores an empty commit as a test of the disk. Of an
// external server it asks no more than it needs: a stream takes commits before its cluster has a leader that answers
// questions about it. An error means that the journal is still failed. Damage, a fence and a close are permanent. Reopen has no effect if the
// journal works.
func (j *Journal) Reopen(ctx context.Context) error {
	j.busy.Lock()
	defer j.busy.Unlock()
	err := j.Err()
	if err == nil || permanent(err) {
		return err
	}
	if err := j.o.step(StepReopen, func() error { return j.relink(ctx) }); err != nil {
		return j.stillFailed(err)
	}
	check := j.checkTail
	if j.o.URL != "" {
		check = func(ctx context.Context) error { return keepInDoubt(ctx, j) }
	}
	for { // twice, if the commit in doubt arrives meanwhile
		if err := check(ctx); err != nil {
			return j.stillFailed(err)
		}
		late, err := j.probe(ctx)
		if err != nil {
			return j.stillFailed(err)
		}
		if !late {
			break
		}
	}
	if err := checkBefore(ctx, j); err != nil {
		return j.stillFailed(err)
	}
	j.snapshots.silence.doubt()
	if l := j.connection(); l.blocks != nil {
		l.blocks.look()
	}
	if err := j.order.recovered(); err != nil {
		return err
	}
	return nil
}

// keepInDoubt keeps the commit in doubt that an external server has behind the last one. It reads that from any server. If
// the server has another one there, it checks the tail. If it has none, the next commit finds out.
func keepInDoubt(ctx context.Context, j *Journal) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	bytes, err := j.connection().fetchNearest(ctx, j.lastCommit().Number+1)
	if err != nil {
		return nil
	}
	for _, f := range j.inDoubt {
		if string(f.bytes) == string(bytes) { // and it follows the last one, by its hash
			return j.keep(f)
		}
	}
	return j.checkTail(ctx)
}

// checkBefore checks that the log of an external server has the commit before the newest one. The newest was stored behind it
// by its number alone.
func checkBefore(ctx context.Context, j *Journal) error {
	l, f := j.connection(), j.lastCommit()
	if l.server != nil || f.Number < 2 {
		return nil
	}
	c, _, err := j.reader.commit(ctx, f.Number)
	if err != nil {
		return err
	}
	bytes, err := l.fetch(ctx, f.Number-1)
	if err != nil {
		return err
	}
	_, hash, err := decodeAs(f.Number-1, bytes, events.DecodeHead)
	if err == nil && hash != c.Prev {
		err = lost(f.Number-1, "is not the one that was durable")
	}
	return err
}

func (j *Journal) stillFailed(err error) error {
	err = j.connection().denied.explain(err)
	if _, refused := errors.AsType[refusal](err); refused {
		j.order.explain(parley.AsError(err))
	}
	err = readOnly("the journal cannot be reopened", err)
	if permanent(err) {
		j.fail(err)
	}
	return err
}

// relink replaces the link. An embedded server is stopped before its files are rewritten. The connection to an external one
// is kept if it works: another attempt may find a server that hangs.
func (j *Journal) relink(ctx context.Context) error {
	if l := j.connection(); l.server == nil && answers(ctx, l) {
		return nil
	}
	j.connection().close()
	if j.o.URL == "" {
		if err := rewriteNewest(&j.o); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := lookFirst(ctx, j.o, Mark{}); err != nil {
		return err
	}
	l, err := connect(&j.o)
	if err != nil {
		return err
	}
	j.swap(l)
	return claim(l)
}

// swap replaces the link.
func (j *Journal) swap(l *link) {
	j.line.Lock()
	defer j.line.Unlock()
	l.first.CompareAndSwap(0, j.line.first.Load())
	l.stored.CompareAndSwap(0, j.line.stored.Load())
	j.line.link = l
}

// checkTail compares the end of the log with the last durable commit. It keeps the commit in doubt if the log has
// it. Any other commit is from another writer.
func (j *Journal) checkTail(ctx context.Context) error {
	l := j.connection()
	known := j.lastCommit()
	state, found, err := l.findStream(ctx)
	if err == nil && found {
		err = l.begin(state, j.archived)
	}
	if err != nil {
		return err
	}
	if !found && l.server == nil {
		return unreachable(errors.New("it does not have the journal now")) // a cluster may report that while it starts
	}
	if state, err = l.awaitEnd(ctx, state, known.Number); err != nil {
		return err
	}
	if state.LastSeq < known.Number {
		return lostFrom(state.LastSeq+1, known.Number, "gone", "durable")
	}
	if known.Number > 0 {
		if err := l.is(ctx, known.Mark); err != nil {
			return err
		}
	}
	switch state.LastSeq {
	case known.Number:
		if l.server != nil {
			j.inDoubt = nil // the server is gone, with the commits on their way to it
		}
		return nil
	case known.Number + 1:
		for _, f := range j.inDoubt {
			if l.is(ctx, Mark{Number: f.Number, Hash: f.hash}) == nil {
				return j.keep(f)
			}
		}
	}
	return errFenced
}

// is checks that a commit of the log has the expected hash.
func (l *link) is(ctx context.Context, m Mark) error {
	bytes, err := l.fetchSurely(ctx, m.Number)
	if err != nil {
		return err
	}
	_, hash, err := decodeAs(m.Number, bytes, events.DecodeHead)
	if err == nil && hash != m.Hash {
		err = lost(m.Number, "is not the one that was durable")
	}
	return err
}

// probeTimeout bounds one attempt to store the empty commit on an external server, which is then made again.
const probeTimeout = 600 * time.Millisecond

// probe stores an empty commit. It returns late if the number is taken while a commit is in doubt. The caller has to
// check the end of the log again then.
func (j *Journal) probe(ctx context.Context) (late bool, err error) {
	head := j.lastCommit()
	f := &frame{Commit: events.Commit{
		Number: head.Number + 1, Prev: head.Hash, Node: j.o.Node,
		At: max(capabilities.At(j.o.Clock()), head.at),
	}}
	if f.bytes, f.hash, err = f.Encode(nil); err != nil {
		return false, fmt.Errorf("encode commit %d: %w", f.Number, err)
	}
	if j.o.URL != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, probeTimeout)
		defer cancel()
	}
	err = j.store(ctx, f)
	if isExactly(err, errFenced) && len(j.inDoubt) > 0 {
		return true, nil
	}
	return false, err
}

// cut removes the commits up to one from the stream, which are archived for good. Appends and reads go on meanwhile: who
// looks for one of them in the stream, and does not find it, reads the archive.
func (j *Journal) cut(ctx context.Context, end uint64) error {
	l := j.connection()
	if err := j.Err(); err != nil || l.stored.Load() > end {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, serverStart)
	defer cancel()
	return j.o.step(StepCut, func() error {
		if err := j.archived.keep(ctx, l, j.archived.current()); err != nil {
			return err
		}
		l.first.Store(max(l.first.Load(), end+1))
		defer l.blocks.cutting()()
		s, err := l.js.Stream(ctx, j.o.streamName())
		if err == nil {
			err = s.Purge(ctx, jetstream.WithPurgeSequence(end+1))
		}
		if err != nil {
			return readOnly("an archived part of the journal cannot be removed", err)
		}
		l.stored.Store(end + 1)
		j.grouped.leave(end + 1)
		return nil
	})
}
