//go:build unix

package runtimetest

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"parley"
	"parley/actors/runtime"
	"parley/actors/runtime/proctest"
)

// Host is a runtime.Host that keeps what is written, and leaves questions and calls to the test.
type Host struct {
	t           testing.TB
	WriteFunc   func(runtime.Stream, string) error // called in place of keeping, if set
	SendFunc    func(to, text string) error
	ApproveFunc func(runtime.Call) (runtime.Decision, error)
	MayFunc     func(file string) error // called for each file that is to be written; nil allows all

	mu        sync.Mutex
	Written   []Writing
	Sent      []string
	Questions chan *OpenQuestion
	Calls     chan *OpenCall
}

// Writing is one call of Write.
type Writing struct {
	Stream runtime.Stream
	Text   string
}

// OpenQuestion is a question that waits for a Reply.
type OpenQuestion struct {
	runtime.Question
	Reply chan runtime.Answer
}

// OpenCall is a call that waits for Decide.
type OpenCall struct {
	runtime.Call
	Decide chan runtime.Decision
}

// NewHost returns a host for a test.
func NewHost(t testing.TB) *Host {
	return &Host{t: t, Questions: make(chan *OpenQuestion, 100), Calls: make(chan *OpenCall, 100)}
}

// Write keeps a piece of output. It checks the promises of runtime about its size and encoding.
func (h *Host) Write(ctx context.Context, stream runtime.Stream, text string) error {
	if len(text) == 0 || len(text) > runtime.MaxText || !utf8.ValidString(text) {
		h.t.Errorf("a piece of %d bytes was written, or one that is not UTF-8", len(text))
	}
	if h.WriteFunc != nil {
		return h.WriteFunc(stream, text)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Written = append(h.Written, Writing{stream, text})
	return nil
}

// Ask blocks until the test replies.
func (h *Host) Ask(ctx context.Context, q runtime.Question) (runtime.Answer, error) {
	a := &OpenQuestion{Question: q, Reply: make(chan runtime.Answer, 1)}
	h.Questions <- a
	select {
	case answer := <-a.Reply:
		return answer, nil
	case <-ctx.Done():
		return runtime.Answer{}, ctx.Err()
	}
}

// Approve blocks until the test decides.
func (h *Host) Approve(ctx context.Context, c runtime.Call) (runtime.Decision, error) {
	if h.ApproveFunc != nil {
		return h.ApproveFunc(c)
	}
	a := &OpenCall{Call: c, Decide: make(chan runtime.Decision, 1)}
	h.Calls <- a
	select {
	case decision := <-a.Decide:
		return decision, nil
	case <-ctx.Done():
		return runtime.Decision{}, ctx.Err()
	}
}

// MayWrite implements runtime.Host.
func (h *Host) MayWrite(_ context.Context, file string) error {
	if h.MayFunc != nil {
		return h.MayFunc(file)
	}
	return nil
}

// MayRun implements runtime.Host.
func (h *Host) MayRun(context.Context, []string, string) error { return nil }

// Send keeps a message.
func (h *Host) Send(_ context.Context, to, text string) error {
	if h.SendFunc != nil {
		return h.SendFunc(to, text)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Sent = append(h.Sent, to+": "+text)
	return nil
}

// Text returns all that was written to a stream.
func (h *Host) Text(stream runtime.Stream) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, w := range h.Written {
		if w.Stream == stream {
			b.WriteString(w.Text)
		}
	}
	return b.String()
}

// NextQuestion blocks until the program asks.
func (h *Host) NextQuestion() *OpenQuestion { return proctest.Next(h.t, h.Questions) }

// NextCall blocks until the program wants to make a call.
func (h *Host) NextCall() *OpenCall { return proctest.Next(h.t, h.Calls) }

// Run is a run under way.
type Run struct {
	*Host
	Cancel context.CancelCauseFunc
	Taken  chan struct{}
	Ended  chan runtime.Result
}

// Begin starts a run. It ends with the test at the latest.
func Begin(t testing.TB, r runtime.Program, d *Host, p runtime.Prompt) *Run {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	run := &Run{Host: d, Cancel: cancel, Taken: make(chan struct{}, 2), Ended: make(chan runtime.Result, 1)}
	go func() { run.Ended <- r.Run(ctx, p, d, func() { run.Taken <- struct{}{} }) }()
	t.Cleanup(func() { cancel(nil) })
	return run
}

// Result blocks until the end of the run. It checks that the prompt was taken exactly once.
func (r *Run) Result() runtime.Result {
	r.t.Helper()
	result := proctest.Next(r.t, r.Ended)
	if len(r.Taken) != 1 {
		r.t.Errorf("the prompt was taken %d times", len(r.Taken))
	}
	return result
}

// checkHostFails checks that a run ends with the error of a host that keeps nothing any more. It closes the program.
func checkHostFails(t testing.TB, program runtime.Program, p runtime.Prompt) {
	t.Helper()
	defer program.Close()
	full := parley.Refuse(parley.ReadOnly, "the disk is full")
	h := NewHost(t)
	h.WriteFunc = func(runtime.Stream, string) error { return full }
	if got := Begin(t, program, h, p).Result(); !errors.Is(got.Err, full) {
		t.Errorf("ended with %v", got.Err)
	}
}

// checkHostStuck checks that a run can be ended while its host blocks in Write. It closes the program.
func checkHostStuck(t testing.TB, program runtime.Program, p runtime.Prompt) {
	t.Helper()
	defer program.Close()
	h := &stuckHost{Host: NewHost(t), stuck: make(chan struct{}, 10)}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan runtime.Result, 1)
	go func() { ended <- program.Run(ctx, p, h, func() {}) }()
	proctest.Next(t, h.stuck)
	cancel(proctest.ErrEnough)
	if got := proctest.Next(t, ended); got.Err != proctest.ErrEnough {
		t.Errorf("ended with %v", got.Err)
	}
}

// stuckHost blocks in Write until its context ends.
type stuckHost struct {
	*Host
	stuck chan struct{}
}

func (h *stuckHost) Write(ctx context.Context, _ runtime.Stream, _ string) error {
	h.stuck <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// WasKilled reports whether a run ended because its program was killed.
func WasKilled(r runtime.Result) bool {
	return r.Err != nil && strings.HasSuffix(r.Err.Error(), "killed by SIGKILL")
}

// Playing returns the specification of a program that the test binary plays.
func Playing(name string) runtime.Spec {
	return runtime.Spec{Command: []string{os.Args[0]}, Environment: []string{proctest.Part + "=" + name, "GOCOVERDIR=" + os.TempDir()}}
}

// Script returns the specification of a shell script.
func Script(text string) runtime.Spec { return runtime.Spec{Command: []string{"sh", "-c", text}} }
