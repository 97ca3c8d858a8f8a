package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/capabilities"
	"parley/events"
	"parley/gateway/client"
	"parley/internal/disk"
)

// Options are the options of a measurement.
type Options struct {
	Callers  int // at once
	Duration time.Duration
	Agents   int            // half of which ask and half answer; at least two for each caller
	Open     int            // forms left open to see the memory that one takes; 0 for none
	Folder   string         // on the disk to measure; files in it are temporary
	Client   *client.Client // of the running node to measure; nil for a node in this process
	Socket   string         // path of that node's socket, for Compare
}

// Figures are the results of a measurement. A cycle is an ask, its answer, and the wait that gets the values. Each is
// acknowledged only once it is on disk.
type Figures struct {
	Callers          int     `json:"callers"`
	Agents           int     `json:"agents"`
	Cycles           int     `json:"cycles"`
	CyclesPerSecond  float64 `json:"cyclesPerSecond"`
	P50Ms            float64 `json:"p50Ms"`
	P99Ms            float64 `json:"p99Ms"`
	Commits          uint64  `json:"commits"`
	EventsPerCommit  float64 `json:"eventsPerCommit"`
	RawPerSecond     float64 `json:"rawFdatasyncsPerSecond"`
	RawP50Ms         float64 `json:"rawP50Ms"`
	CyclesPerRaw     float64 `json:"cyclesPerRaw"`
	RSSMiB           float64 `json:"rssMiB"`
	BytesPerOpenForm float64 `json:"memoryPerOpenFormBytes"`
}

// Run measures a node and its disk.
func Run(ctx context.Context, o Options) (got Figures, err error) {
	o.Agents = max(o.Agents, 2*o.Callers)
	folder, err := o.makeFolder()
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	rawBefore, err := MeasureDisk(ctx, folder, time.Second)
	if err != nil {
		return got, err
	}
	var node target
	if o.Client != nil {
		node, err = openSocket(ctx, o.Client)
	} else {
		node, err = openNode(ctx, filepath.Join(folder, "node"))
	}
	if err != nil {
		return got, err
	}
	closing := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, node.close(closing)) }()
	restore := o.limitProcessors()
	err = o.measure(ctx, node, &got)
	restore()
	if err != nil {
		return got, err
	}
	rawAfter, err := MeasureDisk(ctx, folder, time.Second)
	if err != nil {
		return got, err
	}
	got.raw(rawBefore.and(rawAfter))
	return got, nil
}

// makeFolder makes a temporary folder on the disk to measure.
func (o *Options) makeFolder() (string, error) {
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return "", disk.UnwritableFolder(o.Folder, "choose another with --folder", err)
	}
	folder, err := os.MkdirTemp(o.Folder, ".parley-bench-")
	if err != nil {
		return "", disk.UnwritableFolder(o.Folder, "choose another with --folder", err)
	}
	return filepath.Abs(folder)
}

// limitProcessors leaves half of the processors to a node in another process, unless GOMAXPROCS is set. Callers that
// mostly wait, spread over all processors, would take a quarter of the time only to wake each other.
func (o *Options) limitProcessors() (restore func()) {
	if o.Client == nil || os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	was := runtime.GOMAXPROCS(0)
	runtime.SetDefaultGOMAXPROCS()
	runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2))
	return func() { runtime.GOMAXPROCS(was) }
}

func (o *Options) measure(ctx context.Context, node target, got *Figures) error {
	pairs, err := o.makePairs(ctx, node)
	if err != nil {
		return fmt.Errorf("make the agents: %w", err)
	}
	before, err := node.journal(ctx)
	if err != nil {
		return err
	}
	times, spent, err := o.cycles(ctx, pairs)
	if err != nil {
		return err
	}
	after, err := node.journal(ctx)
	if err != nil {
		return err
	}
	got.Callers, got.Agents, got.Cycles = o.Callers, 2*len(pairs), len(times)
	got.CyclesPerSecond = float64(len(times)) / spent.Seconds()
	got.P50Ms, got.P99Ms = milliseconds(percentile(times, 50)), milliseconds(percentile(times, 99))
	got.Commits = after.Commits - before.Commits
	if got.Commits > 0 {
		got.EventsPerCommit = float64(after.Events-before.Events) / float64(got.Commits)
	}
	got.RSSMiB = node.resident() / (1 << 20)
	got.BytesPerOpenForm, err = o.openForms(ctx, node, pairs)
	return errors.Join(err, node.leave(ctx, pairs))
}

// makePairs makes pairs of agents.
func (o *Options) makePairs(ctx context.Context, node target) ([]pair, error) {
	pairs := make([]pair, o.Agents/2)
	prefix := fmt.Sprintf("bench-%d-%d", os.Getpid(), time.Now().UnixMilli())
	err := together(o.Callers, func(caller int) (err error) {
		for i := caller; i < len(pairs) && err == nil; i += o.Callers {
			pairs[i], err = node.pair(ctx, i, fmt.Sprintf("%s-asker-%d", prefix, i), fmt.Sprintf("%s-answerer-%d", prefix, i))
		}
		return err
	})
	return pairs, err
}

// cycles runs cycles for the duration set, and returns the time of each. Every caller goes round pairs of its own.
func (o *Options) cycles(ctx context.Context, pairs []pair) ([]time.Duration, time.Duration, error) {
	times := make([][]time.Duration, o.Callers)
	began := time.Now()
	end := began.Add(o.Duration)
	err := together(o.Callers, func(caller int) error {
		for i := caller; ; i += o.Callers {
			if i >= len(pairs) {
				i = caller
			}
			start := time.Now()
			if start.After(end) {
				return nil
			}
			if err := pairs[i].cycle(ctx); err != nil {
				return err
			}
			times[caller] = append(times[caller], time.Since(start))
		}
	})
	return slices.Concat(times...), time.Since(began), err
}

// openForms asks without answering, and returns the bytes of memory that a form takes.
func (o *Options) openForms(ctx context.Context, node target, pairs []pair) (float64, error) {
	if o.Open <= 0 {
		return 0, nil
	}
	before := node.memory()
	err := together(o.Callers, func(caller int) error {
		for i := caller; i < o.Open; i += o.Callers {
			if _, _, err := pairs[i%len(pairs)].asker.ask(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return max(node.memory()-before, 0) / float64(o.Open), err
}

// together runs fn for every caller at once, and returns the first error.
func together(callers int, fn func(caller int) error) error {
	var all sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		all.Go(func() { errs[i] = fn(i) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err // most fail for the same reason
		}
	}
	return nil
}

// pair is two agents, of which the first asks the second.
type pair struct {
	asker, answerer agent
	names           []string
}

// agent is an agent of the target.
type agent interface {
	// ask asks a form. Await blocks until that is answered.
	ask(ctx context.Context) (form capabilities.ID, await func(context.Context) error, err error)
	answer(ctx context.Context, form capabilities.ID) error
}

func (p pair) cycle(ctx context.Context) error {
	form, await, err := p.asker.ask(ctx)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	if err := p.answerer.answer(ctx, form); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if err := await(ctx); err != nil {
		return fmt.Errorf("await: %w", err)
	}
	return nil
}

// The form of each cycle, which is that of the README's first example.
const (
	peer        = "peer" // the asker's name for the answerer
	description = "Configure project settings"
)

func fields() []events.Field {
	return []events.Field{
		{Name: "projectName", Label: "Project name", Required: true},
		{Name: "apiKey", Label: "API key", Required: true},
	}
}

func values() map[string]capabilities.Value {
	return map[string]capabilities.Value{
		"projectName": capabilities.String("my-app"),
		"apiKey":      capabilities.String("sk-1234"),
	}
}

func (f *Figures) raw(r DiskRate) {
	f.RawPerSecond, f.RawP50Ms = r.perSecond(), milliseconds(r.P50())
	if f.RawPerSecond > 0 {
		f.CyclesPerRaw = f.CyclesPerSecond / f.RawPerSecond
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Text shows the figures to a person.
func (f *Figures) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d callers, %d agents, %d cycles of ask, answer and await\n", f.Callers, f.Agents, f.Cycles)
	fmt.Fprintf(&b, "cycles:      %.0f a second, p50 %.2f ms, p99 %.2f ms\n", f.CyclesPerSecond, f.P50Ms, f.P99Ms)
	fmt.Fprintf(&b, "journal:     %d commits, %.1f events each\n", f.Commits, f.EventsPerCommit)
	fmt.Fprintf(&b, "raw disk:    %.0f appends of 4 KiB with fdatasync a second, one after the other, p50 %.2f ms\n", f.RawPerSecond, f.RawP50Ms)
	fmt.Fprintf(&b, "ratio:       %.2f cycles to a raw append", f.CyclesPerRaw)
	if f.Callers == 1 && f.RawP50Ms > 0 {
		fmt.Fprintf(&b, ", p50 %.2f times that of one", f.P50Ms/f.RawP50Ms)
	}
	fmt.Fprintf(&b, "\nmemory:      %.0f MiB resident, %.0f bytes an open form", f.RSSMiB, f.BytesPerOpenForm)
	return b.String()
}
