package main

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

	"github.com/spf13/cobra"

	"parley/capabilities"
	"parley/events"
)

// benching are the options of a measurement.
type benching struct {
	callers  int
	duration duration
	agents   int
	open     int
	socket   bool
	folder   string
}

// figures are what was measured. A cycle is an ask, its answer, and the wait that gets the values, each
// acknowledged only once it is on disk.
type figures struct {
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

func (p *program) benchCommand() *cobra.Command {
	b := benching{duration: duration(defaultDuration)}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure ask-to-answer cycles against the disk",
		Long: `Measures how many forms are asked, answered and awaited per second, every acknowledgement on disk, and in the
same run how many 4 KiB appends the same disk makes durable one after the other. Their ratio tells more than
either: it depends little on the disk.

Without --socket the node is in this process, in a temporary folder beside the state folder. With it, the
running node is used: the agents made for it are left there without names.`,
		Example: "  parley bench\n  parley bench --callers 1 --duration 2s\n  parley bench --socket --json",
	}
	f := c.Flags()
	f.IntVar(&b.callers, "callers", defaultCallers, "`callers` at once")
	f.Var(&b.duration, "duration", "measure for so `long`")
	f.IntVar(&b.agents, "agents", defaultAgents, "distinct `agents`, half of which ask and half answer")
	f.IntVar(&b.open, "open-forms", 5000, "`forms` left open to see what memory one takes; 0 for none")
	f.BoolVar(&b.socket, "socket", false, "against the running node, through its socket")
	f.StringVar(&b.folder, "folder", "", "temporary `folder` on the disk to measure (default: beside the state folder)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if b.callers < 1 || b.duration <= 0 {
			return usage(c, "want at least one caller and some time")
		}
		b.agents = max(b.agents, 2*b.callers)
		got, err := p.bench(c.Context(), b)
		if err != nil {
			return err
		}
		return p.say(got, got.text)
	}
	return c
}

func (p *program) bench(ctx context.Context, b benching) (got figures, err error) {
	folder, err := b.makeFolder(p.options.state)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	rawBefore, err := measureDisk(ctx, folder, time.Second)
	if err != nil {
		return got, err
	}
	var at market
	if b.socket {
		at, err = p.openSocketMarket(ctx)
	} else {
		at, err = openMarket(ctx, filepath.Join(folder, "node"))
	}
	if err != nil {
		return got, err
	}
	closing := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, at.close(closing)) }()
	goBack := b.makeRoom()
	err = b.measure(ctx, at, &got)
	goBack()
	if err != nil {
		return got, err
	}
	rawAfter, err := measureDisk(ctx, folder, time.Second)
	if err != nil {
		return got, err
	}
	got.raw(rawBefore.and(rawAfter))
	return got, nil
}

// makeFolder makes the temporary folder, on the disk that the state folder is on.
func (b *benching) makeFolder(state string) (string, error) {
	above := b.folder
	if above == "" {
		above = filepath.Dir(state)
	}
	if err := os.MkdirAll(above, 0o700); err != nil {
		return "", unwritable(above, err)
	}
	folder, err := os.MkdirTemp(above, ".parley-bench-")
	if err != nil {
		return "", unwritable(above, err)
	}
	return filepath.Abs(folder)
}

// makeRoom leaves half of the processors to a node in another process, unless the user says how many to use.
// Callers that mostly wait, spread over all of them, would take a quarter of the time only to wake each other.
func (b *benching) makeRoom() (goBack func()) {
	if !b.socket || os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	was := runtime.GOMAXPROCS(0)
	runtime.SetDefaultGOMAXPROCS()
	runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2))
	return func() { runtime.GOMAXPROCS(was) }
}

func (b *benching) measure(ctx context.Context, at market, got *figures) error {
	pairs, err := b.makePairs(ctx, at)
	if err != nil {
		return fmt.Errorf("make the agents: %w", err)
	}
	before, err := at.journal(ctx)
	if err != nil {
		return err
	}
	times, spent, err := b.cycles(ctx, pairs)
	if err != nil {
		return err
	}
	after, err := at.journal(ctx)
	if err != nil {
		return err
	}
	got.Callers, got.Agents, got.Cycles = b.callers, 2*len(pairs), len(times)
	got.CyclesPerSecond = float64(len(times)) / spent.Seconds()
	got.P50Ms, got.P99Ms = milliseconds(percentile(times, 50)), milliseconds(percentile(times, 99))
	got.Commits = after.Commits - before.Commits
	if got.Commits > 0 {
		got.EventsPerCommit = float64(after.Events-before.Events) / float64(got.Commits)
	}
	got.RSSMiB = at.resident() / (1 << 20)
	got.BytesPerOpenForm, err = b.openForms(ctx, at, pairs)
	return errors.Join(err, at.leave(ctx, pairs))
}

// makePairs makes agents of which one asks and one answers.
func (b *benching) makePairs(ctx context.Context, at market) ([]pair, error) {
	pairs := make([]pair, b.agents/2)
	prefix := fmt.Sprintf("bench-%d-%d", os.Getpid(), time.Now().UnixMilli())
	err := together(b.callers, func(caller int) (err error) {
		for i := caller; i < len(pairs) && err == nil; i += b.callers {
			pairs[i], err = at.pair(ctx, fmt.Sprintf("%s-asker-%d", prefix, i), fmt.Sprintf("%s-answerer-%d", prefix, i))
		}
		return err
	})
	return pairs, err
}

// cycles runs them for the time set. Every caller has pairs of its own and goes round them.
func (b *benching) cycles(ctx context.Context, pairs []pair) ([]time.Duration, time.Duration, error) {
	times := make([][]time.Duration, b.callers)
	began := time.Now()
	end := began.Add(time.Duration(b.duration))
	err := together(b.callers, func(caller int) error {
		for i := caller; ; i += b.callers {
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

// openForms asks without answering, and gives the bytes of memory that one takes.
func (b *benching) openForms(ctx context.Context, at market, pairs []pair) (float64, error) {
	if b.open <= 0 {
		return 0, nil
	}
	before := at.memory()
	err := together(b.callers, func(caller int) error {
		for i := caller; i < b.open; i += b.callers {
			if _, err := pairs[i%len(pairs)].asker.ask(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return max(at.memory()-before, 0) / float64(b.open), err
}

// together runs fn for every caller at once and gives their errors.
func together(callers int, fn func(caller int) error) error {
	var all sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		all.Go(func() { errs[i] = fn(i) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err // they mostly fail of the same
		}
	}
	return nil
}

// pair is two agents, of which one asks the other.
type pair struct {
	asker, answerer speaker
	names           []string
}

// speaker is one agent, wherever its node is.
type speaker interface {
	ask(ctx context.Context) (capabilities.ID, error)
	answer(ctx context.Context, form capabilities.ID) error
	await(ctx context.Context, form capabilities.ID) error
}

func (p pair) cycle(ctx context.Context) error {
	form, err := p.asker.ask(ctx)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	if err := p.answerer.answer(ctx, form); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if err := p.asker.await(ctx, form); err != nil {
		return fmt.Errorf("await: %w", err)
	}
	return nil
}

// What is asked and answered in each cycle: the form of the first example.
const (
	benchPeer        = "peer"
	benchDescription = "Configure project settings"
)

func benchFields() []events.Field {
	return []events.Field{
		{Name: "projectName", Label: "Project name", Required: true},
		{Name: "apiKey", Label: "API key", Required: true},
	}
}

func benchValues() map[string]capabilities.Value {
	return map[string]capabilities.Value{
		"projectName": capabilities.String("my-app"),
		"apiKey":      capabilities.String("sk-1234"),
	}
}

func (f *figures) raw(r diskRate) {
	f.RawPerSecond, f.RawP50Ms = r.perSecond(), milliseconds(r.p50())
	if f.RawPerSecond > 0 {
		f.CyclesPerRaw = f.CyclesPerSecond / f.RawPerSecond
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (f *figures) text() string {
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
