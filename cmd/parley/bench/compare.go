package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/gateway/client"
)

// The ways to a running node.
const (
	OverSocket  = "socket"  // one connection to its own socket, on which the host acts for the agents
	OverSockets = "sockets" // the same with a connection for each caller
	OverHTTP    = "http"    // the same socket, with an HTTP request for each call
	OverTCP     = "tcp"     // one connection to its TCP address, on which each agent has signed in with a token
)

// Ways returns the ways to a running node.
func Ways() []string { return []string{OverSocket, OverSockets, OverHTTP, OverTCP} }

// Comparison is the result of measuring several ways in one run. Their shares of it alternate, so that what else the machine
// does is in all of them.
type Comparison struct {
	Callers      int          `json:"callers"`
	RawPerSecond float64      `json:"rawFdatasyncsPerSecond"`
	RawP50Ms     float64      `json:"rawP50Ms"`
	Ways         []WayFigures `json:"ways"`
}

// WayFigures are the figures of one way.
type WayFigures struct {
	Over            string  `json:"over"`
	Cycles          int     `json:"cycles"`
	CyclesPerSecond float64 `json:"cyclesPerSecond"`
	P50Ms           float64 `json:"p50Ms"`
	P99Ms           float64 `json:"p99Ms"`
	CyclesPerRaw    float64 `json:"cyclesPerRaw"`
	OfFirst         float64 `json:"ofFirst"`      // cycles per second, over those of the first way
	NodeMicros      float64 `json:"nodeMicros"`   // processor time of the node in a cycle
	ClientMicros    float64 `json:"clientMicros"` // and of this process
}

// compareRounds is the number of shares that each way has of a run.
const compareRounds = 4

// measuredWay is a way while it is measured.
type measuredWay struct {
	over         string
	target       *socketNode
	pairs        []pair
	times        []time.Duration
	spent        time.Duration
	node, client float64 // seconds of processor time
}

// Compare measures ways to the node of o.Client, each for o.Duration.
func Compare(ctx context.Context, o Options, ways []string) (got Comparison, err error) {
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
	defer o.limitProcessors()()
	var all []*measuredWay
	defer func() {
		for _, w := range all {
			err = errors.Join(err, w.target.leave(ctx, w.pairs), w.target.close(context.WithoutCancel(ctx)))
		}
	}()
	for _, over := range ways {
		w := &measuredWay{over: over}
		if w.target, err = openWay(ctx, o, over); err != nil {
			return got, err
		}
		all = append(all, w)
		if w.pairs, err = o.makePairs(ctx, w.target); err != nil {
			return got, fmt.Errorf("make the agents: %w", err)
		}
	}
	share := o
	share.Duration = o.Duration / compareRounds
	for range compareRounds {
		for _, w := range all {
			if err := w.measure(ctx, share); err != nil {
				return got, err
			}
		}
	}
	rawAfter, err := MeasureDisk(ctx, folder, time.Second)
	if err != nil {
		return got, err
	}
	raw := rawBefore.and(rawAfter)
	got = Comparison{Callers: o.Callers, RawPerSecond: raw.perSecond(), RawP50Ms: milliseconds(raw.P50())}
	for _, w := range all {
		got.add(w)
	}
	return got, nil
}

func (w *measuredWay) measure(ctx context.Context, o Options) error {
	node, own := processorTime(w.target.status.PID), processorTime(os.Getpid())
	times, spent, err := o.cycles(ctx, w.pairs)
	w.node += processorTime(w.target.status.PID) - node
	w.client += processorTime(os.Getpid()) - own
	w.times = append(w.times, times...)
	w.spent += spent
	return err
}

// add adds the figures of a way.
func (c *Comparison) add(w *measuredWay) {
	slices.Sort(w.times)
	n := float64(max(len(w.times), 1))
	f := WayFigures{
		Over: w.over, Cycles: len(w.times), CyclesPerSecond: n / w.spent.Seconds(), P50Ms: milliseconds(percentile(w.times, 50)), P99Ms: milliseconds(percentile(w.times, 99)),
		OfFirst: 1, NodeMicros: 1e6 * w.node / n, ClientMicros: 1e6 * w.client / n,
	}
	if c.RawPerSecond > 0 {
		f.CyclesPerRaw = f.CyclesPerSecond / c.RawPerSecond
	}
	if len(c.Ways) > 0 && c.Ways[0].CyclesPerSecond > 0 {
		f.OfFirst = f.CyclesPerSecond / c.Ways[0].CyclesPerSecond
	}
	c.Ways = append(c.Ways, f)
}

// Text shows the comparison to a person.
func (c *Comparison) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d callers; raw disk: %.0f appends of 4 KiB with fdatasync a second, p50 %.2f ms\n", c.Callers, c.RawPerSecond, c.RawP50Ms)
	fmt.Fprintf(&b, "%-8s %10s %9s %9s %9s %9s %9s %9s", "over", "cycles/s", "to raw", "to first", "p50 ms", "p99 ms", "node µs", "client µs")
	for _, w := range c.Ways {
		fmt.Fprintf(&b, "\n%-8s %10.0f %9.2f %9.2f %9.2f %9.2f %9.0f %9.0f",
			w.Over, w.CyclesPerSecond, w.CyclesPerRaw, w.OfFirst, w.P50Ms, w.P99Ms, w.NodeMicros, w.ClientMicros)
	}
	return b.String()
}

// openWay opens a way to the running node.
func openWay(ctx context.Context, o Options, over string) (*socketNode, error) {
	node, err := openSocket(ctx, o.Client)
	if err != nil {
		return nil, err
	}
	var line *client.Client
	switch over {
	case OverSocket:
		return node, nil
	case OverSockets:
		node.lines = nil
		for range o.Callers {
			if line, err = client.New(client.Options{Socket: o.Socket, Patience: -1}); err != nil {
				return nil, err
			}
			node.lines = append(node.lines, line)
		}
		return node, nil
	case OverHTTP:
		line, err = client.New(client.Options{Socket: o.Socket, HTTP: true, Patience: -1})
	case OverTCP:
		if node.status.Listen == "off" || node.status.TLSCert != "" {
			return nil, parley.Refuse(parley.InvalidArgument, "the node does not listen for TCP in the clear").WithHint("parley serve --listen 127.0.0.1:0")
		}
		var own view.Token
		if own, err = node.makeToken(ctx, ""); err != nil {
			return nil, err
		}
		node.token, node.tokens = own.ID, true
		line, err = client.New(client.Options{URL: "http://" + node.status.Listen, Token: own.Text, Patience: -1})
	}
	node.lines = []*client.Client{line}
	return node, err
}

// processorTime returns the seconds of processor time that a process has used, or 0 where the system does not tell.
func processorTime(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before may hold spaces
	var ticks float64
	if fields := strings.Fields(rest); len(fields) > 12 {
		for _, f := range fields[11:13] { // user and system
			n, _ := strconv.ParseFloat(f, 64) // the kernel writes a number
			ticks += n
		}
	}
	return ticks / ticksPerSecond
}

// ticksPerSecond is the unit of the times in /proc, which is the same on all systems.
const ticksPerSecond = 100
