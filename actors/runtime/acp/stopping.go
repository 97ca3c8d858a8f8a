package acp

import (
	"context"
	"time"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
)

// answered takes that the agent has stopped. It gives what is closed when all is read that it wrote before; nil if it has
// not stopped but is gone.
func (t *turn) answered(a stopped) <-chan struct{} {
	if a.err != nil && t.peer.lost() {
		return nil
	}
	t.take()
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

func (t *turn) take() {
	if !t.has {
		t.has = true
		t.taken()
	}
}

func (t *turn) failed(err error) {
	if t.err == nil {
		t.err = err
	}
}

// fail has the turn end badly, and the process with it.
func (t *turn) fail(err error) {
	t.failed(err)
	t.stop()
}

// cancel has the agent end the turn, and the process if it does not.
func (t *turn) cancel() {
	if t.done {
		return
	}
	t.failed(context.Cause(t.ctx))
	t.peer.handlers.Go(func() { // not joined: an agent that does not read is not waited for
		defer close(t.told)
		// if it cannot be told it is gone, or soon will be
		_ = t.peer.conn.SendNotification(context.Background(), acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: t.peer.session})
	})
	if !t.left {
		t.pressIn(settleGrace, t.stop)
	}
}

// isEnding reports whether the turn is to end. What the agent asks is answered only once it was told that: it would go on
// with what it takes for an answer.
func (t *turn) isEnding() bool {
	if t.ctx.Err() == nil {
		return false
	}
	select {
	case <-t.told:
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
		t.pressIn(runtime.StopGrace, t.stop)
	}
}

// stop has the process end, and kills it if it does not.
func (t *turn) stop() {
	if t.stopping {
		return
	}
	t.stopping = true
	t.peer.Terminate()
	t.pressIn(runtime.StopGrace, t.peer.Kill)
	t.leave()
}

func (t *turn) pressIn(d time.Duration, press func()) { t.pressed, t.press = time.After(d), press }

func (t *turn) write() {
	t.notices.flush(t.writing)
	t.output.Flush(t.writing)
}

// settle has what was put out be written before something is asked about it.
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

// complain writes what the node has to say to whoever reads the errors.
func (t *turn) complain(text string) {
	select {
	case t.strays <- text + "\n":
	case <-t.over:
	}
}
