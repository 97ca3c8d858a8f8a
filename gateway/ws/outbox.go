package ws

import (
	"context"
	"slices"
	"sync"

	"parley"
	"parley/gateway/api"
)

const (
	maxUnread = 8 << 20   // bytes of one agent's frames that the client has not taken
	maxAhead  = 1 << 20   // bytes of the same, above which its follows wait
	pieceSize = 64 << 10  // of one agent's frames, before another's
	writeSize = 256 << 10 // of a message, but for one frame that is larger
	keptSize  = 1 << 10   // of a queue that is empty
)

// queue holds the frames for one agent that are to be written. Its outbox guards it.
type queue struct {
	account api.Account
	frames  []byte
	ends    []int // where each frame ends
	waiting bool  // in its outbox
}

// outbox has the queues of a session's agents take turns.
type outbox struct {
	later func(fn func()) // calls fn after all frames have been added that a commit makes ready
	start func()          // starts a writer, which calls next until there is no more

	mu     sync.Mutex
	ready  []*queue       // with frames
	waits  bool           // flush is to be called
	writes bool           // a writer is there
	asleep map[waker]bool // to be woken when some are taken
	closed bool           // the end comes when all is taken
	gone   bool           // nobody takes anything
}

// add adds a frame for an agent. The writer gets it with the others that the same commit of the node makes ready. Add refuses
// with RATE_LIMITED when the client has left too much of the agent's unread.
func (o *outbox) add(q *queue, frame func([]byte) []byte) error {
	first, err := o.put(q, frame)
	if first {
		o.later(o.flush)
	}
	return err
}

// put adds a frame, and reports whether a flush has to follow.
func (o *outbox) put(q *queue, frame func([]byte) []byte) (first bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return false, nil
	}
	from := len(q.frames)
	q.frames = frame(q.frames)
	n := len(q.frames) - from
	if n == 0 {
		return false, nil
	}
	if len(q.frames) > maxUnread && from > 0 {
		q.frames = q.frames[:from]
		return false, parley.Refuse(parley.RateLimited, "the client has left %d bytes unread", from)
	}
	if err := q.account.Take(api.KindMemory, int64(n)); err != nil {
		q.frames = q.frames[:from]
		return false, err
	}
	q.ends = append(q.ends, len(q.frames))
	if !q.waiting {
		q.waiting = true
		o.ready = append(o.ready, q)
	}
	first = !o.waits
	o.waits = true
	return first, nil
}

// hasRoom reports whether few of an agent's frames are to be written. If not, it wakes w when some are taken.
func (o *outbox) hasRoom(q *queue, w waker) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone || len(q.frames) <= maxAhead {
		return true
	}
	if o.asleep == nil {
		o.asleep = map[waker]bool{}
	}
	o.asleep[w] = true
	return false
}

// waitForRoom blocks until few of an agent's frames are to be written, or ctx ends.
func (o *outbox) waitForRoom(ctx context.Context, q *queue) {
	room := make(signal, 1)
	for !o.hasRoom(q, room) {
		select {
		case <-room:
		case <-ctx.Done():
			return
		}
	}
}

// signal wakes a goroutine.
type signal chan struct{}

func (s signal) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// waker waits for room.
type waker interface{ wake() } // which must not block

// flush has what was added written.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits = false
	o.wake()
}

// close has the writer find the end once all is taken.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wake()
}

// wake starts a writer if there is none. The caller holds o.mu.
func (o *outbox) wake() {
	if !o.writes && !o.gone {
		o.writes = true
		o.start()
	}
}

// hasEnded reports whether nothing more is to be written.
func (o *outbox) hasEnded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed && len(o.ready) == 0
}

// next appends frames of several agents to b, a piece of each in turn, and returns where each ends. It returns false if there
// are none: then the writer ends.
func (o *outbox) next(b []byte) (_ []byte, ends []int, more bool) {
	o.mu.Lock()
	for len(o.ready) > 0 && len(b) < writeSize {
		b, ends = o.takePiece(b, ends)
	}
	var woken map[waker]bool
	if len(b) > 0 {
		woken, o.asleep = o.asleep, nil
	} else {
		o.writes = false
	}
	o.mu.Unlock()
	for w := range woken {
		w.wake()
	}
	return b, ends, len(b) > 0
}

// takePiece moves a piece of the first queue to b. The caller holds o.mu.
func (o *outbox) takePiece(b []byte, ends []int) ([]byte, []int) {
	q := o.ready[0]
	o.ready = o.ready[1:]
	n := 1
	for n < len(q.ends) && q.ends[n] <= pieceSize {
		n++
	}
	end := q.ends[n-1]
	for _, at := range q.ends[:n] {
		ends = append(ends, len(b)+at)
	}
	b = append(b, q.frames[:end]...)
	q.account.Give(api.KindMemory, int64(end))
	if n == len(q.ends) {
		q.frames, q.ends, q.waiting = q.frames[:0], q.ends[:0], false
		if cap(q.frames) > keptSize { // of a connection at rest
			q.frames, q.ends = nil, nil
		}
		return b, ends
	}
	q.frames = q.frames[:copy(q.frames, q.frames[end:])]
	q.ends = q.ends[:copy(q.ends, q.ends[n:])]
	for i := range q.ends {
		q.ends[i] -= end
	}
	o.ready = append(o.ready, q)
	return b, ends
}

// drop gives back what the frames that are left were charged.
func (o *outbox) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.ready {
		q.account.Give(api.KindMemory, int64(len(q.frames)))
		q.frames, q.ends, q.waiting = nil, nil, false
	}
	o.ready, o.gone = nil, true
	for w := range o.asleep {
		defer w.wake()
	}
	o.asleep = nil
}

// writer writes for all sessions, a message of each in turn. A commit of the node makes frames ready for many, and each would wake a
// goroutine of its own. It waits for no client.
type writer struct {
	mu    sync.Mutex
	ready []*session
	runs  bool
}

// add has the frames of a session written. It does not block.
func (w *writer) add(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = append(w.ready, s)
	if !w.runs {
		w.runs = true
		go w.run()
	}
}

func (w *writer) run() {
	var turn []*session
	for {
		w.mu.Lock()
		turn = append(turn, w.ready...)
		clear(w.ready)
		w.ready = w.ready[:0]
		w.runs = len(turn) > 0
		w.mu.Unlock()
		if len(turn) == 0 {
			return
		}
		turn = slices.DeleteFunc(turn, func(s *session) bool { return !s.writeNow() })
	}
}
