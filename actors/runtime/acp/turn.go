package acp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
	"parley/capabilities"
)

// settleGrace is the time that an agent has to end a cancelled turn.
const settleGrace = 5 * time.Second

// turn is one run: from a prompt to the agent's response.
type turn struct {
	peer  *peer
	host  runtime.Host
	taken func()

	ctx     context.Context // ends when the turn has to end, or its time is over
	writing context.Context // outlasts ctx
	output  *runtime.OutputBuffer
	notices notices

	answers    chan stopped         // to prompts
	updates    chan json.RawMessage // updates of the agent
	strays     chan string          // lines of its standard output that are no messages
	flushes    chan chan struct{}   // requests to write the output so far
	written    chan struct{}        // closed when the prompt was written
	prompted   func()               // closes written
	slots      chan struct{}        // requests that are open
	cancelSent chan struct{}        // closed when the cancel was sent, or cannot be
	over       chan struct{}        // closed at the end
	joined     sync.WaitGroup       // the goroutines of the turn

	asked    sync.Mutex
	elicited map[string]int // how often each question was asked

	denials denials

	err       error         // the first reason to end the turn
	delivered bool          // the agent has the prompt
	done      bool          // it has stopped
	stopping  bool          // the process is being ended
	stays     bool          // the process is kept for the next turn
	left      bool          // the process is ending or has ended
	drained   chan struct{} // closed when all messages of the ended process are handled
	stopTimer <-chan time.Time
	nextStop  func()
}

// stopped is the agent's response to a prompt.
type stopped struct {
	reason acp.StopReason
	err    error
}

func newTurn(p *peer, d runtime.Host, taken func()) *turn {
	t := &turn{
		peer: p, host: d, taken: taken, output: runtime.NewOutputBuffer(d),
		answers: make(chan stopped, 1), updates: make(chan json.RawMessage), strays: make(chan string), flushes: make(chan chan struct{}),
		written: make(chan struct{}), slots: make(chan struct{}, runtime.MaxOpen), cancelSent: make(chan struct{}), over: make(chan struct{}), elicited: map[string]int{},
	}
	t.notices = notices{output: t.output, calls: &calls{by: p.agent, byID: map[string]toolCall{}}}
	t.prompted = sync.OnceFunc(func() { close(t.written) })
	return t
}

// missed reports whether the process had ended before the turn.
func (t *turn) missed() bool { return !t.delivered && t.err == nil }

// run carries the turn. It returns when the turn is over, its output is written, and no goroutine works for it.
func (t *turn) run(ctx context.Context, s runtime.Spec, text string) runtime.Result {
	var stop context.CancelFunc
	if s.RunTime > 0 {
		t.ctx, stop = context.WithTimeoutCause(ctx, s.RunTime, parley.Refuse(parley.Timeout, "the run took longer than %s", capabilities.Span(s.RunTime)))
	} else {
		t.ctx, stop = context.WithCancel(ctx)
	}
	writing, written := runtime.Outlive(t.ctx, settleGrace+runtime.StopGrace)
	defer written()
	t.writing = writing
	t.peer.setTurn(t)
	t.prompt(text)
	t.output.Add(t.writing, runtime.Errors, t.peer.takeEarly())
	t.exchange()
	t.peer.setTurn(nil)
	close(t.over)
	stop()
	if !t.stays {
		t.peer.In.Close() // whoever still writes to it does not wait any longer
	}
	t.joined.Wait()
	t.write()
	if err := t.output.Err; err != nil {
		t.failed(runtime.CauseOf(t.ctx, err))
	}
	err := t.err
	if err == nil && !t.done {
		err = t.peer.ended() // t.err stays nil: see missed
	}
	return runtime.Result{Err: err, Tail: t.output.Tail.String()}
}

// prompt sends a prompt to the agent.
func (t *turn) prompt(text string) {
	t.joined.Go(func() {
		r, err := acp.SendRequest[acp.PromptResponse](t.peer.conn, context.WithoutCancel(t.ctx), acp.AgentMethodSessionPrompt,
			acp.PromptRequest{SessionId: t.peer.session, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
		t.answers <- stopped{r.StopReason, err}
	})
}

// exchange returns when the agent has responded, or is gone.
func (t *turn) exchange() {
	errs, ended, written := t.peer.Errs.Pieces, t.ctx.Done(), t.written
	var quiet, exited <-chan struct{}
	for {
		select {
		case <-written:
			written = nil
			t.deliver()
		case u := <-t.updates:
			t.deliver()
			t.notices.update(t.writing, u)
		case s := <-t.strays:
			t.output.Add(t.writing, runtime.Errors, s)
		case done := <-t.flushes:
			t.write()
			close(done)
		case p, ok := <-errs:
			if ok {
				t.output.Add(t.writing, runtime.Errors, p.Text)
			} else {
				errs = nil
			}
		case <-t.output.Due:
			t.output.Flush(t.writing)
		case <-t.notices.due:
			t.notices.flush(t.writing)
		case a := <-t.answers:
			if explained := t.explain(a); explained {
				break
			}
			if quiet = t.answered(a); quiet == nil {
				t.leave()
			}
			if t.peer.reader.err() != nil { // nothing more is read from it
				t.stop()
			}
		case <-quiet:
			quiet = nil
			if t.stays = !t.stopping; t.stays {
				return
			}
		case <-ended:
			ended = nil
			t.cancel()
		case <-t.stopTimer:
			t.stopTimer = nil
			t.nextStop()
		case <-t.drained:
			t.drained = nil
		case <-exited:
			return
		}
		if err := t.output.Err; err != nil {
			t.fail(runtime.CauseOf(t.ctx, err))
		}
		if t.left && t.drained == nil && errs == nil {
			exited = t.peer.Exited
		}
	}
}

// answered handles the agent's response. It returns a channel that is closed when all earlier output is read, or nil
// if the agent is gone.
func (t *turn) answered(a stopped) <-chan struct{} {
	if a.err != nil && t.peer.lost() {
		return nil
	}
	t.deliver()
	t.done = true
	switch {
	case a.err != nil:
		t.failed(failureIn(a.err))
	case a.reason == acp.StopReasonCancelled:
		t.failed(parley.Refuse(parley.Internal, "the program has cancelled the run"))
	case a.reason == acp.StopReasonRefusal:
		t.failed(parley.Refuse(parley.Internal, "the program refuses to go on with this"))
		fallthrough
	case a.reason != acp.StopReasonEndTurn:
		t.notices.put(t.writing, map[string]any{"stopReason": a.reason})
	}
	return t.peer.Errs.WhenQuiet()
}

func (t *turn) deliver() {
	if !t.delivered {
		t.delivered = true
		t.taken()
	}
}

func (t *turn) failed(err error) {
	if t.err == nil {
		t.err = err
	}
}

// fail ends the turn with an error, and the process with it.
func (t *turn) fail(err error) {
	t.failed(err)
	t.stop()
}

// cancel asks the agent to end the turn. It ends the process if the agent does not.
func (t *turn) cancel() {
	if t.done {
		return
	}
	t.failed(context.Cause(t.ctx))
	t.peer.handlers.Go(func() { // not joined: an agent may not read
		defer close(t.cancelSent)
		// on an error the agent is gone, or soon will be
		_ = t.peer.conn.SendNotification(context.Background(), acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: t.peer.session})
	})
	if !t.left {
		t.stopAfter(settleGrace, t.stop)
	}
}

// isEnding reports whether the turn has to end. It blocks until the cancel was sent: the agent would otherwise treat the
// response to a request as an answer.
func (t *turn) isEnding() bool {
	if t.ctx.Err() == nil {
		return false
	}
	select {
	case <-t.cancelSent:
	case <-t.over:
	}
	return true
}

// leave waits for a process whose connection is gone.
func (t *turn) leave() {
	if t.left {
		return
	}
	t.left, t.drained = true, make(chan struct{})
	drained := t.drained
	t.joined.Go(func() {
		defer close(drained)
		t.peer.reader.catchUp(t.writing)
	})
	if !t.stopping {
		t.stopAfter(runtime.StopGrace, t.stop)
	}
}

// stop terminates the process, and kills it after StopGrace.
func (t *turn) stop() {
	if t.stopping {
		return
	}
	t.stopping = true
	t.peer.Terminate()
	t.stopAfter(runtime.StopGrace, t.peer.Kill)
	t.leave()
}

// stopAfter calls stop after d, in place of an earlier nextStop.
func (t *turn) stopAfter(d time.Duration, stop func()) {
	t.stopTimer, t.nextStop = time.After(d), stop
}

func (t *turn) write() {
	t.notices.flush(t.writing)
	t.output.Flush(t.writing)
}

// settle blocks until earlier output is written, before a question about it.
func (t *turn) settle(ctx context.Context) {
	done := make(chan struct{})
	select {
	case t.flushes <- done:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-t.over:
	}
}

// warn writes a message of the node to standard error of the run.
func (t *turn) warn(text string) {
	select {
	case t.strays <- text + "\n":
	case <-t.over:
	}
}
