package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// mandatedNodeEnv is the environment variable with the folder of a node whose agents use up mandates until it is killed.
const mandatedNodeEnv = "PARLEY_TEST_MANDATED_NODE"

// Of the mandates that a node gives until it is killed.
const (
	killedCalls  = 30
	killedAmount = 50
)

// runMandatedNode runs a node whose agents are given mandates and make calls, some of them twice with one key. It prints each call that
// was allowed, and each mandate that was ended, a line each. It never returns.
func runMandatedNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "mandated"})
	for i := range 3 {
		if err == nil {
			SetRisk(n, func(*parley.Permission) mailbox.Risk { return mailbox.Risk{} })
			go func() {
				fmt.Println("failed", useForever(ctx, n, fmt.Sprint("guest", i)))
				os.Exit(1)
			}()
		}
	}
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	select {}
}

func useForever(ctx context.Context, n *Node, name string) error {
	a, err := n.ActAs(ctx, name)
	if parley.CodeOf(err) == parley.UnknownName {
		a, err = n.Host().Make(ctx, NewAgent{Kind: events.Guest, Name: name})
	}
	for round := 0; err == nil; round++ {
		left, err := a.Rules().Mandates(ctx, false)
		for _, m := range left {
			if err == nil {
				err = n.Host().Rules().EndMandate(ctx, a, m.Mandate)
				fmt.Println("ended", a.id, m.Mandate, "-", "0")
			}
		}
		if err != nil {
			return err
		}
		id, err := giveMandate(n, a, payTerms(killedCalls, fmt.Sprint(killedAmount)))
		if err != nil {
			return err
		}
		key, amount := "", 0
		for k := range 2 * killedCalls {
			if again := key != "" && rand.IntN(3) == 0; !again {
				key, amount = fmt.Sprint(os.Getpid(), "-", round, "-", k), rand.IntN(4)
			}
			p, err := a.Approve(ctx, pay(key, fmt.Sprint(amount)))
			switch {
			case err != nil:
				return err
			case p.Allowed && p.Mandate == id:
				fmt.Println("allowed", a.id, id, key, amount)
			case p.Decided:
				return fmt.Errorf("a call was decided otherwise: %+v", p)
			default:
				key = ""
			}
		}
	}
	return err
}

// allowedCalls is what a node said of a mandate before it was killed.
type allowedCalls struct {
	agent string
	keys  map[string]string // amounts, by the keys of calls that were allowed
	ended bool
}

// TestKilledNodeAllowsNoMoreThanWasGiven kills a node with SIGKILL repeatedly while mandates are used up. Whatever was allowed is charged in
// the log, once for each key, and never more than was given.
func TestKilledNodeAllowsNoMoreThanWasGiven(t *testing.T) {
	t.Parallel()
	rounds := 4
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		rounds = 100
	}
	folder := t.TempDir()
	seen := map[string]*allowedCalls{}
	for range rounds {
		left := 30 + rand.IntN(200)
		killNode(t, mandatedNodeEnv, folder, func(words []string) (bool, error) {
			if words[0] == "failed" {
				return false, errors.New("it has failed")
			}
			m := seen[words[2]]
			if m == nil {
				m = &allowedCalls{agent: words[1], keys: map[string]string{}}
				seen[words[2]] = m
			}
			if words[0] == "ended" {
				m.ended = true
			} else {
				if m.ended {
					t.Errorf("%s was allowed after the end of mandate %s", words[3], words[2])
				}
				m.keys[words[3]] = words[4]
			}
			left--
			return left > 0, nil
		})
	}
	n := openNode(t, folder)
	charged, calls := map[string]map[string]bool{}, 0
	for _, m := range seen {
		id, err := capabilities.ParseID(m.agent)
		if err != nil {
			t.Fatal(err)
		}
		if charged[m.agent] != nil {
			continue
		}
		charged[m.agent] = map[string]bool{}
		used, spent := map[string]int{}, map[string]int64{}
		l, err := (&Agent{node: n, id: id}).Log(t.Context(), 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range l.Entries {
			c, ok := e.Payload.(*events.MandateCharged)
			if !ok {
				continue
			}
			of := c.Mandate.String()
			if charged[m.agent][of+" "+c.Key] {
				t.Errorf("%s was charged twice to %s", c.Key, of)
			}
			charged[m.agent][of+" "+c.Key] = true
			if used[of]++; used[of] > killedCalls {
				t.Errorf("%d calls of %s", used[of], of)
			}
			if spent[of] += c.Amounts[0]; spent[of] > killedAmount*1_000_000 {
				t.Errorf("%d was spent of %s", spent[of], of)
			}
		}
	}
	for of, m := range seen {
		for key := range m.keys {
			if calls++; !charged[m.agent][of+" "+key] {
				t.Errorf("%s was allowed, and is not charged to %s", key, of)
			}
		}
	}
	if _, err := n.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls within %d mandates in %d lives", calls, len(seen), rounds)
}
