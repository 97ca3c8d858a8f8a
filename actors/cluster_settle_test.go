package actors

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
)

// TestFormIsSettledOnceAcrossNodes races answers and declines by the form's three holders with its asker's cancellation.
// The connections are slow, stall, and sometimes break.
func TestFormIsSettledOnceAcrossNodes(t *testing.T) {
	t.Parallel()
	rounds, nightly := 25, os.Getenv("PARLEY_NIGHTLY") != ""
	if nightly {
		rounds = 500
	}
	a, b, c := openThreeNodes(t)
	fae := guest(t, a.Node, "fae")
	holders := []*Agent{a.Host(), b.Host(), c.Host()}
	ended := map[view.FormStatus]int{}
	for round := range rounds {
		form := askAndForward(t, fae, holders, parley.Form{To: "HOST"})
		for _, s := range []*clusterNode{b, c} {
			s.proxy.setDelay(rand.N(4 * time.Millisecond))
		}
		disturbed := make(chan struct{})
		go func() {
			defer close(disturbed)
			s, how := []*clusterNode{b, c}[rand.IntN(2)], stalled
			if nightly && round%10 == 9 { // each round takes as long as a call's timeout
				how = disconnected
			}
			s.proxy.setMode(how)
			s.proxy.setMode(forwarding)
		}()
		history := raceNodes(t, fae, holders, form)
		<-disturbed
		if r := porcupine.CheckOperationsTimeout(settlementModel.ToModel(), history, 10*time.Second); r != porcupine.Ok {
			t.Fatalf("round %d: %v: %+v", round, r, history)
		}
		home, err := fae.Message(t.Context(), capabilities.FormID(form))
		if err != nil || home.Outcome == nil {
			t.Fatalf("round %d: %+v, %v", round, home, err)
		}
		ended[home.Outcome.Status]++
		awaitSameOutcome(t, form, home.Outcome.Status, fae, holders...)
	}
	t.Log(ended)
}

// askAndForward asks the first holder a form. Each holder forwards it to the next.
func askAndForward(t *testing.T, asker *Agent, holders []*Agent, q parley.Form) capabilities.ID {
	t.Helper()
	asked := ask(t, asker, q)
	for i, h := range holders {
		awaitMessage(t, h, asked.Form)
		if i+1 < len(holders) {
			if err := h.Forward(t.Context(), capabilities.FormID(asked.Form), []string{"b", "c"}[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return asked.Form
}

func raceNodes(t *testing.T, asker *Agent, holders []*Agent, form capabilities.ID) []porcupine.Operation {
	t.Helper()
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		wg      sync.WaitGroup
		start   = time.Now()
	)
	run := func(client int, who *Agent, a operation) {
		called := time.Since(start)
		got := performAs(t, asker, who, form, a)
		op := porcupine.Operation{ClientId: client, Input: a, Output: got, Call: int64(called), Return: int64(time.Since(start))}
		mu.Lock()
		defer mu.Unlock()
		history = append(history, op)
	}
	for client := range 2 * len(holders) {
		wg.Go(func() {
			kind := []string{"answer", "answer", "decline"}[rand.IntN(3)]
			a := operation{kind: kind}
			if kind == "answer" {
				a.value = fmt.Sprint(client)
			}
			run(client, holders[client%len(holders)], a)
		})
	}
	wg.Go(func() {
		kind := []string{"cancel", "look"}[rand.IntN(2)]
		run(len(holders)*2, asker, operation{kind: kind})
	})
	wg.Wait()
	return history
}

// performAs performs an operation as one of the holders and returns the form's state after it. The operation of a queued
// answer lasts until the form has ended.
func performAs(t *testing.T, asker, who *Agent, form capabilities.ID, a operation) formState {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var o view.Outcome
	var err error
	switch a.kind {
	case "answer":
		o, err = answerWith(who, form, a.value)
	case "decline":
		o, err = who.Decline(ctx, capabilities.FormID(form), 0, "")
	case "cancel":
		o, err = who.Cancel(ctx, capabilities.FormID(form), "")
	case "look":
		e, err := asker.Message(ctx, capabilities.FormID(form))
		if err != nil {
			t.Error(err)
		}
		return formStateOf(e.Outcome)
	}
	if err == nil && o.Status != view.StatusAnswering {
		return formState(a.kind + a.value)
	}
	switch code := parley.CodeOf(err); code {
	case "", parley.AlreadyAnswered, parley.AlreadyDeclined, parley.AlreadyCancelled:
	default:
		t.Errorf("%s: %v", a.kind, err)
	}
	if _, err := asker.Await(ctx, capabilities.FormID(form)); err != nil { // a queued answer, or another's, is under way
		t.Error(err)
	}
	e, err := asker.Message(ctx, capabilities.FormID(form))
	if err != nil {
		t.Error(err)
	}
	return formStateOf(e.Outcome)
}
