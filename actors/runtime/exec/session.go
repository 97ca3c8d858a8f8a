package exec

import (
	"context"
	"strings"
	"time"

	"parley"
	"parley/actors/runtime"
	"parley/capabilities"
)

// cancelGrace is the time that a kept program has to write done after a cancel.
const cancelGrace = 2 * time.Second

// session is one run. It carries the exchange between a worker and a host.
type session struct {
	spec   runtime.Spec
	worker *runtime.Worker
	used   bool // the worker has served other runs before
	prompt runtime.Prompt
	host   runtime.Host
	taken  func()

	ctx      context.Context // ends when the run has to end, or its time is over
	timeUp   error           // the cause of ctx in the latter case
	writing  context.Context // outlasts ctx, so that earlier output is written
	output   *runtime.OutputBuffer
	requests *requests

	err       error // the first reason to end the run
	failure   error // the error that the program reported
	passed    bool  // the program went on after it had reported one
	done      bool  // the program has written done
	delivered bool  // the program has the prompt
	stopping  bool  // the process is being ended
	idle      bool  // the process is kept for the next run

	written   chan error       // the result of writing the prompt
	drained   <-chan struct{}  // closed when the output before done is read; nil without a wait for it
	stopTimer <-chan time.Time // when to call nextStop
	nextStop  func()           // the next step to end the program
}

func newSession(s runtime.Spec, w *runtime.Worker, used bool, p runtime.Prompt, d runtime.Host, taken func()) *session {
	return &session{
		spec: s, worker: w, used: used, prompt: p, host: d, taken: taken,
		output: runtime.NewOutputBuffer(d), written: make(chan error, 1),
	}
}

// run performs the run. It returns when the run is over and its output is written.
func (s *session) run(ctx context.Context) runtime.Result {
	s.ctx = ctx
	if s.spec.RunTime > 0 {
		s.timeUp = parley.Refuse(parley.Timeout, "the run took longer than %s", capabilities.Span(s.spec.RunTime))
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
	s.exchange()
	select {
	case err := <-s.written:
		s.promptWritten(err)
	default:
	}
	s.write()
	if err := s.output.Err; err != nil && s.err == nil {
		s.err = runtime.CauseOf(s.ctx, err)
	}
	if !s.delivered && s.err == nil && (!s.used || s.idle) { // done may arrive before the result of the write
		s.deliver()
	}
	return runtime.Result{Err: s.outcome(), Tail: s.output.Tail.String()}
}

// missed reports whether the process had ended before this run. Its earlier output may have arrived during the run.
func (s *session) missed() bool { return s.used && !s.delivered && !s.idle && s.err == nil }

// outcome returns the error of the ended run.
func (s *session) outcome() error {
	switch {
	case s.err != nil:
		return s.err
	case s.failure != nil && !(s.passed && s.endedWell()):
		return s.failure
	case s.done:
		return nil
	case s.worker.Err == nil && s.spec.Keep:
		return parley.Refuse(parley.Internal, "the program ended before it was done")
	}
	return s.worker.Err
}

// endedWell reports whether the program is done, or has ended with the status 0 that stands for it. An error that it
// reported before was a passing one then.
func (s *session) endedWell() bool { return s.done || s.worker.Err == nil && !s.spec.Keep }

// exchange returns when the process has ended, or is done and kept.
func (s *session) exchange() {
	out, errs, ended := s.worker.Out.Pieces, s.worker.Errs.Pieces, s.ctx.Done()
	for {
		var exited <-chan struct{}
		if out == nil && errs == nil {
			exited = s.worker.Exited
		}
		select {
		case err := <-s.written:
			s.promptWritten(err)
		case p, ok := <-out:
			if !ok {
				out = nil
			} else {
				s.receive(p)
			}
		case p, ok := <-errs:
			if !ok {
				errs = nil
			} else {
				s.receivedOutput()
				s.output.Add(s.writing, runtime.Errors, p.Text)
			}
		case <-s.output.Due:
			s.write()
		case <-ended:
			ended = nil
			s.cancel()
		case <-s.stopTimer:
			s.stopTimer = nil
			s.nextStop()
		case <-s.drained:
			s.idle = true
			return
		case <-exited:
			return
		}
		if err := s.output.Err; err != nil {
			s.fail(runtime.CauseOf(s.ctx, err))
		}
	}
}

// promptWritten handles the result of writing the prompt. A new command has it even if it does not read. A kept one
// that does not read is about to end.
func (s *session) promptWritten(err error) {
	if err == nil || !s.used {
		s.deliver()
	} else {
		s.stop()
	}
}

func (s *session) deliver() {
	if !s.delivered {
		s.delivered = true
		s.taken()
	}
}

// receivedOutput counts output of a new process as delivery of the prompt. Output of a used one may be of an earlier
// run.
func (s *session) receivedOutput() {
	if !s.used {
		s.deliver()
	}
}

// receive handles a line of the program.
func (s *session) receive(p runtime.Piece) {
	s.receivedOutput()
	if p.Err != nil {
		s.fail(p.Err)
		return
	}
	l, plain, err := parseLine(p.Text)
	if s.failure != nil && !s.passed && l.Type != typeDone && strings.TrimSpace(p.Text) != "" { // nobody is told of it otherwise
		s.passed = true
		s.output.Add(s.writing, runtime.Errors, parley.AsError(s.failure).Message+"\n")
	}
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
	case typeOutput:
		s.output.Add(s.writing, runtime.Output, l.Text)
	case typeError:
		s.failure, s.passed = runtime.ProgramError(l.Message), false
	case typeDone:
		s.finish(l)
	case typeSend:
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
		s.failure, s.passed = runtime.ProgramError(l.Error), false
	}
	s.requests.cancel()
	switch {
	case s.stopping:
	case s.spec.Keep:
		s.drained = s.worker.Errs.WhenQuiet()
	default:
		s.worker.In.Close()
		s.stopAfter(runtime.ExitGrace, s.stop)
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
		s.stopAfter(cancelGrace, s.stop)
	}
}

// stop terminates the process, and kills it after StopGrace.
func (s *session) stop() {
	if s.stopping {
		return
	}
	s.stopping = true
	s.worker.Terminate()
	s.stopAfter(runtime.StopGrace, s.worker.Kill)
}

// stopAfter calls stop after d, in place of an earlier nextStop.
func (s *session) stopAfter(d time.Duration, stop func()) {
	s.stopTimer, s.nextStop = time.After(d), stop
}
