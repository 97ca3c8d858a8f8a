package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// system is a durable store of questions.
type system struct {
	name  string // one word
	how   string // version, mode and way to it, in some words
	start func(ctx context.Context, o options) (running, error)
}

// running is a system that runs.
type running interface {
	// cycle asks, answers, and blocks until the asker has the answer. Callers have numbers from 0, and do one cycle at a
	// time each.
	cycle(ctx context.Context, caller int) error
	// process returns the number of the process that serves, or 0 if there is none.
	process() int
	close()
}

// systems returns all systems in the order of the report.
func systems() []system {
	return []system{
		{"appends", "4 KiB and fdatasync, one after the other", startAppends},
		{"parley", "Unix socket, Go client, a connection for each agent", parleyBy(false)},
		{"parley-one", "the same on one connection", parleyBy(true)},
		{"restate", "Restate 1.7.12, 4 partitions, a service with an awakeable, HTTP/1.1, a connection for each call under way", startRestate},
		{"postgres", "a table with LISTEN and NOTIFY, Unix socket, pgx, two connections for each caller", startPostgres},
		{"langgraph", "LangGraph 1.4 interrupt with its SQLite checkpointer behind a small HTTP server, no waiter", startLangGraph},
	}
}

// result is what was measured of a system.
type result struct {
	system          system
	running         running
	missing         error // why it could not be started
	alone, together turn
}

// turn is one turn of a system, or several.
type turn struct {
	times []time.Duration // of cycles
	took  time.Duration
	spent time.Duration // processor time of the process that serves and of its children
}

func (t *turn) add(more turn) {
	t.times = append(t.times, more.times...)
	t.took += more.took
	t.spent += more.spent
}

// rate returns the cycles of a second.
func (t *turn) rate() float64 {
	if t.took == 0 {
		return 0
	}
	return float64(len(t.times)) / t.took.Seconds()
}

// percentile returns the time that so many percent of the cycles do not exceed.
func (t *turn) percentile(percent int) time.Duration {
	if len(t.times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t.times))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

// processorTime returns the processor time of a cycle in the process that serves.
func (t *turn) processorTime() time.Duration {
	if len(t.times) == 0 {
		return 0
	}
	return t.spent / time.Duration(len(t.times))
}

// takeTurn has callers do cycles for so long.
func takeTurn(ctx context.Context, s running, callers int, long time.Duration) (turn, error) {
	before := processorTimeOf(s.process())
	began := time.Now()
	var (
		all    turn
		failed error
		mu     sync.Mutex
		done   sync.WaitGroup
	)
	for caller := range callers {
		done.Go(func() {
			var times []time.Duration
			var err error
			for err == nil && time.Since(began) < long {
				start := time.Now()
				if err = s.cycle(ctx, caller); err == nil {
					times = append(times, time.Since(start))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.times = append(all.times, times...)
			if failed == nil {
				failed = err
			}
		})
	}
	done.Wait()
	all.took = time.Since(began)
	all.spent = processorTimeOf(s.process()) - before
	return all, failed
}

// tick is the unit of the times in /proc.
const tick = 10 * time.Millisecond

// processorTimeOf returns the processor time of a process and of all that it has started. It returns 0 where the system
// does not tell.
func processorTimeOf(pid int) (total time.Duration) {
	if pid == 0 {
		return 0
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	parents, times := map[int]int{}, map[int]time.Duration{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		number, rest, _ := strings.Cut(string(text), " ")
		f := strings.Fields(rest[strings.LastIndex(rest, ")")+1:])
		if len(f) < 15 {
			continue
		}
		at := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
		id, _ := strconv.Atoi(number)
		parents[id] = at(1)
		times[id] = tick * time.Duration(at(11)+at(12)+at(13)+at(14)) // with children that have ended
	}
	for id, t := range times {
		for up := id; up != 0; up = parents[up] {
			if up == pid {
				total += t
				break
			}
		}
	}
	return total
}
