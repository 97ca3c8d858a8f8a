package actors

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// answerResult is the result of one call that answers or declines a form.
type answerResult struct {
	value   string // the answer, or "" for a call that declines
	outcome view.Outcome
	err     error
}

// answerConcurrently answers and declines a form as one agent, in several calls at once.
func answerConcurrently(a *Agent, asked capabilities.FormRef, calls, declining int, prefix string) []answerResult {
	results := make([]answerResult, calls)
	var running sync.WaitGroup
	for i := range results {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			c := &results[i]
			if i == declining {
				c.outcome, c.err = a.Decline(ctx, asked, 0, prefix)
				return
			}
			c.value = fmt.Sprintf("%s-%d", prefix, i)
			c.outcome, c.err = a.Answer(ctx, asked, parley.Answer{Texts: []events.FieldText{{Name: "a", Text: c.value}}})
		})
	}
	running.Wait()
	return results
}

// checkAnswerResult compares the result of a call with the form's outcome at its home.
func checkAnswerResult(c answerResult, by *Agent, home view.Outcome) error {
	mine := home.By == by.id && (home.Status == view.StatusDeclined && c.value == "" || home.Status == view.StatusAnswered && fieldText(home, "a") == c.value)
	switch code := parley.CodeOf(c.err); {
	case c.err == nil && c.outcome.Status == view.StatusAnswering, code == parley.AnswerPending:
		return nil // the form is reported to be open
	case c.err == nil && !mine:
		return fmt.Errorf("the result is %s, and the form was %s by %s with %v", c.outcome.Status, home.Status, home.By, home.Values)
	case c.err == nil:
		return nil
	case mine:
		return fmt.Errorf("its own answer is the outcome, and the error is %v", c.err)
	case home.Status == view.StatusAnswered && code == parley.AlreadyAnswered, home.Status == view.StatusCancelled && code == parley.AlreadyCancelled,
		home.Status == view.StatusDeclined && code == parley.AlreadyDeclined, home.Status == view.StatusExpired && code == parley.AlreadyExpired:
		return nil
	}
	return fmt.Errorf("the error is %v, and the form was %s", c.err, home.Status)
}

func fieldText(o view.Outcome, name string) string {
	values, _ := o.Values.AsRecord()
	return values[name].Text()
}

// TestConcurrentAnswersGetTheirOwnResults has one agent answer each form in several calls at once, while the form's home
// does not respond. The home cancels or expires some forms meanwhile.
func TestConcurrentAnswersGetTheirOwnResults(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", true), openClusterNode(t, "b", false)
	connectHosts(t, a, b)
	const forms = 24
	for round, absence := range []time.Duration{0, 300 * time.Millisecond, 2200 * time.Millisecond, 3 * time.Second} {
		var asked []view.Asked
		for i := range forms {
			q := parley.Form{To: "b"}
			if i%4 == 3 {
				q.Deadline = a.now().Add(absence/2 + time.Second)
			}
			asked = append(asked, ask(t, a.Host(), q))
		}
		for _, q := range asked {
			awaitMessage(t, b.Host(), q.Form)
		}
		all := make([][]answerResult, forms)
		var answered sync.WaitGroup
		if absence > 0 {
			a.proxy.setMode(stalled)
		}
		for i, q := range asked {
			answered.Go(func() {
				all[i] = answerConcurrently(b.Host(), capabilities.FormID(q.Form), 4, i%8, fmt.Sprint(round, "-", i))
			})
			if i%4 == 2 {
				answered.Go(func() {
					time.Sleep(absence / 2)
					_, _ = a.Host().Cancel(t.Context(), capabilities.FormID(q.Form), "") // an answer may come first
				})
			}
		}
		time.Sleep(absence)
		a.proxy.setMode(forwarding)
		answered.Wait()
		wrong, counts := 0, map[string]int{}
		for i, q := range asked {
			home, err := a.Host().Await(t.Context(), capabilities.FormID(q.Form))
			if err != nil {
				t.Fatal(err)
			}
			awaitSameOutcome(t, q.Form, home.Status, a.Host(), b.Host())
			for _, c := range all[i] {
				counts[string(parley.CodeOf(c.err))+string(c.outcome.Status)]++
				if err := checkAnswerResult(c, b.Host(), home); err != nil {
					wrong++
					t.Errorf("unreachable for %v: form %d, %q: %v", absence, i, c.value, err)
				}
			}
		}
		t.Logf("unreachable for %v: %d of %d calls had a wrong result; %v", absence, wrong, 4*forms, counts)
	}
}

// TestMemberOnAnotherNodeLeaves has a member of a group answer while its node is cut off, and leave meanwhile. The answer
// is refused, and the member that joins again may give another.
func TestMemberOnAnotherNodeLeaves(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	set := func(in bool) {
		t.Helper()
		if _, err := a.Host().SetMember(t.Context(), mailbox.SetMember{Agent: "b", In: in}); err != nil {
			t.Fatal(err)
		}
	}
	set(true)
	asked := ask(t, guest(t, a.Node, "fae"), parley.Form{To: "HOST"})
	awaitMessage(t, b.Host(), asked.Form)
	setMode(disconnected, a, b)
	awaitUnreachable(t, a, b)
	awaitUnreachable(t, b, a)
	if o, err := answerWith(b.Host(), asked.Form, "late"); err != nil || o.Status != view.StatusAnswering {
		t.Fatalf("%+v, %v", o, err)
	}
	set(false)
	setMode(forwarding, a, b)
	eventually.Holds(t, "the answer is refused", func() bool {
		m, err := b.Host().Message(t.Context(), capabilities.FormID(asked.Form))
		return err == nil && strings.Contains(m.Refused, "taken back")
	})
	set(true)
	eventually.Holds(t, "another answer is taken", func() bool {
		_, _ = answerWith(b.Host(), asked.Form, "again") // it is refused until the form's home has the new forward
		m, err := a.Host().Message(t.Context(), capabilities.FormID(asked.Form))
		return err == nil && m.Outcome != nil
	})
	awaitSameOutcome(t, asked.Form, view.StatusAnswered, a.Host(), b.Host())
}
