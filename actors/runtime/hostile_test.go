//go:build unix

package runtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley"
)

// lefts are the ways in which a program leaves processes behind: in its group, in a session of their own, and as an orphan of
// an orphan.
const lefts = `
sleep 61 & echo $!
setsid sleep 62 & echo $!
(setsid sh -c 'echo $$; (setsid sleep 63 & echo $!); exec sleep 64' &)
`

func TestWhatAProgramLeavesBehindEndsWithIt(t *testing.T) {
	for _, keep := range []bool{false, true} {
		s := script(lefts + "sleep 0.2; echo end")
		s.Keep = keep
		d, r := run(t, s, hello)
		if (r.Err == nil) == keep {
			t.Errorf("ended with %v", r.Err)
		}
		wantAllGone(t, strings.Fields(strings.TrimSuffix(d.output(Output), "end\n")), 4)
	}
}

func TestWhatHoldsPipesOpenDoesNotHoldARun(t *testing.T) {
	d, r := run(t, playing("grandchild"), hello)
	if r.Err != nil {
		t.Error(r.Err)
	}
	wantAllGone(t, strings.Fields(d.output(Output)), 2)
}

// wantAllGone has none of some processes be there when a run has ended.
func wantAllGone(t testing.TB, pids []string, count int) {
	t.Helper()
	if len(pids) != count {
		t.Fatalf("it has left %q", pids)
	}
	for _, p := range pids {
		pid, err := strconv.Atoi(p)
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Kill(pid, 0) != syscall.ESRCH {
			t.Errorf("process %d is there", pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestAFloodWaitsForTheDesk(t *testing.T) {
	d := newTestDesk(t)
	var got strings.Builder
	first, room := make(chan struct{}), make(chan struct{})
	pieces := 0
	d.write = func(_ Stream, text string) error {
		if pieces++; pieces == 1 {
			close(first)
		}
		<-room
		got.WriteString(text)
		return nil
	}
	r := NewExec(playing("flood"))
	run := begin(t, r, d, hello)
	<-first
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	until(t, "it waits", func() bool { return isWaiting(t) })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+1<<20 {
		t.Errorf("%d bytes more are held", after.HeapAlloc-before.HeapAlloc)
	}
	select {
	case r := <-run.ended:
		t.Fatalf("it ended before what it said was written: %v", r.Err)
	default:
	}
	close(room)
	if r := run.result(); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got.Len() != 64<<16 || pieces > 64<<16/MaxText+10 {
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

// isWaiting reports whether the one program that runs waits for its output to be taken.
func isWaiting(t testing.TB) bool {
	for _, pid := range programs(t) {
		if where, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid)); err == nil && strings.Contains(string(where), "pipe") {
			return true
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") S ") {
			return true
		}
	}
	return false
}

func TestALineIsNotLongerThanItMayBe(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		wrong  bool
		size   int
	}{
		"as long as it may be": {fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo", MaxLine), false, MaxLine + 1},
		"longer by one":        {fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo; echo more", MaxLine+1), true, 0},
		"10 MiB":               {"echo before; head -c 10485760 /dev/zero | tr '\\0' x; echo", true, 7},
		"10 MiB without end":   {"head -c 10485760 /dev/zero", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := run(t, script(c.script), hello)
			if (parley.CodeOf(r.Err) == parley.TooLarge) != c.wrong {
				t.Errorf("ended with %v", r.Err)
			}
			if got := len(d.output(Output)); got != c.size {
				t.Errorf("%d bytes were written", got)
			}
		})
	}
	d, r := run(t, script("head -c 3145728 /dev/zero | tr '\\0' x >&2; printf 'é' >&2"), hello)
	if got := d.output(Errors); r.Err != nil || len(got) != 3<<20+2 || !strings.HasSuffix(got, "xé") {
		t.Errorf("standard error: %d bytes, %v", len(got), r.Err)
	}
}

func TestAnyOutputIsText(t *testing.T) {
	d, r := run(t, script("head -c 200000 /dev/urandom; head -c 200000 /dev/urandom >&2; echo; echo end"), hello)
	if r.Err != nil || !strings.HasSuffix(d.output(Output), "end\n") || len(d.output(Errors)) < 200_000 {
		t.Errorf("%v: %d and %d bytes", r.Err, len(d.output(Output)), len(d.output(Errors)))
	}
	if len(r.Tail) > tailOf {
		t.Errorf("the tail has %d bytes", len(r.Tail))
	}
	deep := strings.Repeat(`{"a":[`, 40) + strings.Repeat("]}", 40)
	d, r = run(t, script(`echo '{"type":"done","x":`+deep+`}'; echo '`+strings.Repeat("[", 500_000/10)+`'`), hello)
	if r.Err != nil || !strings.Contains(d.output(Output), deep) {
		t.Errorf("what is too deep is no protocol: %v", r.Err)
	}
}

func TestAProgramThatDoesNotReadIsNotWaitedFor(t *testing.T) {
	if _, r := run(t, playing("deaf"), hello); r.Err != nil {
		t.Error(r.Err)
	}
	p := hello
	p.Text = strings.Repeat("x", 1<<20)
	d, r := run(t, script(`head -c 100000 /dev/zero | tr '\0' '\n'; echo end`), p)
	if r.Err != nil || !strings.HasSuffix(d.output(Output), "\nend\n") {
		t.Error(r.Err)
	}
}

func TestARunEndsWhenNothingIsKeptAnyMore(t *testing.T) {
	full := parley.Refuse(parley.ReadOnly, "the disk is full")
	for _, r := range []Runtime{NewExec(script("echo one; exec sleep 60")), agent(t)} {
		d := newTestDesk(t)
		d.write = func(Stream, string) error { return full }
		p := prompted("say one", "hang")
		if got := begin(t, r, d, p).result(); !errors.Is(got.Err, full) {
			t.Errorf("ended with %v", got.Err)
		}
		r.Close()
	}
}

func TestARunEndsThoughTheDeskIsStuck(t *testing.T) {
	for _, r := range []Runtime{NewExec(script("echo one; exec sleep 60")), agent(t)} {
		d := newTestDesk(t)
		stuck := make(chan struct{}, 10)
		desk := &stuckDesk{testDesk: d, stuck: stuck}
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan Result, 1)
		go func() { ended <- r.Run(ctx, prompted("say one", "hang"), desk, func() {}) }()
		next(t, stuck)
		cancel(errEnough)
		if got := next(t, ended); got.Err != errEnough {
			t.Errorf("ended with %v", got.Err)
		}
		r.Close()
	}
}

// stuckDesk does not get to keep anything.
type stuckDesk struct {
	*testDesk
	stuck chan struct{}
}

func (d *stuckDesk) Write(ctx context.Context, _ Stream, _ string) error {
	d.stuck <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func TestAQuestionIsNotWaitedForAfterTheRun(t *testing.T) {
	d, r := run(t, script(`echo '{"type":"ask","id":"a","prompt":"?"}'; echo '{"type":"approval","id":"b","tool":"t"}'; echo '{"type":"done"}'; read -r line; read -r more && echo "> $more"`), hello)
	if r.Err != nil || d.output(Output) != "" {
		t.Errorf("%v %q", r.Err, d.output(Output))
	}
}

func TestAProgramThatDoesNotGoIsKilled(t *testing.T) {
	s := script(`trap '' TERM; echo $$; echo '{"type":"done"}'; while :; do sleep 60; done`)
	d, r := run(t, s, hello)
	if r.Err != nil {
		t.Errorf("it was done, and ended with %v", r.Err)
	}
	wantGone(t, d.output(Output))
}

func TestAKilledNodeLeavesNothingOfItsPrograms(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing ends a program with its node there")
	}
	node := exec.Command(os.Args[0])
	node.Env = append(os.Environ(), part+"=node")
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); len(pids) < 5 && lines.Scan(); {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	node.Wait()
	for _, pid := range pids {
		until(t, "the program and what it left is gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	}
}

func TestRunsAndKillsLeaveNothing(t *testing.T) {
	s := playing("echo")
	s.Keep = true
	r := NewExec(s)
	defer r.Close()
	for i := range 60 {
		d := newTestDesk(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		text := []string{"text", "wait", "die", "ask a"}[i%4]
		ended := make(chan struct{})
		timer := time.AfterFunc(time.Duration(i%7)*time.Millisecond, func() {
			defer close(ended)
			if i%3 == 0 {
				for _, pid := range programs(t) {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			cancel(errEnough)
		})
		r.Run(ctx, Prompt{Run: strconv.Itoa(i), Text: text}, d, func() {})
		if !timer.Stop() {
			<-ended // else it would end the children of what comes next
		}
		cancel(nil)
	}
	d := newTestDesk(t)
	got := r.Run(t.Context(), Prompt{Run: "next", Text: "text"}, d, func() {})
	if wasKilled(got) { // by the last of these, and nobody had noticed yet
		got = begin(t, r, d, Prompt{Run: "last", Text: "text"}).result()
	}
	if got.Err != nil {
		t.Error(got.Err)
	}
}

func wasKilled(r Result) bool {
	return r.Err != nil && strings.HasSuffix(r.Err.Error(), "killed by SIGKILL")
}

func TestAnAgentAsksNoMoreThanItMay(t *testing.T) {
	ask := `ask session/request_permission {"sessionId":"SESSION","toolCall":{"toolCallId":"c"},"options":` + permissionOptions + `}`
	var lines []string
	for range 100 {
		lines = append(lines, ask)
	}
	for range 100 - maxOpen {
		lines = append(lines, "hear")
	}
	lines = append(lines, "say refused ")
	for range maxOpen {
		lines = append(lines, "hear")
	}
	run := begin(t, agent(t), newTestDesk(t), prompted(lines...))
	var open []*called
	for range maxOpen {
		open = append(open, run.call())
	}
	until(t, "the others are refused", func() bool { return strings.Contains(run.output(Output), "refused") })
	for _, c := range open {
		c.decide <- Decision{Allowed: true}
	}
	if got := run.result(); got.Err != nil || strings.Count(run.output(Output), "too many requests") != 100-maxOpen || strings.Count(run.output(Output), `"selected"`) != maxOpen {
		t.Errorf("%v %s", got.Err, run.output(Output))
	}
}

func TestAnAgentThatAsksAndDoesNotReadIsEnded(t *testing.T) {
	r := agent(t)
	run := begin(t, r, newTestDesk(t), prompted("pid", "spam"))
	until(t, "it says who it is", func() bool { return run.output(Output) != "" })
	until(t, "nothing of it is read any more", func() bool {
		who, _, _ := strings.Cut(run.output(Output), " ")
		stat, err := os.ReadFile("/proc/" + who + "/stat")
		return err == nil && strings.Contains(string(stat), ") S ")
	})
	if n := runtime.NumGoroutine(); n > 2*maxRequested {
		t.Errorf("%d goroutines are at work for it", n)
	}
	run.cancel(errEnough)
	if got := run.result(); got.Err != errEnough {
		t.Error(got.Err)
	}
	wantGone(t, strings.Fields(run.output(Output))[0])
}

func TestLargeUpdatesWaitForTheDesk(t *testing.T) {
	d := newTestDesk(t)
	first, room := make(chan struct{}, 1<<16), make(chan struct{})
	size := 0
	d.write = func(stream Stream, text string) error {
		if stream == Output {
			first <- struct{}{}
			<-room
			size += len(text)
		}
		return nil
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	run := begin(t, agent(t), d, prompted("bulk"))
	next(t, first)
	until(t, "it waits", func() bool { return isWaiting(t) })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 3*maxHeld {
		t.Errorf("%d bytes are held", held)
	}
	close(room)
	if got := run.result(); got.Err != nil || size != 12*900<<10 {
		t.Errorf("%v: %d bytes were written", got.Err, size)
	}
}

func TestAgentsAndKillsLeaveNothing(t *testing.T) {
	r := agent(t, granted(accessTerminal))
	for i := range 40 {
		ctx, cancel := context.WithCancelCause(t.Context())
		work := []string{"say text", "until", "exit", "flood", `call terminal/create {"sessionId":"SESSION","command":"sleep","args":["60"]}`}[i%5]
		ended := make(chan struct{})
		timer := time.AfterFunc(time.Duration(i%7)*3*time.Millisecond, func() {
			defer close(ended)
			if i%3 == 0 {
				for _, pid := range programs(t) {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			cancel(errEnough)
		})
		r.Run(ctx, prompted(work), newTestDesk(t), func() {})
		if !timer.Stop() {
			<-ended // else it would end the children of what comes next
		}
		cancel(nil)
	}
	d := newTestDesk(t)
	got := r.Run(t.Context(), prompted("say text"), d, func() {})
	if wasKilled(got) { // by the last of these, and nobody had noticed yet
		d = newTestDesk(t)
		got = begin(t, r, d, prompted("say text")).result()
	}
	if got.Err != nil || d.output(Output) != "text" {
		t.Errorf("%v %q", got.Err, d.output(Output))
	}
}
