package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
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
	"parley/events"
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
	startProcess(t, filepath.Join(t.TempDir(), logFile), "parley", "serve", "--state", state, "--listen", "127.0.0.1:0")
	c := onceClient(t, state)
	eventually.Holds(t, "the node answers", func() bool { return c.Call(t.Context(), "status", api.NodeRequest{}, nil) == nil })
	for _, name := range []string{"fae", "bob"} {
		if _, err := api.MakeAgent.Do(t.Context(), c, api.MakeAgentRequest{Kind: "guest", Name: name}); err != nil {
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
	// Gus has a program that has printed much.
	run := api.RunAgentRequest{Name: "gus", ProgramSet: events.ProgramSet{Runtime: "exec", Command: []string{"sh", "-c", `seq -f "%g words words words words words words words words" 20000`}}}
	if err := c.Call(t.Context(), "run_agent", run, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Call(t.Context(), "wait_for_finish", api.WaitForFinishRequest{AgentID: "gus"}, nil); err != nil {
		t.Fatal(err)
	}
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

// noises are what a guest with 16 callers does, each until the process is killed. One call reads from a place that differs from
// call to call, where that is possible. Messages is how many the guest has.
var noises = map[string]func(ctx context.Context, c *client.Client, place, messages uint64) error{
	"lists": func(ctx context.Context, c *client.Client, place, _ uint64) error {
		r := api.ListMessagesRequest{MessageFilter: view.MessageFilter{All: true}, First: place}
		return c.Call(ctx, "list_messages", r, nil)
	},
	"searches": func(ctx context.Context, c *client.Client, place, _ uint64) error {
		r := api.SearchRequest{Search: view.Search{Text: "words"}, Skip: int(place % 900)}
		return c.Call(ctx, "search", r, nil)
	},
	"log": func(ctx context.Context, c *client.Client, place, _ uint64) error {
		return c.Call(ctx, "read_log", api.ReadLogRequest{After: place, Limit: 5000}, nil)
	},
	"follows": func(ctx context.Context, c *client.Client, _, messages uint64) error {
		left := min(messages, 200)
		for _, err := range c.Follow(ctx, client.View{All: true}, "1") {
			if left--; err != nil || left == 0 {
				return err
			}
		}
		return nil
	},
	"output": func(ctx context.Context, c *client.Client, place, _ uint64) error {
		return c.Call(ctx, "read_output", api.ReadOutputRequest{AgentID: "SELF", After: place % 100}, nil)
	},
	"page": nil, // see visitor
}

// makeNoise is a command of the test binary. Its arguments are the node's socket, a guest's name, a noise, and how many
// messages the guest has. It prints a line for each call.
func makeNoise() {
	c, err := client.New(client.Options{Socket: os.Args[1], As: os.Args[2]})
	if err != nil {
		panic(err)
	}
	messages, err := strconv.ParseUint(os.Args[4], 10, 64)
	if err != nil {
		panic(err)
	}
	noise := noises[os.Args[3]]
	if os.Args[3] == "page" {
		noise = visitor(c)
	}
	var all sync.WaitGroup
	for i := range uint64(noisyCallers) {
		all.Go(func() {
			for place := i * messages / noisyCallers; ; place = (place + 997) % messages {
				if err := noise(context.Background(), c, place, messages); err != nil {
					panic(err)
				}
				fmt.Println(place)
			}
		})
	}
	all.Wait()
}

// visitor signs a guest's browser in, and returns a noise that gets the guest's page.
func visitor(c *client.Client) func(ctx context.Context, _ *client.Client, _, _ uint64) error {
	var link api.OpenLinkResponse
	jar, err := cookiejar.New(nil)
	if err == nil {
		err = c.Call(context.Background(), "open_link", api.OpenLinkRequest{}, &link)
	}
	if err != nil {
		panic(err)
	}
	at, code, _ := strings.Cut(link.URL, "?code=")
	browser := &http.Client{Jar: jar}
	in, err := browser.PostForm(at, url.Values{"code": {code}})
	if err != nil {
		panic(err)
	}
	_ = in.Body.Close()
	page := in.Request.URL.String() // that it was sent on to
	return func(ctx context.Context, _ *client.Client, _, _ uint64) error {
		got, err := browser.Get(page)
		if err != nil {
			return err
		}
		defer got.Body.Close() //nolint:errcheck // it is read
		if _, err := io.Copy(io.Discard, got.Body); err != nil || got.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %v", got.Status, err)
		}
		return nil
	}
}

const (
	noisyGuest   = "noisyguest" // a command of the test binary
	noisyCallers = 16
)

// TestGrowthOfANoisyGuest has a guest read what is its own with 16 callers, in each way that there is. The host's list is as fast
// as before, and another guest goes on. How fast that does is logged only: it depends on what else the machine does.
func TestGrowthOfANoisyGuest(t *testing.T) {
	messages, long := 3200, 700*time.Millisecond
	if n, err := strconv.Atoi(os.Getenv("PARLEY_MESSAGES")); err == nil {
		messages, long = n, 5*time.Second
	}
	n := startNeighbours(t, messages)
	n.measure(long) // warm
	for _, noise := range slices.Sorted(maps.Keys(noises)) {
		t.Run(noise, func(t *testing.T) { n.testNoise(t, noise, messages, long) })
	}
}

func (n *neighbours) testNoise(t *testing.T, noise string, messages int, long time.Duration) {
	n.t = t
	guest := "fae"
	if noise == "output" {
		guest = "gus"
	}
	alone := n.measure(long)
	log := filepath.Join(t.TempDir(), logFile)
	p := startProcess(t, log, noisyGuest, n.socket, guest, noise, strconv.Itoa(messages))
	calls := func() int {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "panic") {
			t.Fatalf("%s", text)
		}
		return strings.Count(string(text), "\n")
	}
	eventually.Holds(t, "the guest has begun", func() bool { return calls() > 0 })
	before := calls()
	beside := n.measure(long)
	made := calls() - before
	eventually.Holds(t, "the guest goes on", func() bool { return calls() > before })
	p.kill()
	again := n.measure(long)
	t.Logf("the host's list %v, beside %v, afterwards %v; bob %.0f, %.0f, %.0f cycles a second, %.2f of before; %d calls", alone.list, beside.list, again.list,
		alone.cycles, beside.cycles, again.cycles, 2*beside.cycles/(alone.cycles+again.cycles), made)
	if most := max(3*max(alone.list, again.list), 20*time.Millisecond); beside.list > most {
		t.Errorf("the host's list takes %v beside a noisy guest, and %v alone", beside.list, alone.list)
	}
	if beside.cycles == 0 {
		t.Error("another guest gets nothing")
	}
}
