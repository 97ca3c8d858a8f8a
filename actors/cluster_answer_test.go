package actors

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// claim is what one call was told of its own answer.
type answerResult struct {
	value   string // the answer; "" for declining
	outcome view.Outcome
	err     error
}

// claimAtOnce answers and declines a form by the same agent, several times at once.
func answerConcurrently(a *Agent, asked capabilities.FormRef, calls, declining int, what string) []answerResult {
	claims := make([]answerResult, calls)
	var made sync.WaitGroup
	for i := range claims {
		made.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			c := &claims[i]
			if i == declining {
				c.outcome, c.err = a.Decline(ctx, asked, what)
				return
			}
			c.value = fmt.Sprintf("%s-%d", what, i)
			c.outcome, c.err = a.Answer(ctx, Answer{Form: asked, Texts: []events.FieldText{{Name: "a", Text: c.value}}})
		})
	}
	made.Wait()
	return claims
}

// checkClaim holds what a call was told to how the form ended at its home.
func checkAnswerResult(c answerResult, by *Agent, home view.Outcome) error {
	mine := home.By == by.id && (home.Status == view.StatusDeclined && c.value == "" || home.Status == view.StatusAnswered && fieldText(home, "a") == c.value)
	switch code := parley.CodeOf(c.err); {
	case c.err == nil && c.outcome.Status == view.StatusAnswering, code == parley.AnswerPending:
		return nil // it is said to be open
	case c.err == nil && !mine:
		return fmt.Errorf("told that %s, and the form was %s by %s with %v", c.outcome.Status, home.Status, home.By, home.Values)
	case c.err == nil:
		return nil
	case mine:
		return fmt.Errorf("its own answer is the outcome, and it was told %v", c.err)
	case home.Status == view.StatusAnswered && code == parley.AlreadyAnswered, home.Status == view.StatusCancelled && code == parley.AlreadyCancelled,
		home.Status == view.StatusDeclined && code == parley.AlreadyDeclined, home.Status == view.StatusExpired && code == parley.AlreadyExpired:
		return nil
	}
	return fmt.Errorf("told %v, and the form was %s", c.err, home.Status)
}

func fieldText(o view.Outcome, name string) string {
	values, _ := o.Values.AsRecord()
	return values[name].Text()
}

// TestEachOfSeveralAnswersIsToldItsOwnFate has one agent answer the same forms several times at once while their home
// does not respond, and the home end some of them meanwhile.
func TestConcurrentAnswersGetTheirOwnResults(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", true), openClusterNode(t, "b", false)
	connectHosts(t, a, b)
	const forms = 24
	for round, away := range []time.Duration{0, 300 * time.Millisecond, 2200 * time.Millisecond, 3 * time.Second} {
		var asked []view.Asked
		for i := range forms {
			q := Ask{To: "b"}
			if i%4 == 3 {
				q.Deadline = a.now().Add(away/2 + time.Second)
			}
			asked = append(asked, ask(t, a.Host(), q))
		}
		for _, q := range asked {
			awaitMessage(t, b.Host(), q.Form)
		}
		all := make([][]answerResult, forms)
		var answered sync.WaitGroup
		if away > 0 {
			a.proxy.setMode(stalled)
		}
		for i, q := range asked {
			answered.Go(func() {
				all[i] = answerConcurrently(b.Host(), capabilities.FormID(q.Form), 4, i%8, fmt.Sprint(round, "-", i))
			})
			if i%4 == 2 {
				answered.Go(func() {
					time.Sleep(away / 2)
					_, _ = a.Host().Cancel(t.Context(), capabilities.FormID(q.Form), "") // an answer may come before
				})
			}
		}
		time.Sleep(away)
		a.proxy.setMode(forwarding)
		answered.Wait()
		wrong, told := 0, map[string]int{}
		for i, q := range asked {
			home, err := a.Host().Await(t.Context(), capabilities.FormID(q.Form))
			if err != nil {
				t.Fatal(err)
			}
			awaitSameOutcome(t, q.Form, home.Status, a.Host(), b.Host())
			for _, c := range all[i] {
				told[string(parley.CodeOf(c.err))+string(c.outcome.Status)]++
				if err := checkAnswerResult(c, b.Host(), home); err != nil {
					wrong++
					t.Errorf("away for %v: form %d, %q: %v", away, i, c.value, err)
				}
			}
		}
		t.Logf("away for %v: %d of %d calls were told wrongly; %v", away, wrong, 4*forms, told)
	}
}
