package actors

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/eventually"
)

// TestWaitersGetOutcomeOfUnknownCommit stores the commit of an answer and loses its acknowledgement. Calls that wait at the
// form's home and at a copy get the outcome once the journal has found the commit.
func TestWaitersGetOutcomeOfUnknownCommit(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	n := openWith(t, Options{Folder: t.TempDir(), Idle: time.Nanosecond, Failpoint: func(step string) error {
		if broken.Load() && (step == "after publish" || step == "before settle" || step == "before reopen") {
			return errors.New("no answer, for the test")
		}
		return nil
	}})
	fae := guest(t, n, "fae")
	asked := ask(t, fae, parley.Form{To: "HOST"})
	awaitMessage(t, n.Host(), asked.Form)
	eventually.Holds(t, "the form is delivered", func() bool { return hasDelivered(t, fae) })
	broken.Store(true)
	if _, err := answerWith(n.Host(), asked.Form, "unknown"); parley.CodeOf(err) != parley.ReadOnly {
		t.Fatalf("an answer without an acknowledgement: %v", err)
	}
	awaited := []pendingAwait{startAwait(fae, asked.Form), startAwait(n.Host(), asked.Form)}
	eventually.Holds(t, "both wait", func() bool {
		return n.ended.count.Load() == 2
	})
	broken.Store(false)
	for _, a := range awaited {
		if r := <-a; r.err != nil || fieldText(r.value, "a") != "unknown" {
			t.Errorf("awaited: %+v", r)
		}
	}
}
