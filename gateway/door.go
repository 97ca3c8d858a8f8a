package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"parley"
	"parley/actors/connlimit"
)

// The node's own socket is served by a loop of its own, with net/http's parser. net/http's server has a
// goroutine read ahead during every request, to learn of clients that go away: that cost a call more than
// all else of HTTP. Here only calls that wait are watched, and only once they do wait.

// Bounds of a connection.
const (
	headerTime = 10 * time.Second // how long a request's header may take to come
	writeTime  = 30 * time.Second // in which a client takes a piece of a response
	idleTime   = 5 * time.Minute  // how long a connection is kept without use
	maxHeader  = 16 << 10
	watchAfter = 50 * time.Millisecond // how long a call waits before anyone looks whether its client is there
)

// door serves HTTP on a listener.
type door struct {
	listener   net.Listener
	limiter    *connlimit.Limiter
	handler    http.Handler
	log        *slog.Logger
	headerTime time.Duration
	bodyTime   time.Duration
	writeTime  time.Duration
	idleTime   time.Duration
	admit      func(net.Conn) error // refuses a connection by who opened it; nil refuses none

	mu      sync.Mutex
	visits  map[*visit]bool
	inside  sync.WaitGroup
	closing atomic.Bool
	calls   context.Context // of every request: ends when what is in flight is given up
	giveUp  context.CancelFunc
}

func newDoor(l net.Listener, most int, h http.Handler, log *slog.Logger) *door {
	d := &door{
		listener: l, limiter: connlimit.New(max(most/2, 1), most, 0), handler: h, log: log, headerTime: headerTime, bodyTime: bodyTime, writeTime: writeTime, idleTime: idleTime,
		visits: make(map[*visit]bool),
	}
	d.calls, d.giveUp = context.WithCancel(context.Background())
	return d
}

// serve takes connections until the listener is closed.
func (d *door) serve() error {
	for {
		conn, err := d.listener.Accept()
		switch {
		case err == nil:
			d.enter(conn)
		case errors.Is(err, net.ErrClosed):
			return nil
		case !isPassing(err):
			return err
		default:
			d.log.Warn("a connection could not be taken", "error", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-d.calls.Done():
			}
		}
	}
}

// isPassing reports whether err is one of too many open files or too little memory, or of one connection.
func isPassing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (d *door) enter(conn net.Conn) {
	v := &visit{Conn: conn, door: d, left: maxHeader}
	v.in = bufio.NewReaderSize(v, 4<<10)
	place, ok := d.limiter.Enter(processOf(conn), v)
	if !ok {
		_ = conn.Close() // it came too late
		return
	}
	v.place = place
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing.Load() {
		_ = conn.Close() // it came too late
		place.Leave()
		return
	}
	d.visits[v] = true
	d.inside.Go(v.serve)
}

// drain takes no more connections, closes those that are idle, and returns when the others have had their
// answers, or when ctx ends: then they are closed in any case.
func (d *door) drain(ctx context.Context) error {
	err := d.listener.Close()
	d.closing.Store(true)
	d.each(func(v *visit) {
		if v.state.CompareAndSwap(idle, gone) {
			_ = v.Close() // nothing is on its way there
		}
	})
	left := make(chan struct{})
	go func() {
		d.inside.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	d.each(func(v *visit) { _ = v.Close() }) // so that nothing is told of what is cut short
	d.giveUp()
	return err
}

func (d *door) each(do func(*visit)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for v := range d.visits {
		do(v)
	}
}

// The states of a visit.
const (
	idle   int32 = iota
	coming       // a request has begun to come
	busy         // a request is there
	gone
)

// visit is one connection, which makes one call after the other.
type visit struct {
	net.Conn
	door    *door
	place   *connlimit.Place
	state   atomic.Int32
	in      *bufio.Reader
	left    int   // how much of a header may still be read
	broken  error // why reading failed
	refused error // why nothing is done for who opened the connection
	reply   responseWriter
}

// Read reads from the connection, of a header no more than is allowed.
func (v *visit) Read(p []byte) (n int, err error) {
	if v.left <= 0 {
		v.broken = errLongHeader
		return 0, v.broken
	}
	n, err = v.Conn.Read(p[:min(len(p), v.left)])
	v.left -= n
	v.broken = err
	return n, err
}

// Evict implements connlimit.Occupant.
func (v *visit) Evict(most connlimit.Use) bool {
	if !v.state.CompareAndSwap(idle, gone) && (most < connlimit.Coming || !v.state.CompareAndSwap(coming, gone)) {
		return false
	}
	_ = v.Close() // nothing is told to who said nothing
	return true
}

var errLongHeader = parley.Refuse(parley.TooLarge, "a request's header may have %d bytes at most", maxHeader)

func (v *visit) serve() {
	defer func() {
		_ = v.Close() // everything is sent
		v.place.Leave()
		v.door.mu.Lock()
		delete(v.door.visits, v)
		v.door.mu.Unlock()
	}()
	if v.door.admit != nil {
		v.refused = v.door.admit(v.Conn)
	}
	for within := v.door.headerTime; v.comes(within) && v.turn(); within = v.door.idleTime {
		v.state.Store(idle)
		if v.door.closing.Load() {
			return
		}
	}
}

// comes waits for the beginning of a request.
func (v *visit) comes(within time.Duration) bool {
	if v.in.Buffered() == 0 {
		_ = v.SetReadDeadline(time.Now().Add(within)) // else reading fails too
		if _, err := v.in.Peek(1); err != nil {
			return false
		}
	}
	return v.state.CompareAndSwap(idle, coming)
}

// turn takes one request through, and says whether there may be another.
func (v *visit) turn() bool {
	r, err := v.request()
	v.reply.begin(v, r)
	switch {
	case err == nil && v.refused != nil:
		refuse(&v.reply, v.refused, 0)
	case err == nil:
		whole := v.handle(r.WithContext(v.door.calls))
		v.state.CompareAndSwap(busy, coming) // who does not read a small response is evicted like who does not send
		return whole && v.reply.finish()
	case errors.Is(v.broken, errLongHeader):
		refuse(&v.reply, errLongHeader, http.StatusRequestHeaderFieldsTooLarge)
	case v.broken != nil:
		return false // nobody is there to be told
	default:
		refuse(&v.reply, parley.Refuse(parley.InvalidArgument, "the request is not HTTP: %v", err), 0)
	}
	v.reply.finish()
	return false
}

// request reads the header of one. Deadlines are set only for what has not come yet.
func (v *visit) request() (*http.Request, error) {
	here, _ := v.in.Peek(v.in.Buffered()) // it is all there
	waits := !bytes.Contains(here, []byte("\r\n\r\n"))
	if waits {
		_ = v.SetReadDeadline(time.Now().Add(v.door.headerTime)) // else reading fails too
	}
	v.left, v.broken = maxHeader, nil
	r, err := http.ReadRequest(v.in)
	if err != nil {
		return nil, err
	}
	v.left = math.MaxInt
	whole := v.isWhole(r)
	if waits || !whole {
		_ = v.SetReadDeadline(time.Now().Add(v.door.bodyTime)) // else reading fails too
	}
	if whole {
		v.state.CompareAndSwap(coming, busy)
	}
	if r.ProtoMajor != 1 || r.ProtoAtLeast(1, 1) && r.Host == "" {
		return nil, errors.New("want HTTP/1.1 with a Host, or HTTP/1.0")
	}
	return r, nil
}

// isWhole reports whether all of a request's body is here.
func (v *visit) isWhole(r *http.Request) bool {
	return r.ContentLength >= 0 && r.ContentLength <= int64(v.in.Buffered())
}

// handle answers a request, and says whether the answer is whole.
func (v *visit) handle(r *http.Request) (whole bool) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { // net/http's own way of cutting a response off
			v.door.log.Error("a call panicked", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	v.door.handler.ServeHTTP(&v.reply, r)
	return true
}

// watch calls gone if the client goes away, until the function that it gives is called. What it reads of
// the next request stays there to be read. The body must have been read.
func (v *visit) watch(gone func()) (stop func()) {
	_ = v.SetReadDeadline(time.Time{}) // else it would end the watch
	over := make(chan struct{})
	start := time.AfterFunc(watchAfter, func() {
		defer close(over)
		if _, err := v.in.Peek(1); err != nil {
			gone() // or the watch was stopped: then nobody minds
		}
	})
	return func() {
		if start.Stop() {
			return
		}
		_ = v.SetReadDeadline(time.Unix(1, 0))
		<-over
	}
}
