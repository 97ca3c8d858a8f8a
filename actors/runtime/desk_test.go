//go:build unix

package runtime

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// testDesk is the other side of the contract: it keeps what is written, and has questions wait for a test to answer.
type testDesk struct {
	t       testing.TB
	write   func(Stream, string) error // instead of keeping, if set
	send    func(to, text string) error
	approve func(Call) (Decision, error)

	mu        sync.Mutex
	written   []writing
	sent      []string
	questions chan *asked
	calls     chan *called
}

type writing struct {
	stream Stream
	text   string
}

type asked struct {
	Question
	answer chan Answer
}

type called struct {
	Call
	decide chan Decision
}

func newTestDesk(t testing.TB) *testDesk {
	return &testDesk{t: t, questions: make(chan *asked, 100), calls: make(chan *called, 100)}
}

func (d *testDesk) Write(ctx context.Context, stream Stream, text string) error {
	if len(text) == 0 || len(text) > MaxText || !utf8.ValidString(text) {
		d.t.Errorf("a piece of %d bytes was written, or one that is not UTF-8", len(text))
	}
	if d.write != nil {
		return d.write(stream, text)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.written = append(d.written, writing{stream, text})
	return nil
}

func (d *testDesk) Ask(ctx context.Context, q Question) (Answer, error) {
	a := &asked{Question: q, answer: make(chan Answer, 1)}
	d.questions <- a
	select {
	case answer := <-a.answer:
		return answer, nil
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

func (d *testDesk) Approve(ctx context.Context, c Call) (Decision, error) {
	if d.approve != nil {
		return d.approve(c)
	}
	a := &called{Call: c, decide: make(chan Decision, 1)}
	d.calls <- a
	select {
	case decision := <-a.decide:
		return decision, nil
	case <-ctx.Done():
		return Decision{}, ctx.Err()
	}
}

func (d *testDesk) Send(_ context.Context, to, text string) error {
	if d.send != nil {
		return d.send(to, text)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = append(d.sent, to+": "+text)
	return nil
}

// output gives all that was written of a stream.
func (d *testDesk) output(stream Stream) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for _, w := range d.written {
		if w.stream == stream {
			b.WriteString(w.text)
		}
	}
	return b.String()
}

// question waits for the next question.
func (d *testDesk) question() *asked { return next(d.t, d.questions) }

// call waits for the next call.
func (d *testDesk) call() *called { return next(d.t, d.calls) }

const patience = 60 * time.Second

// stacks says what goes on.
func stacks() []byte {
	room := make([]byte, 1<<20)
	return room[:runtime.Stack(room, true)]
}

func next[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("nothing came, while this went on:\n%s", stacks())
		panic("unreachable")
	}
}

// until waits for something to become so.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

// running is a run that is under way.
type running struct {
	*testDesk
	cancel context.CancelCauseFunc
	taken  chan struct{}
	ended  chan Result
}

// begin begins a run. The runtime is closed at the end of the test.
func begin(t testing.TB, r Runtime, d *testDesk, p Prompt) *running {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	run := &running{testDesk: d, cancel: cancel, taken: make(chan struct{}, 2), ended: make(chan Result, 1)}
	go func() { run.ended <- r.Run(ctx, p, d, func() { run.taken <- struct{}{} }) }()
	t.Cleanup(func() { cancel(nil) })
	return run
}

// result waits for the end of the run, and has its program taken exactly once.
func (r *running) result() Result {
	r.t.Helper()
	result := next(r.t, r.ended)
	if len(r.taken) != 1 {
		r.t.Errorf("the prompt was taken %d times", len(r.taken))
	}
	return result
}

// run runs a prompt on a new runtime to its end.
func run(t testing.TB, s Spec, p Prompt) (*testDesk, Result) {
	t.Helper()
	r := NewExec(s)
	defer r.Close()
	d := newTestDesk(t)
	return d, begin(t, r, d, p).result()
}
