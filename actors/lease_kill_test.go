package actors

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/mailbox"
)

// leasingNodeEnv is the environment variable with the folder of a node whose guests lease one name until it is killed.
const leasingNodeEnv = "PARLEY_TEST_LEASING_NODE"

// leaseholders are the guests that want the same name.
const leaseholders = 4

// runLeasingNode runs a node whose guests take turns in leasing one name. It prints each call and its result, with the times of
// both, a line each. It never returns.
func runLeasingNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "leasing"})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	say := func(words ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(words...)
	}
	for i := range leaseholders {
		go func() {
			say("failed", leaseForever(ctx, n, i, say))
			os.Exit(1)
		}()
	}
	select {}
}

// leaseForever asks for the name and releases it, over and over. A call that is not answered before the kill has no result.
func leaseForever(ctx context.Context, n *Node, i int, say func(...any)) error {
	name := fmt.Sprint("guest", i)
	a, err := n.ActAs(ctx, name)
	if parley.CodeOf(err) == parley.UnknownName {
		a, err = n.Host().Make(ctx, NewAgent{Kind: events.Guest, Name: name})
	}
	if err != nil {
		return err
	}
	for {
		call := fmt.Sprint(os.Getpid(), "-", i, "-", rand.Uint64())
		say("call", call, i, "ask", time.Now().UnixNano(), 0)
		l, err := LeasesOf(a).Ask(ctx, mailbox.AskLease{Patterns: []string{"port:1"}, Length: time.Hour})
		switch code := parley.CodeOf(err); {
		case code == parley.Leased:
			say("done", call, i, "ask", time.Now().UnixNano(), 0)
			time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond) // so that others come too: nothing waits for it
			continue
		case code == parley.QuotaExceeded: // the guest has asked for enough
			select {}
		case err != nil:
			return err
		}
		say("done", call, i, "ask", time.Now().UnixNano(), l.Lease)
		say("call", call+"r", i, "release", time.Now().UnixNano(), l.Lease)
		if err := LeasesOf(a).End(ctx, l.Lease); err != nil {
			return err
		}
		say("done", call+"r", i, "release", time.Now().UnixNano(), l.Lease)
	}
}

// leaseCall is a call of a guest, and leaseGot what came of it: the number of the lease, 0 if another has it, -1 if it is not known.
type leaseCall struct {
	guest   int
	release bool
	number  int64
}

// leaseState is who has the lease, and its number; guest -1 if nobody has. Last is the greatest number so far.
type leaseState struct {
	guest        int
	number, last int64
}

// leaseModel is a lease on one name: one holder at a time, and a number that only grows.
func leaseModel() porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init: func() []any { return []any{leaseState{guest: -1}} },
		Step: func(state, input, output any) []any {
			s, c, got := state.(leaseState), input.(leaseCall), output.(int64)
			free := leaseState{-1, 0, s.last}
			switch {
			case c.release && got == -1: // it was killed before the answer
				if s.guest == c.guest && s.number == c.number {
					return []any{s, free}
				}
				return []any{s}
			case c.release:
				if s.guest == c.guest && s.number == c.number {
					return []any{free}
				}
				return nil
			case got == 0:
				if s.guest != -1 && s.guest != c.guest {
					return []any{s}
				}
				return nil
			case got == -1:
				if s.guest == -1 { // it has it under a number that nobody was told
					return []any{s, leaseState{c.guest, -1, s.last}}
				}
				return []any{s}
			case s.guest == -1 && got > s.last, s.guest == c.guest && s.number == -1 && got > s.last:
				return []any{leaseState{c.guest, got, got}}
			case s.guest == c.guest && s.number == got: // the same again renews it
				return []any{s}
			}
			return nil
		},
	}
}

// TestLeasesAreLinearizableOverKills has guests take turns in leasing one name while the node is killed with SIGKILL. Whatever was
// answered fits one order in which one guest has it at a time, and the numbers grow.
func TestLeasesAreLinearizableOverKills(t *testing.T) {
	t.Parallel()
	rounds := 4
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		rounds = 60
	}
	folder := t.TempDir()
	var history []porcupine.Operation
	open := map[string]*porcupine.Operation{}
	calls := 0
	for range rounds {
		more, err := runAndKillLeasingNode(t, folder, open)
		if err != nil {
			t.Fatal(err)
		}
		calls += len(more)
		history = append(history, more...)
		for id, op := range open { // what was under way is done before the next start, or never
			op.Output, op.Return = int64(-1), time.Now().UnixNano()
			history = append(history, *op)
			delete(open, id)
		}
	}
	if calls < 100 {
		t.Fatalf("only %d calls were answered", calls)
	}
	model := leaseModel()
	if r := porcupine.CheckOperationsTimeout(model.ToModel(), history, 30*time.Second); r != porcupine.Ok {
		t.Errorf("%d calls, %d of them answered, fit no order: %v", len(history), calls, r)
	}
	n := openNode(t, folder)
	all, err := LeasesOf(n.Host()).List(t.Context())
	if err != nil || len(all.Leases) > 1 {
		t.Errorf("%d leases on one name: %v", len(all.Leases), err)
	}
	for _, l := range all.Leases {
		if l.State != view.LeaseHeld || len(l.Patterns) != 1 {
			t.Errorf("the lease that is left is %+v", l)
		}
	}
}

// runAndKillLeasingNode runs a node until it has answered some calls, and kills it. It returns the calls that were answered, and
// leaves those that were not in open.
func runAndKillLeasingNode(t *testing.T, folder string, open map[string]*porcupine.Operation) (answered []porcupine.Operation, _ error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), leasingNodeEnv+"="+folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	killed := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) != 6 {
			return nil, fmt.Errorf("the node says %q", lines.Text())
		}
		guest, err := strconv.Atoi(f[2])
		if err != nil {
			return nil, err
		}
		at, _ := strconv.ParseInt(f[4], 10, 64)
		number, _ := strconv.ParseInt(f[5], 10, 64)
		if f[0] == "call" {
			open[f[1]] = &porcupine.Operation{ClientId: guest, Input: leaseCall{guest, f[3] == "release", number}, Call: at}
			continue
		}
		op := open[f[1]]
		delete(open, f[1])
		op.Output, op.Return = number, at
		if answered = append(answered, *op); len(answered) > 60+rand.IntN(60) && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				return nil, err
			}
		}
	}
	_ = cmd.Wait() // it was killed
	return answered, nil
}
