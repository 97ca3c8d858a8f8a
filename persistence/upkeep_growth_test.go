package persistence

import (
	"io"
	"math"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestGrowthOfUpkeep backs up and verifies a short log and one ten times as long. A byte of the long one costs as much of the
// processor.
func TestGrowthOfUpkeep(t *testing.T) {
	commits := 20
	if n, err := strconv.Atoi(os.Getenv("PARLEY_COMMITS")); err == nil {
		commits = n
	}
	tasks := map[string]func(j *Journal) error{
		"backup": func(j *Journal) error { return j.Backup(t.Context(), io.Discard) },
		"verify": func(j *Journal) error { _, err := j.Verify(t.Context()); return err },
	}
	cost := map[string][]float64{}
	for _, count := range []int{commits, 10 * commits} {
		j, w := open(t, testOptions(t)), writer{}
		for range count {
			var last Position
			for k := range 256 {
				last = j.Append(w.section(t, k, 8))
			}
			if err := await(t, j, last); err != nil {
				t.Fatal(err)
			}
		}
		for name, do := range tasks {
			least := time.Duration(math.MaxInt64)
			for range 3 { // garbage is collected now and then
				before := processorTime(t)
				if err := do(j); err != nil {
					t.Fatal(err)
				}
				least = min(least, processorTime(t)-before)
			}
			cost[name] = append(cost[name], float64(least)/float64(j.Stats().Bytes))
		}
	}
	for name, ns := range cost {
		t.Logf("%s: %.1f and %.1f ns a byte", name, ns[0], ns[1])
		if ns[1] > 3*ns[0] {
			t.Errorf("%s costs more a byte of a long log", name)
		}
	}
}

// TestBytesAreKnownDuringAFlush has the journal say its size while a flush is under way, from the start on.
func TestBytesAreKnownDuringAFlush(t *testing.T) {
	o := testOptions(t)
	j, w := open(t, o), writer{}
	w.write(t, j, 1, 50)
	said := j.Stats().Bytes
	closeJournal(t, j)
	j = open(t, o)
	j.o.slow.began.Store(time.Now().UnixNano())
	if got := j.Stats().Bytes; got < said {
		t.Errorf("%d bytes, and %d before", got, said)
	}
	w.write(t, j, 1, 1)
	j.o.slow.began.Store(time.Now().UnixNano())
	if got := j.Stats().Bytes; got <= said {
		t.Errorf("%d bytes after one more commit, and %d before", got, said)
	}
	j.o.slow.began.Store(0)
}
