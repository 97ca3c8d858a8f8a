package runtime

import (
	"context"
	"time"

	"parley"
)

// cancelGrace is how long a program that is kept has to say done after it was told to cancel.
const cancelGrace = 2 * time.Second

// talk is a run of the exec runtime: what is said between a worker and a desk.
type talk struct {
	spec   Spec
	w      *worker
	used   bool // the worker has served other runs before
	prompt Prompt
	desk   Desk
	taken  func()

	ctx      context.Context // ends when the run is to end, or its time is over
	timeUp   error           // what ctx ends by in the latter case
	writing  context.Context // outlasts ctx: what was put out before the end is written
	gather   *gather
	requests *requests

	err      error // why the run is to end; the first reason counts
	failure  error // what the program said went wrong
	done     bool  // it has said that it is done
	has      bool  // it has the prompt
	stopping bool  // its process was told to end
	stays    bool  // its process is there for the next run

	written chan error       // the prompt was, or cannot be
	quiet   <-chan struct{}  // closed when all is read that was put out before done; nil unless that is what is waited for
	pressed <-chan time.Time // when to press
	press   func()           // the next that is done to have the program end
}

func newTalk(s Spec, w *worker, used bool, p Prompt, d Desk, taken func()) *talk {
	return &talk{
		spec: s, w: w, used: used, prompt: p, desk: d, taken: taken,
		gather: &gather{desk: d, tail: &tail{}}, written: make(chan error, 1),
	}
}

// run has the conversation. It returns when the run is over, and all that was put out is written.
func (t *talk) run(ctx context.Context) Result {
	t.ctx = ctx
	if t.spec.RunTime > 0 {
		t.timeUp = parley.Refuse(parley.Timeout, "the run took longer than %v", t.spec.RunTime)
		var stop context.CancelFunc
		t.ctx, stop = context.WithTimeoutCause(ctx, t.spec.RunTime, t.timeUp)
		defer stop()
	}
	writing, written := lasting(t.ctx, stopGrace)
	defer written()
	t.writing = writing
	t.requests = newRequests(t.ctx, t.desk, t.w.in)
	defer t.requests.close()

	t.w.in.put(t.ctx, promptFrame(t.prompt, t.written))
	t.converse()
	t.write()
	if err := t.gather.failed; err != nil && t.err == nil {
		t.err = withCause(t.ctx, err)
	}
	if !t.has && t.err == nil && !t.used {
		t.take()
	}
	return Result{Err: t.outcome(), Tail: t.gather.tail.String()}
}

// unheard reports whether the process had gone, before this run, without anybody noticing.
func (t *talk) unheard() bool { return t.used && !t.has && t.err == nil }

// outcome says how the run ended, once it has.
func (t *talk) outcome() error {
	switch {
	case t.err != nil:
		return t.err
	case t.failure != nil:
		return t.failure
	case t.done:
		return nil
	case t.w.ending == nil && t.spec.Keep:
		return parley.Refuse(parley.Internal, "the program ended before it was done")
	}
	return t.w.ending
}

// converse goes on until the process has ended, or is done and stays.
func (t *talk) converse() {
	out, errs, ended := t.w.out.pieces, t.w.errs.pieces, t.ctx.Done()
	for {
		var exited <-chan struct{}
		if out == nil && errs == nil {
			exited = t.w.exited
		}
		select {
		case err := <-t.written:
			t.given(err)
		case p, ok := <-out:
			if !ok {
				out = nil
			} else {
				t.hear(p)
			}
		case p, ok := <-errs:
			if !ok {
				errs = nil
			} else {
				t.take()
				t.gather.add(t.writing, Errors, p.text)
			}
		case <-t.gather.due:
			t.write()
		case <-ended:
			ended = nil
			t.cancel()
		case <-t.pressed:
			t.pressed = nil
			t.press()
		case <-t.quiet:
			t.stays = true
			return
		case <-exited:
			return
		}
		if err := t.gather.failed; err != nil {
			t.fail(withCause(t.ctx, err))
		}
	}
}

// given is told whether the prompt was written. A command that does not read has it nevertheless; one that served other
// runs and does not read any more is about to go.
func (t *talk) given(err error) {
	if err == nil || !t.used {
		t.take()
	} else {
		t.stop()
	}
}

func (t *talk) take() {
	if !t.has {
		t.has = true
		t.taken()
	}
}

// hear takes a line that the program has put out.
func (t *talk) hear(p piece) {
	t.take()
	if p.err != nil {
		t.fail(p.err)
		return
	}
	l, plain, err := parseLine(p.text)
	if plain {
		t.gather.add(t.writing, Output, p.text)
	}
	if err != nil {
		t.w.in.offer(refusal(l.ID, err))
	}
	if plain || err != nil {
		return
	}
	switch l.Type {
	case saysOutput:
		t.gather.add(t.writing, Output, l.Text)
	case saysError:
		t.failure = failureOf(l.Message)
	case saysDone:
		t.finish(l)
	case saysSend:
		t.send(l)
	default:
		if t.mayAsk() {
			t.write()
			t.requests.open(l)
		}
	}
}

// mayAsk reports whether the run is not about to end.
func (t *talk) mayAsk() bool { return !t.done && t.err == nil }

// send sends a message: in the order of what is put out, and before anything that comes after it.
func (t *talk) send(l line) {
	if !t.mayAsk() {
		return
	}
	t.write()
	if err := t.desk.Send(t.ctx, l.To, l.Text); err != nil {
		t.w.in.offer(refusal(l.ID, err))
	} else if l.ID != "" {
		t.w.in.offer(frameOf(sentLine{Type: "sent", ID: l.ID}))
	}
}

// finish takes that the program is done.
func (t *talk) finish(l line) {
	if t.done || l.Run != "" && l.Run != t.prompt.Run {
		return
	}
	t.done = true
	t.gather.add(t.writing, Output, l.Text)
	if l.Error != "" {
		t.failure = failureOf(l.Error)
	}
	t.requests.cancel()
	switch {
	case t.stopping:
	case t.spec.Keep:
		t.quiet = t.w.errs.whenQuiet()
	default:
		t.w.in.close()
		t.pressIn(exitGrace, t.stop)
	}
}

func (t *talk) write() { t.gather.flush(t.writing) }

// fail has the run end badly.
func (t *talk) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.requests.cancel()
	t.stop()
}

// cancel has the run end because it is to, or has taken too long.
func (t *talk) cancel() {
	switch cause := context.Cause(t.ctx); {
	case t.done && t.spec.Keep:
	case t.done:
		t.stop()
	case !t.spec.Keep || cause == t.timeUp:
		t.fail(cause)
	case t.err == nil:
		t.err = cause
		t.requests.cancel()
		t.w.in.offer(frameOf(cancelLine{Type: "cancel", Run: t.prompt.Run}))
		t.pressIn(cancelGrace, t.stop)
	}
}

// stop has the process end, and kills it if it does not.
func (t *talk) stop() {
	if t.stopping {
		return
	}
	t.stopping = true
	t.w.terminate()
	t.pressIn(stopGrace, t.w.kill)
}

func (t *talk) pressIn(d time.Duration, press func()) { t.pressed, t.press = time.After(d), press }
