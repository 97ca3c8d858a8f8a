package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/internal/eventually"
)

// neighbours are the host and two guests of a node in a process of its own. All call over its socket.
type neighbours struct {
	t              *testing.T
	host, fae, bob *client.Client
	socket         string
}

// measured is what the others got.
type measured struct {
	list   time.Duration // median of the host's list
	cycles float64       // of bob, a second
}

// startNeighbours starts a node on which fae has messages of its own.
func startNeighbours(t *testing.T, messages int) *neighbours {
	t.Helper()
	state := t.TempDir()
	startProcess(t, filepath.Join(t.TempDir(), logFile), "parley", "serve", "--state", state, "--listen", "off")
	c := onceClient(t, state)
	eventually.Holds(t, "the node answers", func() bool { return c.Call(t.Context(), "status", api.NodeRequest{}, nil) == nil })
	for _, name := range []string{"fae", "bob"} {
		if _, err := c.Make(t.Context(), client.NewAgent{Kind: "guest", Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	n := &neighbours{t: t, host: c, fae: onceClient(t, state).ActingAs("fae"), bob: onceClient(t, state).ActingAs("bob"), socket: filepath.Join(state, socketFile)}
	n.inParallel(64, func(i int) error {
		for range messages / 64 {
			if _, err := n.fae.Send(t.Context(), "SELF", client.Post{Text: strings.Repeat("words ", 50)}); err != nil {
				return err
			}
		}
		return nil
	})
	for range 20 {
		if _, err := n.bob.Send(t.Context(), "HOST", client.Post{Text: "for the host"}); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n *neighbours) inParallel(callers int, do func(i int) error) {
	n.t.Helper()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			if err := do(i); err != nil {
				n.t.Error(err)
			}
		})
	}
	all.Wait()
}

// measure has the host list its mail, and bob ask and answer itself, for a time.
func (n *neighbours) measure(long time.Duration) (m measured) {
	n.t.Helper()
	var lists []time.Duration
	var cycles atomic.Int64
	began := time.Now()
	n.inParallel(5, func(i int) error {
		for time.Since(began) < long {
			if i == 0 {
				at := time.Now()
				if err := n.host.Call(n.t.Context(), "list_messages", api.ListMessagesRequest{}, nil); err != nil {
					return err
				}
				lists = append(lists, time.Since(at))
				time.Sleep(5 * time.Millisecond) // a person who looks
				continue
			}
			asked, err := n.bob.Ask(n.t.Context(), client.Form{To: "SELF", Description: "what?", Fields: []client.Field{{Name: "a"}}})
			if err == nil {
				_, err = n.bob.Answer(n.t.Context(), asked.Form, map[string]capabilities.Value{"a": capabilities.String("b")})
			}
			if err != nil {
				return err
			}
			cycles.Add(1)
		}
		return nil
	})
	slices.Sort(lists)
	return measured{lists[len(lists)/2], float64(cycles.Load()) / time.Since(began).Seconds()}
}

// listForever is the command of the test binary that lists the mail of a guest with 16 callers, until it is killed. Its
// arguments are the node's socket, the guest's name and how many messages that has.
func listForever() {
	c, err := client.New(client.Options{Socket: os.Args[1], As: os.Args[2]})
	if err != nil {
		panic(err)
	}
	messages, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for i := range uint64(noisyCallers) {
		all.Go(func() {
			for first := i * uint64(messages) / noisyCallers; ; first = (first + 997) % uint64(messages) {
				r := api.ListMessagesRequest{MessageFilter: view.MessageFilter{All: true}, First: first}
				if err := c.Call(context.Background(), "list_messages", r, nil); err != nil {
					panic(err)
				}
				fmt.Println(first)
			}
		})
	}
	all.Wait()
}

const (
	noisyLister  = "noisylister" // a command of the test binary
	noisyCallers = 16
)

// TestGrowthOfANoisyGuest has a guest list its own mail with 16 callers. The host's list is as fast as before, and another
// guest goes on. How fast it does is logged only: that depends on what else the machine does.
func TestGrowthOfANoisyGuest(t *testing.T) {
	messages, long := 3200, 2*time.Second
	if n, err := strconv.Atoi(os.Getenv("PARLEY_MESSAGES")); err == nil {
		messages, long = n, 5*time.Second
	}
	n := startNeighbours(t, messages)
	n.measure(long / 4) // warm
	alone := n.measure(long)
	log := filepath.Join(t.TempDir(), logFile)
	noise := startProcess(t, log, noisyLister, n.socket, "fae", strconv.Itoa(messages))
	listed := func() int {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
	eventually.Holds(t, "the guest has begun", func() bool { return listed() > 0 })
	before := listed()
	beside := n.measure(long)
	noise.kill()
	pages := listed() - before
	again := n.measure(long)
	t.Logf("the host's list %v, beside %v, afterwards %v; bob %.0f, %.0f, %.0f cycles a second; %d pages", alone.list, beside.list, again.list, alone.cycles, beside.cycles, again.cycles, pages)
	if most := max(3*max(alone.list, again.list), 20*time.Millisecond); beside.list > most {
		t.Errorf("the host's list takes %v beside a noisy guest, and %v alone", beside.list, alone.list)
	}
	if beside.cycles == 0 || pages == 0 {
		t.Errorf("%.0f cycles a second, %d pages: a guest gets nothing", beside.cycles, pages)
	}
}
