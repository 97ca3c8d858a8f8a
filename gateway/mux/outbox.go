package mux

import (
	"context"
	"sync"

	"parley"
	"parley/gateway/api"
)

const (
	maxUnread = 8 << 20   // bytes of one agent's frames that the client has not taken
	maxAhead  = 1 << 20   // bytes of the same, above which its follows wait
	pieceSize = 64 << 10  // of one agent's frames, before another's
	writeSize = 256 << 10 // of a message, but for one frame that is larger
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
	wake  chan struct{}   // has room for one
	later func(fn func()) // calls fn after all frames have been added that a commit makes ready

	mu     sync.Mutex
	ready  []*queue       // with frames
	waits  bool           // flush is to be called
	asleep map[waker]bool // to be woken when some are taken
	closed bool           // the end comes when all is taken
	gone   bool           // nobody takes anything
}

// add adds a frame for an agent. The writer gets it with the others that the same commit of the node makes ready. Add refuses
// with RATE_LIMITED when the client has left too much of the agent's unread.
func (o *outbox) add(q *queue, f Frame) error {
	first, err := o.put(q, f)
	if first {
		o.later(o.flush)
	}
	return err
}

// put adds a frame, and reports whether a flush has to follow.
func (o *outbox) put(q *queue, f Frame) (first bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return false, nil
	}
	from := len(q.frames)
	q.frames = AppendNode(q.frames, f)
	n := len(q.frames) - from
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

// waker waits for room.
type waker interface{ wake() } // which must not block

// flush wakes the writer.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits = false
	o.nudge()
}

func (o *outbox) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close has next report the end once all is taken.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.nudge()
}

// next appends the next message to b: frames of several agents, a piece of each in turn. It blocks until there is one, and
// returns false at the end, or when ctx ends.
func (o *outbox) next(ctx context.Context, b []byte) ([]byte, bool) {
	for {
		o.mu.Lock()
		for len(o.ready) > 0 && len(b) < writeSize {
			b = o.takePiece(b)
		}
		var woken map[waker]bool
		if len(b) > 0 {
			woken, o.asleep = o.asleep, nil
		}
		more, closed := len(o.ready) > 0, o.closed
		o.mu.Unlock()
		for w := range woken {
			w.wake()
		}
		if more {
			o.nudge()
		}
		if len(b) > 0 || closed {
			return b, len(b) > 0
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// takePiece moves a piece of the first queue to b. The caller holds o.mu.
func (o *outbox) takePiece(b []byte) []byte {
	q := o.ready[0]
	o.ready = o.ready[1:]
	n := 1
	for n < len(q.ends) && q.ends[n] <= pieceSize {
		n++
	}
	end := q.ends[n-1]
	b = append(b, q.frames[:end]...)
	q.account.Give(api.KindMemory, int64(end))
	if n == len(q.ends) {
		q.frames, q.ends, q.waiting = q.frames[:0], q.ends[:0], false
		if cap(q.frames) > writeSize { // a large response should not stay for ever
			q.frames = nil
		}
		return b
	}
	q.frames = q.frames[:copy(q.frames, q.frames[end:])]
	q.ends = q.ends[:copy(q.ends, q.ends[n:])]
	for i := range q.ends {
		q.ends[i] -= end
	}
	o.ready = append(o.ready, q)
	return b
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
}
