package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// queueingNodeEnv is the environment variable with the folder of a node whose guest writes to what is not answered yet until it is killed.
const queueingNodeEnv = "PARLEY_TEST_QUEUEING_NODE"

// runQueueingNode runs a node whose guest asks for a worker and for a folder, sends and uses, and whose host answers meanwhile. It prints
// what was accepted, a line each. It never returns.
func runQueueingNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "queueing"})
	if err == nil {
		err = queueForever(ctx, n)
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

func queueForever(ctx context.Context, n *Node) error {
	fae, err := n.ActAs(ctx, "fae")
	for round := 0; err == nil; round++ {
		mark := fmt.Sprint(os.Getpid(), "-", round)
		var worker, notes view.Asked
		if worker, err = fae.Requests().Send(ctx, parley.Request{To: "HOST", Text: "whom?", Name: "w" + mark}); err != nil {
			break
		}
		if notes, err = fae.Requests().Send(ctx, parley.Request{To: "HOST", Text: "what?", Name: "n" + mark}); err != nil {
			break
		}
		answered := make(chan error, 1)
		after := rand.IntN(8)
		for i := range 8 {
			if i == after {
				go func() {
					_, err := n.Host().Requests().Resolve(ctx, capabilities.FormID(worker.Form), "worker", capabilities.Facet{})
					if err == nil {
						_, err = n.Host().Requests().Resolve(ctx, capabilities.FormID(notes.Form), "notes", capabilities.Facet{})
					}
					answered <- err
				}()
			}
			name := fmt.Sprint(mark, "-", i)
			if _, err = fae.Send(ctx, "w"+mark, name); err != nil {
				return err
			}
			fmt.Println("sent", name)
			_, err = ResourcesOf(fae).Use(ctx, Used{Name: "n" + mark, Verb: "write", Key: name, Input: map[string]capabilities.Value{
				"path": capabilities.String(name), "content": capabilities.String("x"),
			}})
			if err != nil {
				return err
			}
			fmt.Println("used", name)
		}
		err = <-answered
	}
	return err
}

// TestKilledNodeSendsWhatWasQueued kills a node with SIGKILL repeatedly while its guest writes to answers that come meanwhile. What was
// accepted arrives once and in order when its request is answered, and is done once.
func TestKilledNodeSendsWhatWasQueued(t *testing.T) {
	t.Parallel()
	rounds := 4
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		rounds = 60
	}
	folder, written := filepath.Join(t.TempDir(), "state"), t.TempDir()
	n := openNode(t, folder)
	guest(t, n, "fae")
	guest(t, n, "worker")
	if _, err := ResourcesOf(n.Host()).Make(t.Context(), NewResource{Name: "notes", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: written}}, false); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	accepted := map[string][]string{}
	for range rounds {
		left := 10 + rand.IntN(120)
		killNode(t, queueingNodeEnv, folder, func(words []string) (bool, error) {
			if words[0] == "failed" {
				return false, errors.New(strings.Join(words, " "))
			}
			accepted[words[0]] = append(accepted[words[0]], words[1])
			left--
			return left > 0, nil
		})
	}
	n = openNode(t, folder)
	fae, worker := agentNamed(t, n, "fae"), agentNamed(t, n, "worker")
	in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{Pending: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range in.Messages {
		path := "worker"
		if m.Description == "what?" {
			path = "notes"
		}
		resolve(t, n.Host(), m.MessageID, path, capabilities.Facet{})
	}
	var got []string
	eventually.Holds(t, "all that was sent has arrived", func() bool {
		got = textsOf(t, worker, fae.ID())
		return len(got) >= len(accepted["sent"])
	})
	seen, last := map[string]bool{}, map[string]string{}
	for _, name := range got {
		mark := name[:strings.LastIndexByte(name, '-')]
		if seen[name] || name <= last[mark] {
			t.Errorf("%s came after %s, or twice", name, last[mark])
		}
		seen[name], last[mark] = true, name
	}
	for _, name := range accepted["sent"] {
		if !seen[name] {
			t.Errorf("%s was accepted, and has not arrived", name)
		}
	}
	home := &Agent{node: n, id: resourceNamed(t, n, "notes")}
	for _, name := range accepted["used"] {
		eventually.Holds(t, name+" is written", func() bool {
			_, err := os.Stat(filepath.Join(written, name))
			return err == nil || wasUnknown(t, home, name)
		})
	}
	begun := map[string]int{}
	l, err := home.Log(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Entries {
		if u, ok := e.Payload.(*events.UseBegun); ok {
			begun[u.Key]++
		}
	}
	for _, name := range accepted["used"] {
		if begun[name] != 1 {
			t.Errorf("%s was begun %d times", name, begun[name])
		}
	}
	t.Logf("%d messages and %d uses were accepted, %d and %d have come", len(accepted["sent"]), len(accepted["used"]), len(got), len(begun))
}

// wasUnknown reports whether a use with a key went out when its node ended.
func wasUnknown(t *testing.T, home *Agent, key string) bool {
	t.Helper()
	l, err := home.Log(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	use := capabilities.ID{}
	for _, e := range l.Entries {
		switch u := e.Payload.(type) {
		case *events.UseBegun:
			if u.Key == key {
				use = u.Use
			}
		case *events.UseEnded:
			if u.Use == use && u.How == events.UseUnknown {
				return true
			}
		}
	}
	return false
}
