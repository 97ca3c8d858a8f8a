package actors

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
)

// operation is one call that settles or reads a form.
type operation struct {
	kind  string // answer, decline, cancel, look
	value string // the answer's value
}

// formState is the outcome of a form, "" while it is open.
type formState string

// settlementModel is the sequential model of one form: the first operation settles it, and then it stays as it is.
// Expiry is no operation. An open form may expire at any time, and the next operation returns that.
var settlementModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{formState("")} },
	Step: func(state, input, output any) []any {
		was, op, got := state.(formState), input.(operation), output.(formState)
		if was == "" && got == "expired" {
			return []any{got}
		}
		if was == "" && op.kind != "look" {
			was = formState(op.kind + op.value)
		}
		if got != was {
			return nil
		}
		return []any{was}
	},
	Equal: func(a, b any) bool { return a == b },
}

// TestFormIsSettledOnce races answers, declines, cancels and deadlines. It checks that the history is linearizable.
func TestFormIsSettledOnce(t *testing.T) {
	n := openNode(t, t.TempDir())
	guests := []*Agent{guest(t, n, "fae"), guest(t, n, "bob"), guest(t, n, "eve")}
	for round := range 60 {
		q := parley.Form{To: "HOST", Description: "race", Fields: textField("a")}
		if round%3 == 0 {
			q.Deadline = n.now().Add(time.Duration(1+rand.IntN(6)) * time.Millisecond)
		}
		asker := guests[round%len(guests)]
		asked, err := asker.Ask(t.Context(), q)
		if parley.CodeOf(err) == parley.InvalidArgument && q.Deadline != 0 {
			continue // the deadline came before the ask
		}
		if err != nil {
			t.Fatal(err)
		}
		history := race(t, n, asker, capabilities.FormID(asked.Form))
		if r := porcupine.CheckOperationsTimeout(settlementModel.ToModel(), history, 10*time.Second); r != porcupine.Ok {
			t.Fatalf("round %d: %v: %+v", round, r, history)
		}
	}
}

func race(t *testing.T, n *Node, asker *Agent, form capabilities.FormRef) []porcupine.Operation {
	t.Helper()
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		wg      sync.WaitGroup
		start   = time.Now()
	)
	run := func(client int, a operation) {
		called := time.Since(start)
		got := perform(t, n, asker, form, a)
		op := porcupine.Operation{ClientId: client, Input: a, Output: got, Call: int64(called), Return: int64(time.Since(start))}
		mu.Lock()
		defer mu.Unlock()
		history = append(history, op)
	}
	for client := range 8 {
		wg.Go(func() {
			for i := range 2 {
				kind := []string{"answer", "answer", "decline", "cancel", "look"}[rand.IntN(5)]
				a := operation{kind: kind}
				if kind == "answer" {
					a.value = fmt.Sprint(client, i)
				}
				run(client, a)
			}
			run(client, operation{kind: "look"})
		})
	}
	wg.Wait()
	return history
}

// perform performs an operation and returns the form's state after it, as its result shows.
func perform(t *testing.T, n *Node, asker *Agent, form capabilities.FormRef, a operation) formState {
	t.Helper()
	ctx := context.Background()
	var err error
	switch a.kind {
	case "answer":
		_, err = n.Host().Answer(ctx, form, parley.Answer{Values: map[string]capabilities.Value{"a": capabilities.String(a.value)}})
	case "decline":
		_, err = n.Host().Decline(ctx, form, 0, "")
	case "cancel":
		_, err = asker.Cancel(ctx, form, "")
	}
	if err == nil && a.kind != "look" {
		return formState(a.kind + a.value)
	}
	if code := parley.CodeOf(err); code == parley.AlreadyExpired {
		return "expired"
	} else if err != nil && code != parley.AlreadyAnswered && code != parley.AlreadyDeclined && code != parley.AlreadyCancelled {
		t.Errorf("%s: %v", a.kind, err)
	}
	e, err := asker.Message(ctx, form)
	if err != nil {
		t.Error(err)
	}
	return formStateOf(e.Outcome)
}

func formStateOf(o *view.Outcome) formState {
	if o == nil {
		return ""
	}
	switch o.Status {
	case view.StatusAnswered:
		r, _ := o.Values.AsRecord()
		return formState("answer" + r["a"].Text())
	case view.StatusDeclined:
		return "decline"
	case view.StatusCancelled:
		return "cancel"
	}
	return formState(o.Status)
}
