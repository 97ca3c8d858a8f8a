package persistence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"parley/events"
)

var errNotThere = errors.New("not there")

// fetch returns the frame of a commit from the nearest server. Of external servers, it is one that answers.
func (l *link) fetch(ctx context.Context, number uint64) ([]byte, error) {
	if l.server == nil {
		return fetchFromAny(ctx, l, number)
	}
	return l.fetchNearest(ctx, number)
}

func (l *link) fetchNearest(ctx context.Context, number uint64) ([]byte, error) {
	m, err := l.requestCommit(ctx, "DIRECT.GET", number)
	if err != nil {
		return nil, err
	}
	switch status := m.Header.Get("Status"); {
	case status == "404":
		return nil, errNotThere
	case status != "":
		return nil, unreachable(fmt.Errorf("%s %s", status, m.Header.Get("Description")))
	case m.Header.Get("Nats-Sequence") != strconv.FormatUint(number, 10):
		return nil, errNotThere
	}
	return m.Data, nil
}

// requestCommit asks the server for the message of a commit, after a check of its block.
func (l *link) requestCommit(ctx context.Context, api string, number uint64) (*nats.Msg, error) {
	if err := l.old.check(number, number); err != nil {
		return nil, err
	}
	query := append(strconv.AppendUint([]byte(`{"seq":`), number, 10), '}')
	m, err := l.request(ctx, "$JS.API."+api+"."+l.o.streamName(), query)
	if err != nil {
		return nil, unreachable(err)
	}
	return m, nil
}

// noMessage is the server's code for a message that it does not have or cannot read.
const noMessage = 10037

// lookAgain is the time after which a commit counts as missing. A server that is stopping reports existing commits as
// missing.
const lookAgain = 100 * time.Millisecond

// fetchSurely returns the frame of an existing commit from the stream's leader. It fails with CORRUPT_LOG if the commit
// is missing.
func (l *link) fetchSurely(ctx context.Context, number uint64) ([]byte, error) {
	bytes, err := l.fetchFromLeader(ctx, number)
	if !errors.Is(err, errNotThere) {
		return bytes, err
	}
	select {
	case <-time.After(lookAgain):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if _, err := l.js.Stream(ctx, l.o.streamName()); err != nil {
		return nil, unreachable(err)
	}
	if bytes, err = l.fetchFromLeader(ctx, number); errors.Is(err, errNotThere) {
		return nil, lost(number, "is missing")
	}
	return bytes, err
}

func (l *link) fetchFromLeader(ctx context.Context, number uint64) ([]byte, error) {
	m, err := l.requestCommit(ctx, "STREAM.MSG.GET", number)
	if err != nil {
		return nil, err
	}
	var got struct {
		Error *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
		Message struct {
			Seq  uint64 `json:"seq"`
			Data []byte `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(m.Data, &got); err != nil {
		return nil, unreachable(err)
	}
	switch {
	case got.Error != nil && got.Error.Code == noMessage:
		return nil, errNotThere
	case got.Error != nil:
		return nil, unreachable(errors.New(got.Error.Description))
	case got.Message.Seq != number:
		return nil, errNotThere
	}
	return got.Message.Data, nil
}

// reader reads single commits of the log, and sections of mailboxes. It is safe for concurrent use.
type reader struct {
	line     func() *link
	archived *archived
	damaged  func(error) // fails the journal
	grouped  *grouped
	garbage  collector
}

// commit returns a commit of the log, from memory if it is there. Damage fails the journal, except that of an archive.
func (r *reader) commit(ctx context.Context, number uint64) (*events.Commit, events.Hash, error) {
	if c, hash, ok := r.grouped.commit(number); ok {
		return c, hash, nil
	}
	c, hash, err := r.read(ctx, number)
	if err != nil {
		if _, archived := errors.AsType[*archiveDamage](err); !archived && isUnusable(err) {
			r.damaged(err)
		}
		return nil, events.Hash{}, err
	}
	return c, hash, nil
}

func (r *reader) read(ctx context.Context, number uint64) (*events.Commit, events.Hash, error) {
	bytes, err := r.frame(ctx, number)
	if err != nil {
		return nil, events.Hash{}, err
	}
	r.garbage.took(len(bytes))
	return decode(number, bytes)
}

// hash returns the hash of a commit, without its sections.
func (r *reader) hash(ctx context.Context, number uint64) (events.Hash, error) {
	if _, hash, ok := r.grouped.commit(number); ok {
		return hash, nil
	}
	if bytes, err := r.frame(ctx, number); err == nil {
		if _, hash, err := decodeAs(number, bytes, events.DecodeHead); err == nil {
			return hash, nil
		}
	}
	_, hash, err := r.commit(ctx, number)
	return hash, err
}

// frame returns the frame of a commit, from the stream or from the archive.
func (r *reader) frame(ctx context.Context, number uint64) ([]byte, error) {
	if l := r.line(); number >= l.first.Load() {
		if err := l.o.slow.err(); err != nil {
			return nil, err
		}
		bytes, err := l.fetch(ctx, number)
		if errors.Is(err, errNotThere) {
			bytes, err = l.fetchSurely(ctx, number)
		}
		if err == nil || number >= r.begin() { // else it has left the stream meanwhile
			return bytes, err
		}
	}
	return r.archived.frame(number)
}

// begin returns the first commit that is read from the stream.
func (r *reader) begin() uint64 { return r.line().first.Load() }

// each calls fn with the frames of commits first to last, in order, from the archive and the stream. Commits may leave the
// stream meanwhile. It fails as link.each does.
func (r *reader) each(ctx context.Context, first, last uint64, fn func(number uint64, bytes []byte) error) error {
	for next := first; next <= last; {
		l := r.line()
		if begin := l.first.Load(); next < begin {
			end := min(last, begin-1)
			if err := r.archived.each(ctx, next, end, fn); err != nil {
				return err
			}
			next = end + 1
			continue
		}
		s := &subscriber{next: next, fn: fn}
		err := l.each(ctx, next, last, s.take)
		s.end()
		if next = s.next; err == nil || s.failed != nil || next >= r.begin() {
			return err
		}
	}
	return nil
}

// subscriber passes frames on until it is ended. A subscription may call it after that.
type subscriber struct {
	mu     sync.Mutex
	next   uint64
	fn     func(number uint64, bytes []byte) error
	failed error // of fn
	ended  bool
}

func (s *subscriber) take(number uint64, bytes []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errNotThere
	}
	if s.failed = s.fn(number, bytes); s.failed == nil {
		s.next = number + 1
	}
	return s.failed
}

func (s *subscriber) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// stall is the time for which a reader waits for a message before it asks for it by its number.
const stall = 500 * time.Millisecond

// each calls fn with the frames of commits first to last, in order. It fails at the first missing one, or with fn's
// error. fn must not keep the bytes.
func (l *link) each(ctx context.Context, first, last uint64, fn func(number uint64, bytes []byte) error) error {
	if first > last {
		return nil
	}
	if l.server == nil {
		return eachRemote(ctx, l, first, last, fn)
	}
	if err := l.old.check(first, last); err != nil {
		return err
	}
	var at progress
	next := first
	at.reached(first)
	done := make(chan error, 1) // the error of fn or of the order; nil at the end
	ended := false
	end := func(err error) {
		ended = true
		done <- err
	}
	sub, err := l.legacy.Subscribe(l.o.subject(), func(m *nats.Msg) { // called on one goroutine
		if ended {
			return
		}
		in, err := m.Metadata()
		if err != nil {
			end(fmt.Errorf("read commit %d: %w", next, err))
			return
		}
		if in.Sequence.Stream != next {
			end(lost(next, "is missing"))
			return
		}
		at.taking.Store(true)
		if err := fn(next, m.Data); err != nil {
			end(err)
			return
		}
		if next++; next > last {
			end(nil)
			return
		}
		at.reached(next)
	}, nats.OrderedConsumer(), nats.BindStream(l.o.streamName()), nats.StartSequence(first), nats.Context(ctx))
	if err != nil {
		return unreachable(err)
	}
	err = watch(ctx, &at, done, func(number uint64) error {
		_, err := l.fetchSurely(ctx, number)
		return err
	})
	return errors.Join(err, leave(sub))
}

// maxStalls is how often in a row a reader finds the same commit there that does not come.
const maxStalls = 20

// progress is how far a subscription has come.
type progress struct {
	next   atomic.Uint64 // the commit that comes next, or is being taken
	taking atomic.Bool   // for as long as its reader likes
}

func (p *progress) reached(next uint64) {
	p.next.Store(next)
	p.taking.Store(false)
}

// watch waits for the end of a subscription. When no message comes, it asks for the next commit by its number, since
// the server skips damaged messages silently. It fails if fetch does, or with READ_ONLY after maxStalls.
func watch(ctx context.Context, at *progress, done <-chan error, fetch func(number uint64) error) error {
	ticker := time.NewTicker(stall)
	defer ticker.Stop()
	for seen, stalls := uint64(0), 0; ; {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
			now := at.next.Load()
			switch {
			case at.taking.Load():
			case now != seen:
				stalls = 0
			case stalls == maxStalls:
				return unreachable(fmt.Errorf("commit %d is there, and it is not sent", now))
			default:
				stalls++
				if err := fetch(now); err != nil {
					return err
				}
			}
			seen = now
		}
	}
}

func leave(sub *nats.Subscription) error {
	if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrBadSubscription) {
		return unreachable(err)
	}
	return nil
}

// collector collects garbage earlier than the Go runtime while the log is read. Reading leaves several copies of each
// commit behind. Without the collector, a node that reads all mailboxes after a start would need more memory than it
// needs later.
type collector struct{ read atomic.Int64 }

const (
	collectBytes = 2 << 20 // least bytes of the log between two collections
	collectShare = 32      // one collection for each such part of the live heap
)

// took adds bytes that were read. It runs a collection when one is due.
func (c *collector) took(bytes int) {
	read := c.read.Add(int64(bytes))
	if read < collectBytes || read < int64(liveHeap()/collectShare) || !c.read.CompareAndSwap(read, 0) {
		return
	}
	runtime.GC()
}

// liveHeap returns the bytes of the heap that the last collection found in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
