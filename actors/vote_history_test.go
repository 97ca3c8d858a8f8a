package actors

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// voteOp is an operation on a form that needs several answers. Principal is the number of who acts.
type voteOp struct {
	kind      string // vote, withdraw or amend
	principal int
	revision  uint64 // that was shown, of a vote
}

// voteState is a form in the sequential model.
type voteState struct {
	revision uint64
	votes    uint32 // a bit for each principal
	settled  bool
}

// voteModel is the sequential model of a form that needs so many answers. The result "" is that of an operation which may
// have had its effect or not. Its history has it return after all others, so one that had none is last.
func voteModel(need int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return voteState{revision: 1} },
		Step: func(state, input, output any) (bool, any) {
			was, op, got := state.(voteState), input.(voteOp), output.(string)
			now, want := was.step(op, need)
			switch {
			case got == want || got == "":
				return true, now
			case !isElsewhere(op.principal):
				return false, nil
			case got == "withdrawn" && want == "none": // it is repeated, or of a vote that the copy shows though it is void
				return true, was
			case was.settled && (got == "none" || got == "amended"): // the copy there has not heard of the end
				return true, was
			}
			return false, nil
		},
	}
}

// checkVotes fails the test where a history is none of the model, and says which of its operations is impossible. It reports
// whether it could tell in time: that doubles with each operation whose result is unknown.
func checkVotes(t *testing.T, need int, history []porcupine.Operation) (decided bool) {
	t.Helper()
	check := func() porcupine.CheckResult {
		return porcupine.CheckOperationsTimeout(voteModel(need), history, 10*time.Second)
	}
	r := check()
	if r != porcupine.Illegal {
		return r == porcupine.Ok
	}
	for i, was := range history {
		history[i].Output, history[i].Return = "", int64(time.Hour)
		if check() == porcupine.Ok {
			t.Errorf("impossible: %+v", was)
		}
		history[i] = was
	}
	t.Fatalf("need %d: %+v", need, history)
	return false
}

// isElsewhere reports whether a principal is the host of another node than the form's home.
func isElsewhere(principal int) bool { return principal == 1 || principal == 2 }

// step returns the state after an operation, and the result.
func (s voteState) step(op voteOp, need int) (voteState, string) {
	bit := uint32(1) << op.principal
	switch {
	case s.settled:
		return s, "already"
	case op.kind == "amend":
		return voteState{revision: s.revision + 1}, fmt.Sprint(s.revision + 1)
	case op.kind == "withdraw" && s.votes&bit == 0:
		return s, "none"
	case op.kind == "withdraw":
		s.votes &^= bit
		return s, "withdrawn"
	case op.revision != s.revision:
		return s, "amended"
	}
	s.votes |= bit
	if s.settled = bits.OnesCount32(s.votes) >= need; s.settled {
		return s, "answered"
	}
	return s, "voted"
}

// perform performs an operation as an agent, and returns its result.
func (op voteOp) perform(ctx context.Context, a *Agent, ref capabilities.FormRef) string {
	var err error
	switch op.kind {
	case "amend":
		about := fmt.Sprint("question ", rand.Int())
		var m view.Message
		if m, err = a.Amend(ctx, ref, parley.Amendment{Description: &about}); err == nil {
			return fmt.Sprint(m.Revision)
		}
	case "withdraw":
		var queued bool
		if queued, err = a.Withdraw(ctx, ref); err == nil && !queued {
			return "withdrawn"
		}
	default:
		var o view.Outcome
		o, err = a.Answer(ctx, ref, parley.Answer{Revision: op.revision, Texts: []events.FieldText{{Name: "a", Text: "x"}}})
		if err == nil && o.Status != view.StatusAnswering {
			return string(o.Status)
		}
	}
	switch parley.CodeOf(err) {
	case parley.AlreadyAnswered:
		return "already"
	case parley.Amended:
		return "amended"
	case parley.InvalidArgument:
		return "none"
	}
	return "" // it may still arrive
}

// TestVotesAreLinearizable has 16 principals of three nodes vote and withdraw while the asker amends, over connections that
// stall and break. The history is one of the sequential model.
func TestVotesAreLinearizable(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	fae := guest(t, a.Node, "fae")
	holders := []*Agent{a.Host(), b.Host(), c.Host()}
	for i := range 13 {
		name := fmt.Sprint("host", i)
		made, err := a.Host().Make(t.Context(), NewAgent{Kind: events.Host, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		holders = append(holders, made)
	}
	ended := map[string]int{}
	showsAll := func() bool {
		return ended["vote voted"] > 0 && ended["vote answered"] > 0 && ended["withdraw withdrawn"] > 0
	}
	needs := []int{2, 4, 8, 11, 13, 15} // a few settle for sure, and many take votes back
	undecided, round := 0, 0
	for ; round < len(needs) || !showsAll() && round < 4*len(needs); round++ {
		need := needs[round%len(needs)]
		form := askAndForward(t, fae, holders[:3], parley.Form{To: "HOST", Need: uint32(need)})
		ref := capabilities.FormID(form)
		for i, h := range holders[3:] {
			if err := holders[0].Forward(t.Context(), ref, fmt.Sprint("host", i)); err != nil {
				t.Fatal(err)
			}
			awaitMessage(t, h, form)
		}
		disturbed := make(chan struct{})
		go func() {
			defer close(disturbed)
			for _, s := range []*clusterNode{b, c} {
				s.proxy.setDelay(rand.N(3 * time.Millisecond))
				s.proxy.setMode([]proxyMode{stalled, disconnected}[round%2])
				time.Sleep(rand.N(20 * time.Millisecond)) // a disturbance of some length, and no synchronization
				s.proxy.setMode(forwarding)
			}
		}()
		history := raceVotes(t, fae, holders, ref)
		<-disturbed
		for _, op := range history {
			ended[op.Input.(voteOp).kind+" "+op.Output.(string)]++
		}
		if !checkVotes(t, need, history) {
			undecided++
		}
		if _, err := fae.Cancel(t.Context(), ref, ""); err != nil && parley.CodeOf(err) != parley.AlreadyAnswered {
			t.Fatal(err)
		}
		home, err := fae.Message(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		awaitSameOutcome(t, form, home.Outcome.Status, fae, holders...)
	}
	t.Log(ended, undecided)
	if undecided > round/2 {
		t.Errorf("%d of %d histories were not decided in time", undecided, round)
	}
	if !showsAll() {
		t.Errorf("the histories show too little: %v", ended)
	}
}

// raceVotes has all holders act at once, each several times, and the asker amend the form.
func raceVotes(t *testing.T, asker *Agent, holders []*Agent, ref capabilities.FormRef) []porcupine.Operation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		running sync.WaitGroup
		start   = time.Now()
	)
	run := func(who *Agent, op voteOp, client int) {
		called := time.Since(start)
		got := op.perform(ctx, who, ref)
		done := time.Since(start)
		if got == "" {
			done = time.Hour
		}
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: client, Input: op, Output: got, Call: int64(called), Return: int64(done)})
	}
	client := 0
	for i, h := range holders {
		first := client
		client += 3
		running.Go(func() {
			for n := range 3 {
				m, err := h.Message(ctx, ref)
				if err != nil {
					t.Error(err)
					return
				}
				op := voteOp{kind: "vote", principal: i, revision: m.AnswerRevision()}
				if n > 0 && rand.IntN(2) == 0 {
					op = voteOp{kind: "withdraw", principal: i}
				}
				run(h, op, first+n)
			}
		})
	}
	running.Go(func() {
		for range rand.IntN(3) {
			run(asker, voteOp{kind: "amend"}, client)
		}
	})
	running.Wait()
	return history
}
