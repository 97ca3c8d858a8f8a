package client

import (
	"bytes"
	"container/list"
	"errors"
	"net/http"
	"runtime"
	"sync"

	"parley"
	"parley/gateway/mux"
	"parley/internal/websocket"
)

// joinedSize bounds, in bytes, a message of several frames.
const joinedSize = 64 << 10

var (
	errLinkEnded = errors.New("the connection has ended")
	errUnclaimed = errors.New("nobody awaited the outcome")
)

// maxUnclaimed is the number of outcomes on their way that nobody awaits. The oldest is given up: each takes a place among the
// waits of its agent.
const maxUnclaimed = 256

// pending is a call whose answer is awaited.
type pending struct {
	link  *link // once it is sent
	id    uint64
	sign  *sign         // of the agent that calls; nil for the connection's own
	first chan struct{} // closed when there is an answer or err; of an ask, when it is accepted
	asked bool          // the outcome comes later
	last  chan struct{} // of an ask, closed when there is an outcome or an error in its place; nil for other calls
	items chan []byte   // of a follow, as JSON; has room for all that the node may send

	answer  answer
	err     error
	outcome answer
	lost    error

	// Of the outcome, guarded by the link's lock.
	claims int           // callers that await it
	idle   *list.Element // among the link's unclaimed
}

func newPending() *pending { return &pending{first: make(chan struct{})} }

// link is one connection. A goroutine reads. What is queued is written by the call that has queued it first, as long as it need
// not wait, and then by a goroutine.
type link struct {
	conn *websocket.Conn

	mu     sync.Mutex
	out    [][]byte // messages; frames are added to the last
	calls  map[uint64]*pending
	signs  map[string]*sign // by token
	most   int              // of signs
	next   uint64
	idle   list.List // accepted asks whose outcomes nobody awaits, the oldest first
	spare  []byte    // to write the next message to
	writes bool      // somebody writes
	going  bool      // the node begins nothing more
	ended  bool
	gone   chan struct{} // closed when it has ended
}

func newLink(conn *websocket.Conn, signs int) *link {
	l := &link{conn: conn, calls: map[uint64]*pending{}, signs: map[string]*sign{}, most: signs, gone: make(chan struct{})}
	go l.read()
	return l
}

// isOpen reports whether calls may begin.
func (l *link) isOpen() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.going && !l.ended
}

// send queues a frame that begins a call. It returns false if nothing begins any more.
func (l *link) send(f mux.Frame, p *pending) bool {
	l.mu.Lock()
	first := !l.writes
	l.writes = true
	sent := l.sendLocked(f, p)
	if first && !sent {
		l.writes = false
	}
	l.mu.Unlock()
	if first && sent {
		l.writeNow()
	}
	return sent
}

// sendLocked is send for a caller that holds l.mu.
func (l *link) sendLocked(f mux.Frame, p *pending) bool {
	if l.going || l.ended || p.sign != nil && p.sign.out {
		return false
	}
	l.next++
	p.link, p.id, f.ID = l, l.next, l.next
	l.calls[p.id] = p
	l.queue(f)
	return true
}

// queue has a frame written. The caller holds l.mu.
func (l *link) queue(f mux.Frame) {
	if n := len(l.out); n > 0 && len(l.out[n-1])+len(f.Body) < joinedSize {
		l.out[n-1] = mux.AppendClient(l.out[n-1], f)
	} else {
		l.out = append(l.out, mux.AppendClient(l.spare, f))
		l.spare = nil
	}
	if !l.writes {
		l.writes = true
		go l.write()
	}
}

// forget gives up a call.
func (l *link) forget(p *pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls[p.id] == p {
		l.drop(p)
		l.queue(mux.Frame{Kind: mux.Cancel, ID: p.id})
	}
}

// claim marks the outcome of an accepted ask as awaited, until the function that it returns is called.
func (p *pending) claim() (release func()) {
	l := p.link
	l.mu.Lock()
	defer l.mu.Unlock()
	p.claims++
	l.unlist(p)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if p.claims--; p.claims == 0 {
			l.unclaim(p)
		}
	}
}

// unclaim lists an ask whose outcome nobody awaits, and gives up the oldest of too many. The caller holds l.mu.
func (l *link) unclaim(p *pending) {
	if l.calls[p.id] != p {
		return // it has its outcome, or never will
	}
	p.idle = l.idle.PushBack(p)
	if l.idle.Len() <= maxUnclaimed {
		return
	}
	oldest := l.idle.Front().Value.(*pending)
	l.drop(oldest)
	oldest.lost = errUnclaimed
	close(oldest.last)
	l.queue(mux.Frame{Kind: mux.Cancel, ID: oldest.id})
}

// drop takes a call off the list of those under way. The caller holds l.mu.
func (l *link) drop(p *pending) {
	delete(l.calls, p.id)
	l.unlist(p)
	if p.sign != nil {
		p.sign.calls--
	}
}

// unlist takes an ask out of the unclaimed. The caller holds l.mu.
func (l *link) unlist(p *pending) {
	if p.idle != nil {
		l.idle.Remove(p.idle)
		p.idle = nil
	}
}

// writeNow writes what is queued, and leaves to a goroutine what would have to wait, and what is queued meanwhile.
func (l *link) writeNow() {
	messages, more := l.take()
	if !more {
		return
	}
	all, err := true, error(nil)
	for len(messages) > 0 && all && err == nil {
		all, err = l.conn.WriteNow(websocket.Binary, messages[0])
		messages = l.written(messages)
	}
	if err != nil {
		l.end(err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = append(messages, l.out...)
	if l.writes = !all || len(l.out) > 0; l.writes {
		go l.write()
	}
}

// write writes until nothing is queued.
func (l *link) write() {
	err := l.conn.Flush()
	for err == nil {
		messages, more := l.take()
		if !more {
			return
		}
		for len(messages) > 0 && err == nil {
			err = l.conn.Write(websocket.Binary, messages[0])
			messages = l.written(messages)
		}
	}
	l.end(err)
}

// take returns what is queued. If that is nothing, nobody writes any more.
func (l *link) take() (messages [][]byte, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) > 1 {
		l.mu.Unlock()
		runtime.Gosched() // others that are to send something send it in the same message
		l.mu.Lock()
	}
	messages, l.out = l.out, nil
	l.writes = len(messages) > 0
	return messages, l.writes
}

// written drops a message, whose buffer is for the next one.
func (l *link) written(messages [][]byte) [][]byte {
	if cap(messages[0]) <= joinedSize { // a large request should not stay for ever
		l.mu.Lock()
		l.spare = messages[0][:0]
		l.mu.Unlock()
	}
	return messages[1:]
}

func (l *link) read() {
	for {
		_, message, err := l.conn.Read() // a text has no frames
		if err == nil {
			err = mux.ReadNode(message, l.receive)
		}
		if err != nil {
			l.end(err)
			return
		}
	}
}

// receive handles a frame of the node.
func (l *link) receive(f mux.Frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Kind == mux.Going {
		l.going = true
		l.endIfIdle()
		return nil
	}
	p := l.calls[f.ID]
	if p == nil {
		return nil // it was given up
	}
	if f.Kind == mux.Item {
		return p.take(f)
	}
	a, err := answerOf(f)
	if err != nil {
		return err
	}
	if f.Kind == mux.Asked {
		if p.last == nil || p.asked {
			return errors.New("the node accepted what asks nothing")
		}
		p.answer, p.asked = a, true
		l.unclaim(p)
		close(p.first)
		return nil
	}
	s := p.sign
	l.drop(p)
	if s != nil && f.Kind == mux.Refusal && parley.CodeOf(refusal(a)) == parley.Unauthenticated {
		l.signOut(s)
	}
	if p.asked {
		p.outcome = a
		close(p.last)
	} else {
		p.answer = a
		close(p.first)
	}
	l.endIfIdle()
	return nil
}

// answerOf returns the answer in a frame of the node, as a copy.
func answerOf(f mux.Frame) (answer, error) {
	if f.Kind != mux.Refusal && !mux.NewReader(f.Body).IsJSON() {
		return answer{status: http.StatusOK, plain: bytes.Clone(f.Body)}, nil
	}
	text, err := mux.ToJSON(f.Body)
	if f.Kind == mux.Refusal {
		return answer{status: http.StatusBadRequest, body: append(append([]byte(`{"error":`), text...), '}')}, err
	}
	return answer{status: http.StatusOK, body: bytes.Clone(text)}, err
}

// endIfIdle ends a connection on which nothing begins and nothing is under way. The caller holds l.mu.
func (l *link) endIfIdle() {
	if l.going && len(l.calls) == 0 {
		go l.end(errLinkEnded)
	}
}

// end ends the connection. What is under way is lost.
func (l *link) end(why error) {
	l.mu.Lock()
	calls := l.calls
	ended := l.ended
	l.calls, l.ended = nil, true
	l.mu.Unlock()
	if ended {
		return
	}
	close(l.gone)
	l.conn.Cut() // nothing more is said on it
	for _, p := range calls {
		if !p.asked {
			p.err = &lost{sent: true, cause: why}
			close(p.first)
		}
		if p.asked {
			p.lost = why
			close(p.last)
		}
	}
}
