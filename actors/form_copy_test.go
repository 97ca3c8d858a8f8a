package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
)

// commitFaults fails commits of a journal. Some are not stored, and the result of others is unknown for a while.
type commitFaults struct {
	enabled atomic.Bool
	stored  atomic.Bool // the commit that failed last is stored
	failed  atomic.Int64
}

func (d *commitFaults) step(step string) error {
	if !d.enabled.Load() {
		return nil
	}
	errInjected := errors.New("no answer, for the test")
	switch step {
	case "before publish":
		if rand.IntN(20) == 0 {
			d.failed.Add(1)
			return errInjected
		}
	case "after publish":
		if rand.IntN(20) == 0 {
			d.failed.Add(1)
			d.stored.Store(true)
			return errInjected
		}
	case "before settle", "before reopen":
		if d.stored.Swap(false) || step == "before reopen" && rand.IntN(2) == 0 {
			return errInjected
		}
	}
	return nil
}

// TestCopyShowsOnlyDurableOutcomes asks and answers forms while commits of their home fail. The home has every outcome that
// a copy shows. The copies are on the home's node and on another.
func TestCopyShowsOnlyDurableOutcomes(t *testing.T) {
	t.Parallel()
	forms := 40
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		forms = 600
	}
	var d commitFaults
	a := &clusterNode{options: Options{Folder: t.TempDir(), Name: "a", Failpoint: d.step}}
	a.open(t)
	b := openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	fae := guest(t, a.Node, "fae")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	d.enabled.Store(true)
	retry := func(do func() error) error {
		var err error
		eventually.Holds(t, "the journal accepts it", func() bool {
			err = do()
			return parley.CodeOf(err) != parley.ReadOnly
		})
		return err
	}
	check := func(home, copied *Agent, form capabilities.ID) {
		var o view.Outcome
		err := retry(func() (err error) {
			o, err = copied.Await(ctx, capabilities.FormID(form))
			return err
		})
		if err != nil {
			t.Errorf("form %s: %v", form, err)
			return
		}
		var e view.Message
		err = retry(func() (err error) {
			e, err = home.Message(ctx, capabilities.FormID(form))
			return err
		})
		if err != nil || e.Outcome == nil || e.Outcome.Status != o.Status || e.Outcome.By != o.By || e.Outcome.At != o.At {
			t.Errorf("the copy shows %s at %s, and the home %v, %v", o.Status, o.At, e.Outcome, err)
		}
	}
	var work sync.WaitGroup
	for i := range forms {
		asker, to, holder := a.Host(), "b", b.Host()
		if i%3 == 0 {
			asker, to, holder = fae, "HOST", a.Host()
		}
		var asked view.Asked
		key := fmt.Sprint("k", i)
		if err := retry(func() (err error) {
			asked, err = asker.Ask(ctx, parley.Form{To: to, Description: "d", Fields: textField("a"), Key: key})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		work.Go(func() {
			awaitMessage(t, holder, asked.Form)
			var answers sync.WaitGroup
			for k := range 2 {
				answers.Go(func() {
					err := retry(func() error {
						_, err := holder.Answer(ctx, capabilities.FormID(asked.Form), parley.Answer{Values: text("a", fmt.Sprint(i, k))})
						return err
					})
					if err != nil && !isSettledCode(parley.CodeOf(err)) && parley.CodeOf(err) != parley.AnswerPending {
						t.Error(err)
					}
				})
			}
			check(asker, holder, asked.Form)
			answers.Wait()
		})
		if i%10 == 9 {
			work.Wait()
		}
	}
	work.Wait()
	d.enabled.Store(false)
	eventually.Holds(t, "the journal works", func() bool { return a.journal.Err() == nil })
	t.Logf("%d commits failed", d.failed.Load())
}
