package actors

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/passkeys"
	"parley/internal/passkeytest"
	"parley/mailbox"
)

// TestGrowthOfListsWithMarks lists forms that ask for a passkey, and those that were signed with one, where there are few and many. What a page
// takes of the processor does not grow with what is there, nor by much with the marks.
func TestGrowthOfListsWithMarks(t *testing.T) {
	many := 500
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		many = 10_000
	}
	few := costOfMarks(t, 100, true)
	large, plain := costOfMarks(t, many, true), costOfMarks(t, many, false)
	for _, list := range []string{"open", "settled"} {
		t.Logf("a page of 50 %s: %v of %d, %v of %d, and %v of %d without marks", list, few[list], 100, large[list], many, plain[list], many)
		if large[list] > 4*few[list]+3*time.Millisecond {
			t.Errorf("a page of %s forms with marks takes %v of 100, and %v of %d", list, few[list], large[list], many)
		}
		if large[list] > 2*plain[list]+3*time.Millisecond {
			t.Errorf("a page of %s forms takes %v with marks, and %v without", list, large[list], plain[list])
		}
	}
}

// costOfMarks returns what a page of open and of settled approvals takes of the processor, with so many of each.
func costOfMarks(t *testing.T, many int, marked bool) map[string]time.Duration {
	t.Helper()
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	var challenges passkeys.Challenges
	SetChallenges(n, challenges.Answer)
	d := passkeytest.NewDevice(t, signedOrigin)
	if _, err := PasskeysOf(n.Host()).Add(t.Context(), d.Added(t, "phone")); err != nil {
		t.Fatal(err)
	}
	if err := n.Host().Agents().SetQuota(t.Context(), fae, map[string]int64{"approvals": 1 << 20, "forms": 1 << 20}, false); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * many {
		p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "pay", Input: fmt.Sprintf(`{"n":%d}`, i), Passkey: marked}})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case i%2 == 0:
		case marked:
			_, err = signCall(t.Context(), n, &challenges, d, t, p.Form, func(*parley.PasskeySignature) {})
		default:
			_, err = n.Host().Answer(t.Context(), capabilities.FormID(p.Form), parley.Answer{Texts: onceText})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	took := map[string]time.Duration{"open": math.MaxInt64, "settled": math.MaxInt64}
	for list, f := range map[string]view.MessageFilter{"open": {Pending: true}, "settled": {All: true, Settled: true, Forms: true}} {
		for range 8 {
			before := cpuTime(t)
			for range 5 {
				in, err := n.Host().Mail().Last(t.Context(), f, 0, 50)
				if err != nil || len(in.Messages) != 50 {
					t.Fatal(len(in.Messages), err)
				}
				if m := in.Messages[0]; m.Passkey != marked || (m.Outcome != nil && m.Outcome.Signed) != (marked && list == "settled") {
					t.Fatalf("the marks of a form of %s: %t, %+v", list, m.Passkey, m.Outcome)
				}
			}
			took[list] = min(took[list], (cpuTime(t)-before)/5)
		}
	}
	return took
}
