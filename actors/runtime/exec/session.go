package exec

import (
	"context"
	"time"

	"parley"
	"parley/actors/runtime"
)

// cancelGrace is the time that a kept program has to say done after a cancel.
const cancelGrace = 2 * time.Second

// session is one run: it carries what a worker and a host exchange.
type session struct {
	spec   runtime.Spec
	worker *runtime.Worker
	used   bool // the worker has served other runs before
	prompt runtime.Prompt
	host   runtime.Host
	taken  func()

	ctx      context.Context // ends when the run is to end, or its time is over
	timeUp   error           // what ctx ends by in the latter case
	writing  context.Context // outlasts ctx: what was put out before the end is written
	output   *runtime.OutputBuffer
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

func newSession(s runtime.Spec, w *runtime.Worker, used bool, p runtime.Prompt, d runtime.Host, taken func()) *session {
	return &session{
		spec: s, worker: w, used: used, prompt: p, host: d, taken: taken,
		output: runtime.NewOutputBuffer(d), written: make(chan error, 1),
	}
}

// run carries the exchange. It returns when the run is over and its output is written.
func (s *session) run(ctx context.Context) runtime.Result {
	s.ctx = ctx
	if s.spec.RunTime > 0 {
		s.timeUp = parley.Refuse(parley.Timeout, "the run took longer than %v", s.spec.RunTime)
		var stop context.CancelFunc
		s.ctx, stop = context.WithTimeoutCause(ctx, s.spec.RunTime, s.timeUp)
		defer stop()
	}
	writing, written := runtime.Outlive(s.ctx, runtime.StopGrace)
	defer written()
	s.writing = writing
	s.requests = newRequests(s.ctx, s.host, s.worker.In)
	defer s.requests.close()

	s.worker.In.Put(s.ctx, promptFrame(s.prompt, s.written))
	s.converse()
	select {
	case err := <-s.written:
		s.given(err)
	default:
	}
	s.write()
	if err := s.output.Err; err != nil && s.err == nil {
		s.err = runtime.CauseOf(s.ctx, err)
	}
	if !s.has && s.err == nil && !s.used {
		s.take()
	}
	return runtime.Result{Err: s.outcome(), Tail: s.output.Tail.String()}
}

// unheard reports whether the process had ended before this run. What it had put out until then may have come in the
// run.
func (s *session) unheard() bool { return s.used && !s.has && !s.stays && s.err == nil }

// outcome returns the error of the ended run.
func (s *session) outcome() error {
	switch {
	case s.err != nil:
		return s.err
	case s.failure != nil:
		return s.failure
	case s.done:
		return nil
	case s.worker.Err == nil && s.spec.Keep:
		return parley.Refuse(parley.Internal, "the program ended before it was done")
	}
	return s.worker.Err
}

// converse returns when the process has ended, or is done and stays.
func (s *session) converse() {
	out, errs, ended := s.worker.Out.Pieces, s.worker.Errs.Pieces, s.ctx.Done()
	for {
		var exited <-chan struct{}
		if out == nil && errs == nil {
			exited = s.worker.Exited
		}
		select {
		case err := <-s.written:
			s.given(err)
		case p, ok := <-out:
			if !ok {
				out = nil
			} else {
				s.hear(p)
			}
		case p, ok := <-errs:
			if !ok {
				errs = nil
			} else {
				s.heard()
				s.output.Add(s.writing, runtime.Errors, p.Text)
			}
		case <-s.output.Due:
			s.write()
		case <-ended:
			ended = nil
			s.cancel()
		case <-s.pressed:
			s.pressed = nil
			s.press()
		case <-s.quiet:
			s.stays = true
			return
		case <-exited:
			return
		}
		if err := s.output.Err; err != nil {
			s.fail(runtime.CauseOf(s.ctx, err))
		}
	}
}

// given handles the result of writing the prompt. A new command has it even if it does not read. A kept one that
// does not read is about to end.
func (s *session) given(err error) {
	if err == nil || !s.used {
		s.take()
	} else {
		s.stop()
	}
}

func (s *session) take() {
	if !s.has {
		s.has = true
		s.taken()
	}
}

// heard handles the first output of a new process. That of a used one may be of an earlier run.
func (s *session) heard() {
	if !s.used {
		s.take()
	}
}

// hear handles a line of the program.
func (s *session) hear(p runtime.Piece) {
	s.heard()
	if p.Err != nil {
		s.fail(p.Err)
		return
	}
	l, plain, err := parseLine(p.Text)
	if plain {
		s.output.Add(s.writing, runtime.Output, p.Text)
	}
	if err != nil {
		s.worker.In.Offer(refusal(l.ID, err))
	}
	if plain || err != nil {
		return
	}
	switch l.Type {
	case saysOutput:
		s.output.Add(s.writing, runtime.Output, l.Text)
	case saysError:
		s.failure = runtime.ProgramError(l.Message)
	case saysDone:
		s.finish(l)
	case saysSend:
		s.send(l)
	default:
		if s.mayAsk() {
			s.write()
			s.requests.open(l)
		}
	}
}

// mayAsk reports whether the run accepts questions.
func (s *session) mayAsk() bool { return !s.done && s.err == nil }

// send sends a message, in its order among the output.
func (s *session) send(l line) {
	if !s.mayAsk() {
		return
	}
	s.write()
	if err := s.host.Send(s.ctx, l.To, l.Text); err != nil {
		s.worker.In.Offer(refusal(l.ID, err))
	} else if l.ID != "" {
		s.worker.In.Offer(runtime.NewFrame(sentLine{Type: "sent", ID: l.ID}))
	}
}

// finish handles the program's done.
func (s *session) finish(l line) {
	if s.done || l.Run != "" && l.Run != s.prompt.Run {
		return
	}
	s.done = true
	s.output.Add(s.writing, runtime.Output, l.Text)
	if l.Error != "" {
		s.failure = runtime.ProgramError(l.Error)
	}
	s.requests.cancel()
	switch {
	case s.stopping:
	case s.spec.Keep:
		s.quiet = s.worker.Errs.WhenQuiet()
	default:
		s.worker.In.Close()
		s.pressIn(runtime.ExitGrace, s.stop)
	}
}

func (s *session) write() { s.output.Flush(s.writing) }

// fail ends the run with an error.
func (s *session) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.requests.cancel()
	s.stop()
}

// cancel ends the run at the end of its context.
func (s *session) cancel() {
	switch cause := context.Cause(s.ctx); {
	case s.done && s.spec.Keep:
	case s.done:
		s.stop()
	case !s.spec.Keep || cause == s.timeUp:
		s.fail(cause)
	case s.err == nil:
		s.err = cause
		s.requests.cancel()
		s.worker.In.Offer(runtime.NewFrame(cancelLine{Type: "cancel", Run: s.prompt.Run}))
		s.pressIn(cancelGrace, s.stop)
	}
}

// stop terminates the process, and kills it after StopGrace.
func (s *session) stop() {
	if s.stopping {
		return
	}
	s.stopping = true
	s.worker.Terminate()
	s.pressIn(runtime.StopGrace, s.worker.Kill)
}

func (s *session) pressIn(d time.Duration, press func()) { s.pressed, s.press = time.After(d), press }
