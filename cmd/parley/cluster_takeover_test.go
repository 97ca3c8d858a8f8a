package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/eventually"
)

// takeOversEnv has the duration for which TestTakeOverPercentiles makes take-overs. Without it the test is skipped.
const takeOversEnv = "PARLEY_TAKEOVERS"

const (
	takeOverPairs   = 2                      // nodes that are taken over at the same time, on the same servers
	noticed         = 100 * time.Millisecond // a shorter gap is none: what was stopped served nobody then
	takeOversOfNode = 20                     // after these, another node is made, so that the check of all its forms stays short
)

// TestTakeOverPercentiles kills the processes of nodes on three servers under load, again and again. Before that, it stops
// nodes and servers. Another one goes on with all that was acknowledged. It reports how long the clients waited, and 99 of
// 100 of these times are in bounds.
func TestTakeOverPercentiles(t *testing.T) {
	spec := os.Getenv(takeOversEnv)
	if spec == "" {
		t.Skip(takeOversEnv + " is not set")
	}
	period, err := time.ParseDuration(spec)
	if err != nil {
		t.Fatal(err)
	}
	if !t.Run("stopped", func(t *testing.T) { stoppedPercentiles(t, period) }) {
		return
	}
	var (
		mu   sync.Mutex
		took []time.Duration
		c    = startCluster(t)
		end  = time.Now().Add(period)
	)
	isPicked := false // by -run
	t.Run("killed", func(t *testing.T) {
		isPicked = true
		for range takeOverPairs {
			t.Run("pair", func(t *testing.T) {
				t.Parallel()
				for time.Now().Before(end) && !t.Failed() {
					some := c.takeOvers(t, end)
					mu.Lock()
					took = append(took, some...)
					mu.Unlock()
				}
			})
		}
	})
	if isPicked {
		inTime(t, "killed nodes", took)
	}
}

// inTime reports how long clients waited, and fails if 99 of 100 of these times are out of bounds.
func inTime(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	if len(took) == 0 {
		t.Fatal("none was taken over")
	}
	report(t, what, took)
	if slow := percentile(took, 99); slow > takeOver {
		t.Errorf("99 of 100 are within %v, want at most %v", slow, takeOver)
	}
}

// report sorts how long clients waited, and reports it.
func report(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	if slices.Sort(took); len(took) == 0 {
		return
	}
	t.Logf("%d %s: half within %v, 90 of 100 within %v, 99 of 100 within %v, the longest %v", len(took), what,
		percentile(took, 50), percentile(took, 90), percentile(took, 99), took[len(took)-1])
}

// stoppedPercentiles stops processes, which does not end their connections: the server that the node is connected to, the
// one that leads its journal, and the node itself. Whoever hangs, the clients are answered in time by those that do not.
func stoppedPercentiles(t *testing.T, period time.Duration) {
	c := startCluster(t)
	took, logged := map[string][]time.Duration{}, map[string]int{}
	for end := time.Now().Add(period); time.Now().Before(end) && !t.Failed(); {
		c.stops(t, end, took, logged)
	}
	var all []time.Duration
	for what, some := range took {
		t.Logf("%s: %d lines in the logs of the nodes", what, logged[what])
		all = append(all, some...)
		report(t, what, some)
	}
	inTime(t, "stops in all", all)
}

// stops stops the processes of a new node and of its servers in turn, or until a time. It adds how long the clients waited.
func (c *cluster) stops(t *testing.T, end time.Time, took map[string][]time.Duration, logged map[string]int) {
	node, standby, status := c.pair(t)
	l := startLoad(t, node, standby)
	for round := 0; round < takeOversOfNode && time.Now().Before(end) && !t.Failed(); round++ {
		l.more(t, 10+rand.Int64N(40))
		before := node.lines() + standby.lines()
		what, stop, resume := "stopped nodes", node.process, func() {}
		switch round % 4 {
		case 0, 2:
			what, stop = "stopped leaders", c.servers[c.leader(t, "PARLEY_"+status.Node.String())]
		case 1:
			what, stop = "stopped servers of the node", c.servers[c.connected(t, node)]
		}
		if stop != node.process {
			resume = func() { stop.signal(t, syscall.SIGCONT) }
		}
		gap := l.gap(t, func() { stop.signal(t, syscall.SIGSTOP) })
		if gap > noticed {
			took[what] = append(took[what], gap)
		}
		logged[what] += node.lines() + standby.lines() - before
		t.Logf("%s: %v", what, gap.Round(time.Millisecond))
		if stop == node.process {
			standby.runs(t)
			node.kill()
		}
		resume()
		eventually.Holds(t, "the servers have caught up", attempt(t, c.allWhole))
		node, standby = c.again(t, node, standby)
	}
	l.end()
	l.check(t, node)
	t.Logf("%d acknowledged, none lost", l.acks.Load())
	standby.kill()
	node.kill()
}

// again returns the process that runs the node and the one that waits, of two that may have changed their parts. One that
// has ended is started again.
func (c *cluster) again(t *testing.T, one, other *clusterNode) (node, standby *clusterNode) {
	t.Helper()
	eventually.Holds(t, "one of the two runs the node", attempt(t, func(ctx context.Context) bool {
		for _, n := range []*clusterNode{one, other} {
			if s, err := n.status(ctx); err == nil && s.Problem == nil && s.PID == n.cmd.Process.Pid {
				node = n
				return true
			}
		}
		return false
	}))
	if standby = other; node == other {
		standby = one
	}
	eventually.Holds(t, "the other one waits or has ended", func() bool {
		select {
		case <-standby.ended:
			return true
		default:
		}
		_, said, exit := runTest(t.Context(), standby.folder, nil, "status")
		return exit == exitNotRunning && strings.Contains(said, "waits as a standby")
	})
	select {
	case <-standby.ended:
		standby.start(t)
		standby.waits(t)
	default:
	}
	return node, standby
}

// allWhole reports whether every server has every stream, and takes part in making one. A server that was stopped is no
// member of a majority before.
func (c *cluster) allWhole(ctx context.Context) bool {
	isWhole := func(in *jetstream.StreamInfo) bool {
		if in.Cluster == nil || in.Cluster.Leader == "" || len(in.Cluster.Replicas) != clusterSize-1 {
			return false
		}
		return !slices.ContainsFunc(in.Cluster.Replicas, func(r *jetstream.PeerInfo) bool { return !r.Current || r.Offline })
	}
	all := c.js.ListStreams(ctx)
	for in := range all.Info() {
		if !isWhole(in) {
			return false
		}
	}
	if all.Err() != nil {
		return false
	}
	s, err := c.js.CreateStream(ctx, jetstream.StreamConfig{Name: "READY", Replicas: clusterSize})
	if err != nil {
		return false
	}
	in, err := s.Info(ctx)
	return c.js.DeleteStream(ctx, "READY") == nil && err == nil && isWhole(in)
}

// lines returns the number of lines in the log of the folder's processes.
func (n *clusterNode) lines() int { return strings.Count(n.logged(), "\n") }

// connected returns a server that the journal of a node is connected to.
func (c *cluster) connected(t *testing.T, n *clusterNode) int {
	t.Helper()
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", n.cmd.Process.Pid))
	if err != nil {
		t.Skip("the connections of a process cannot be seen here")
	}
	sockets := map[string]bool{}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", n.cmd.Process.Pid))
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil {
			sockets[strings.Trim(strings.TrimPrefix(to, "socket:"), "[]")] = true
		}
	}
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		if len(words) < 10 || !sockets[words[9]] {
			continue
		}
		for i, o := range c.options {
			if _, port := addressOf(o.Address); strings.HasSuffix(words[2], fmt.Sprintf(":%04X", port)) {
				return i
			}
		}
	}
	t.Fatal("the node is connected to no server")
	return 0
}

// takeOvers kills the process of a new node some times, or until a time. It returns how long the clients waited for each
// standby.
func (c *cluster) takeOvers(t *testing.T, end time.Time) (took []time.Duration) {
	node, standby, _ := c.pair(t)
	l := startLoad(t, node, standby)
	for len(took) < takeOversOfNode && time.Now().Before(end) && !t.Failed() {
		l.more(t, 10+rand.Int64N(40))
		took = append(took, l.gap(t, node.kill))
		standby.runs(t)
		node.start(t)
		node.waits(t)
		node, standby = standby, node
	}
	l.end()
	l.check(t, node)
	t.Logf("%d acknowledged, none lost", l.acks.Load())
	standby.kill()
	node.kill()
	return took
}

// percentile returns the least of sorted durations that so many of 100 do not exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	at := (len(sorted)*percent + 99) / 100
	return sorted[max(at, 1)-1].Round(time.Millisecond)
}
