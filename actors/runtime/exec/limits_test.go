//go:build unix

package exec

import (
	"fmt"

	"parley"
	"parley/actors/runtime"
	"parley/actors/runtime/proctest"
	"parley/actors/runtime/runtimetest"
	"parley/internal/eventually"

	goruntime "runtime"
	"strings"
	"testing"
)

func TestProcessesOfProgramEndWithIt(t *testing.T) {
	for _, keep := range []bool{false, true} {
		s := runtimetest.Script(proctest.LeftBehind + "sleep 0.2; echo end")
		s.Keep = keep
		d, r := run(t, s, hello)
		if (r.Err == nil) == keep {
			t.Errorf("ended with %v", r.Err)
		}
		proctest.WantAllGone(t, strings.Fields(strings.TrimSuffix(d.Text(runtime.Output), "end\n")), 4)
	}
}

func TestOpenPipesDoNotDelayRunEnd(t *testing.T) {
	d, r := run(t, runtimetest.Playing("grandchild"), hello)
	if r.Err != nil {
		t.Error(r.Err)
	}
	proctest.WantAllGone(t, strings.Fields(d.Text(runtime.Output)), 2)
}

func TestMuchOutputWaitsForHost(t *testing.T) {
	d := runtimetest.NewHost(t)
	var got strings.Builder
	first, room := make(chan struct{}), make(chan struct{})
	pieces := 0
	d.WriteFunc = func(_ runtime.Stream, text string) error {
		if pieces++; pieces == 1 {
			close(first)
		}
		<-room
		got.WriteString(text)
		return nil
	}
	r := New(runtimetest.Playing("flood"))
	run := runtimetest.Begin(t, r, d, hello)
	<-first
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	eventually.Holds(t, "it waits", func() bool { return proctest.IsWaiting(t) })
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+1<<20 {
		t.Errorf("%d bytes more are held", after.HeapAlloc-before.HeapAlloc)
	}
	select {
	case r := <-run.Ended:
		t.Fatalf("it ended before its output was written: %v", r.Err)
	default:
	}
	close(room)
	if r := run.Result(); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got.Len() != 64<<16 || pieces > 64<<16/runtime.MaxText*5/4 { // a slow machine reads some pieces before they are full
		t.Errorf("%d bytes were written, in %d pieces", got.Len(), pieces)
	}
	i := 0
	for l := range strings.Lines(got.String()) {
		if l != fmt.Sprintf("%063d\n", i) {
			t.Fatalf("line %d is %q", i, l)
		}
		i++
	}
}

func TestLineLengthIsLimited(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		wrong  bool
		size   int
	}{
		"as long as it may be": {fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo", runtime.MaxLine), false, runtime.MaxLine + 1},
		"longer by one":        {fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo; echo more", runtime.MaxLine+1), true, 0},
		"10 MiB":               {"echo before; head -c 10485760 /dev/zero | tr '\\0' x; echo", true, 7},
		"10 MiB without end":   {"head -c 10485760 /dev/zero", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := run(t, runtimetest.Script(c.script), hello)
			if (parley.CodeOf(r.Err) == parley.TooLarge) != c.wrong {
				t.Errorf("ended with %v", r.Err)
			}
			if got := len(d.Text(runtime.Output)); got != c.size {
				t.Errorf("%d bytes were written", got)
			}
		})
	}
	d, r := run(t, runtimetest.Script("head -c 3145728 /dev/zero | tr '\\0' x >&2; printf 'é' >&2"), hello)
	if got := d.Text(runtime.Errors); r.Err != nil || len(got) != 3<<20+2 || !strings.HasSuffix(got, "xé") {
		t.Errorf("standard error: %d bytes, %v", len(got), r.Err)
	}
}

func TestOutputIsValidText(t *testing.T) {
	d, r := run(t, runtimetest.Script("head -c 200000 /dev/urandom; head -c 200000 /dev/urandom >&2; echo; echo end"), hello)
	if r.Err != nil || !strings.HasSuffix(d.Text(runtime.Output), "end\n") || len(d.Text(runtime.Errors)) < 200_000 {
		t.Errorf("%v: %d and %d bytes", r.Err, len(d.Text(runtime.Output)), len(d.Text(runtime.Errors)))
	}
	if len(r.Tail) > runtime.TailSize {
		t.Errorf("the tail has %d bytes", len(r.Tail))
	}
	deep := strings.Repeat(`{"a":[`, 40) + strings.Repeat("]}", 40)
	d, r = run(t, runtimetest.Script(`echo '{"type":"done","x":`+deep+`}'; echo '`+strings.Repeat("[", 500_000/10)+`'`), hello)
	if r.Err != nil || !strings.Contains(d.Text(runtime.Output), deep) {
		t.Errorf("a line that is too deep is output: %v", r.Err)
	}
}

func TestProgramThatDoesNotReadIsNotWaitedFor(t *testing.T) {
	if _, r := run(t, runtimetest.Playing("deaf"), hello); r.Err != nil {
		t.Error(r.Err)
	}
	p := hello
	p.Text = strings.Repeat("x", 1<<20)
	d, r := run(t, runtimetest.Script(`head -c 100000 /dev/zero | tr '\0' '\n'; echo end`), p)
	if r.Err != nil || !strings.HasSuffix(d.Text(runtime.Output), "\nend\n") {
		t.Error(r.Err)
	}
}

func TestQuestionIsNotWaitedForAfterRun(t *testing.T) {
	d, r := run(t, runtimetest.Script(`echo '{"type":"ask","id":"a","prompt":"?"}'; echo '{"type":"approval","id":"b","tool":"t"}'; echo '{"type":"done"}'; read -r line; read -r more && echo "> $more"`), hello)
	if r.Err != nil || d.Text(runtime.Output) != "" {
		t.Errorf("%v %q", r.Err, d.Text(runtime.Output))
	}
}

func TestStubbornProgramIsKilled(t *testing.T) {
	s := runtimetest.Script(`trap '' TERM; echo $$; echo '{"type":"done"}'; while :; do sleep 60; done`)
	d, r := run(t, s, hello)
	if r.Err != nil {
		t.Errorf("it sent done, and ended with %v", r.Err)
	}
	proctest.WantGone(t, d.Text(runtime.Output))
}
