package actors

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// giveMandate has an agent ask about a plan, and its host allow that with a mandate.
func giveMandate(n *Node, a *Agent, terms parley.MandateTerms) (capabilities.ID, error) {
	ctx := n.life
	asked, err := a.Approve(ctx, mailbox.RequestApproval{Permission: parley.Permission{Tool: "plan", Input: `{}`}})
	if err != nil {
		return capabilities.ID{}, err
	}
	if _, err := n.Host().Answer(ctx, capabilities.FormID(asked.Form), parley.Answer{Mandate: &terms, Texts: []events.FieldText{{Name: "decision", Text: mailbox.Once}}}); err != nil {
		return capabilities.ID{}, err
	}
	all, err := a.Rules().Mandates(ctx, true)
	if err == nil && all[len(all)-1].Form != asked.Form {
		err = fmt.Errorf("the mandate of %s is not there: %+v", asked.Form, all)
	}
	if err != nil {
		return capabilities.ID{}, err
	}
	return all[len(all)-1].Mandate, nil
}

// pay returns a call of the tool that the mandates of these tests are for.
func pay(key, amount string) mailbox.RequestApproval {
	return mailbox.RequestApproval{Permission: parley.Permission{Tool: "pay", Input: `{"amount":` + amount + `}`}, Key: key}
}

func payTerms(calls uint32, most string) parley.MandateTerms {
	return parley.MandateTerms{Rules: []parley.MandateRule{{Tool: "pay"}}, Calls: calls, Sums: []parley.MandateSum{{Member: "amount", Most: most}}}
}

// TestLastUseIsOne makes many calls at once where few are left.
func TestLastUseIsOne(t *testing.T) {
	n := openNode(t, t.TempDir())
	SetRisk(n, func(*parley.Permission) mailbox.Risk { return mailbox.Risk{} })
	fae := guest(t, n, "fae")
	id, err := giveMandate(n, fae, payTerms(3, "5"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var allowed atomic.Int32
	for i := range 24 {
		all.Go(func() {
			p, err := fae.Approve(t.Context(), pay(fmt.Sprint(i), "2"))
			if err != nil {
				t.Error(err)
			}
			if p.Allowed && p.Mandate == id {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	m, calls, err := fae.Rules().Mandate(t.Context(), id, 10)
	if allowed.Load() != 2 || err != nil || m.Used != 2 || m.Sums[0].Left != "1" || len(calls) != 2 || string(calls[0].Input) != `{"amount":2}` || calls[1].Amounts[0] != "2" {
		t.Errorf("%d calls were allowed: %+v, %+v, %v", allowed.Load(), m, calls, err)
	}
}

// TestMandateNeedsToKnowTheRisk makes a call of which nobody can say whether it is of high risk.
func TestMandateNeedsToKnowTheRisk(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	if _, err := giveMandate(n, fae, payTerms(3, "5")); err != nil {
		t.Fatal(err)
	}
	if p, err := fae.Approve(t.Context(), pay("", "1")); err != nil || p.Decided {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestMandateEndsForAllThatComesLater ends a mandate while calls are made, and makes more once that is acknowledged, and in another life.
func TestMandateEndsForAllThatComesLater(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	SetRisk(n, func(*parley.Permission) mailbox.Risk { return mailbox.Risk{} })
	fae := guest(t, n, "fae")
	id, err := giveMandate(n, fae, payTerms(1000, "1000"))
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for k := range 100 {
				late := ended.Load()
				if p, err := fae.Approve(t.Context(), pay(fmt.Sprint(w, "-", k), "1")); err != nil || late && p.Decided {
					t.Errorf("after the end (%v): %+v, %v", late, p, err)
					return
				}
				if late {
					return
				}
			}
		})
	}
	if err := n.Host().Rules().EndMandate(t.Context(), fae, id); err != nil {
		t.Fatal(err)
	}
	ended.Store(true)
	all.Wait()
	if err := fae.Rules().EndMandate(t.Context(), fae, id); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("whom it was given to ends it: %v", err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, folder)
	SetRisk(n, func(*parley.Permission) mailbox.Risk { return mailbox.Risk{} })
	if fae, err = n.ActAs(t.Context(), "fae"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"0-0", "1-0", "new"} { // also one that may have been charged before the end
		if p, err := fae.Approve(t.Context(), pay(key, "1")); err != nil || p.Decided {
			t.Errorf("%s in another life: %+v, %v", key, p, err)
		}
	}
	m, _, err := fae.Rules().Mandate(t.Context(), id, 1)
	if err != nil || m.End != parley.MandateRevoked {
		t.Errorf("%+v, %v", m, err)
	}
	if _, _, err := fae.Rules().Mandate(t.Context(), fae.id, 1); parley.CodeOf(err) != parley.NotPermitted || !strings.Contains(err.Error(), "has no mandate") {
		t.Error(err)
	}
}
