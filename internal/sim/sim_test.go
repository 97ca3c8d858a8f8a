package sim

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	runFor  = flag.Duration("sim.for", 0, "run schedules for so long instead of a fixed number")
	runSeed = flag.Uint64("sim.seed", 0, "the first seed; with -sim.for, 0 draws one")
)

// fixed is the number of schedules of an ordinary run. All rare states occur in them.
const fixed = 450

// TestSchedules runs schedules one after another. A failure prints its seed, the fewest steps that show it, and what
// happened in them. Put the steps into testdata, so that they are run for good.
func TestSchedules(t *testing.T) {
	first, last, end := *runSeed, *runSeed+fixed, time.Time{}
	if *runFor > 0 {
		if end = time.Now().Add(*runFor); first == 0 {
			first = rand.Uint64() >> 1
		}
		last = 1 << 63
	}
	var seen [states]int
	seed := first
	for ; seed != last && (end.IsZero() || time.Now().Before(end)); seed++ {
		if broken, _ := run(New(seed), &seen, false); broken != "" {
			report(t, seed, New(seed), broken)
			return
		}
	}
	t.Logf("%d schedules from seed %d", seed-first, first)
	for s, n := range seen {
		t.Logf("%7d times %s", n, state(s))
		if n == 0 && *runSeed == 0 && (end.IsZero() || seed-first > fixed) {
			t.Errorf("no schedule meets this state: %s", state(s))
		}
	}
}

// report fails a test with the shortest schedule that breaks the same invariant.
func report(t *testing.T, seed uint64, s Schedule, broken string) {
	t.Helper()
	began := time.Now()
	s = shrink(s, broken)
	var seen [states]int
	broken, lines := run(s, &seen, true)
	lines = condense(lines, broken)
	t.Fatalf("seed %d: %s\n%d steps, found in %v:\n%s\nwhat happened:\n%s\n%s", seed, broken, len(s.Steps), time.Since(began).Round(time.Millisecond), s, strings.Join(lines, "\n"), broken)
}

// TestFailedSchedules runs the schedules that failed once.
func TestFailedSchedules(t *testing.T) {
	for name, s := range stored(t, "testdata/*.txt") {
		var seen [states]int
		if broken, lines := run(s, &seen, true); broken != "" {
			t.Errorf("%s:\n%s\n%s", name, strings.Join(lines, "\n"), broken)
		}
	}
}

// stored returns the schedules in files.
func stored(t *testing.T, pattern string) map[string]Schedule {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no schedules at %s: %v", pattern, err)
	}
	all := map[string]Schedule{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if all[name], err = Parse(string(text)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestSchedulesRepeat runs schedules twice: the same has to happen.
func TestSchedulesRepeat(t *testing.T) {
	for seed := range uint64(5) {
		var seen [states]int
		_, first := run(New(seed), &seen, true)
		s, err := Parse(New(seed).String())
		if err != nil {
			t.Fatal(err)
		}
		if _, again := run(s, &seen, true); strings.Join(first, "\n") != strings.Join(again, "\n") {
			t.Errorf("seed %d does not repeat itself", seed)
		}
	}
}

// BenchmarkSchedules reports how many schedules run in a minute on one core.
func BenchmarkSchedules(b *testing.B) {
	var seen [states]int
	seed := uint64(0)
	for b.Loop() {
		if broken, _ := run(New(seed), &seen, false); broken != "" {
			b.Fatalf("seed %d: %s", seed, broken)
		}
		seed++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Minutes(), "schedules/min")
}
