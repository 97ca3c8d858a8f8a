package acp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
)

// settleGrace is how long an agent has to end a turn that was cancelled.
const settleGrace = 5 * time.Second

// turn is a run of the acp runtime: from a prompt to the agent's answer that it has stopped.
type turn struct {
	peer  *peer
	host  runtime.Host
	taken func()

	ctx     context.Context // ends when the turn is to end, or its time is over
	writing context.Context // outlasts ctx
	output  *runtime.OutputBuffer
	notices notices

	updates chan json.RawMessage // what the agent tells
	strays  chan string          // what it writes to its standard output that is no message
	flushes chan chan struct{}   // to have written what was put out
	written chan struct{}        // closed when the prompt was written
	slots   chan struct{}        // requests that are open
	told    chan struct{}        // closed when the agent was told to cancel, or cannot be
	over    chan struct{}        // closed at the end
	joined  sync.WaitGroup       // those who are at work for the turn

	asked    sync.Mutex
	elicited map[string]int // how often each question was asked

	err      error         // why the turn is to end; the first reason counts
	has      bool          // the agent has the prompt
	done     bool          // it has stopped
	stopping bool          // its process was told to end
	stays    bool          // its process is there for the next turn
	left     bool          // it is to go, or gone
	drained  chan struct{} // closed when all is taken that it has told, once it is gone
	pressed  <-chan time.Time
	press    func()
}

// stopped is the agent's answer to a prompt.
type stopped struct {
	reason acp.StopReason
	err    error
}

func newTurn(p *peer, d runtime.Host, taken func()) *turn {
	t := &turn{
		peer: p, host: d, taken: taken, output: runtime.NewOutputBuffer(d),
		updates: make(chan json.RawMessage), strays: make(chan string), flushes: make(chan chan struct{}),
		written: make(chan struct{}), slots: make(chan struct{}, runtime.MaxOpen), told: make(chan struct{}), over: make(chan struct{}), elicited: map[string]int{},
	}
	t.notices = notices{output: t.output, calls: &calls{byID: map[string]toolCall{}}}
	return t
}

// unheard reports whether the process had gone, before the turn, without anybody noticing.
func (t *turn) unheard() bool { return !t.has && t.err == nil }

// run has the turn. It returns when that is over, what was put out is written, and nobody works for it any more.
func (t *turn) run(ctx context.Context, s runtime.Spec, text string) runtime.Result {
	var stop context.CancelFunc
	if s.RunTime > 0 {
		t.ctx, stop = context.WithTimeoutCause(ctx, s.RunTime, parley.Refuse(parley.Timeout, "the run took longer than %v", s.RunTime))
	} else {
		t.ctx, stop = context.WithCancel(ctx)
	}
	writing, written := runtime.Outlive(t.ctx, settleGrace+runtime.StopGrace)
	defer written()
	t.writing = writing
	t.peer.setTurn(t)
	answers := make(chan stopped, 1)
	t.joined.Go(func() {
		r, err := acp.SendRequest[acp.PromptResponse](t.peer.conn, context.WithoutCancel(ctx), acp.AgentMethodSessionPrompt,
			acp.PromptRequest{SessionId: t.peer.session, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
		answers <- stopped{r.StopReason, err}
	})
	t.output.Add(t.writing, runtime.Errors, t.peer.takeEarly())
	t.converse(answers)
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
	if t.err == nil && !t.done {
		t.err = t.peer.ended()
	}
	return runtime.Result{Err: t.err, Tail: t.output.Tail.String()}
}

// converse goes on until the agent has stopped, or is gone.
func (t *turn) converse(answers <-chan stopped) {
	errs, ended, written := t.peer.Errs.Pieces, t.ctx.Done(), t.written
	var quiet, exited <-chan struct{}
	for {
		select {
		case <-written:
			written = nil
			t.take()
		case u := <-t.updates:
			t.take()
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
		case a := <-answers:
			if quiet = t.answered(a); quiet == nil {
				t.leave()
			}
			if t.peer.reader.why() != nil { // nothing that it says is read any more
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
		case <-t.pressed:
			t.pressed = nil
			t.press()
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
