package right

import (
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
)

func id(n int) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID{15: byte(n), 14: byte(n >> 8)}}
}

func granted(n, parent, form int, uses uint32, outcomes ...string) *events.AnswerGranted {
	e := &events.AnswerGranted{
		Grant:    capabilities.Grant{ID: id(n), Message: id(form), Facet: capabilities.Facet{Uses: uses}},
		Outcomes: outcomes, Digest: []byte{byte(n)},
	}
	if parent != 0 {
		e.Grant.Parent = id(parent)
	}
	return e
}

// TestRightsNeverGrow derives rights at random, uses and revokes them, with each use doubled. A right is used by all below
// it as often as it permits, never for an outcome that an ancestor lacks, and never after an ancestor was revoked.
func TestRightsNeverGrow(t *testing.T) {
	all := []string{"always", "deny", "never", "once"}
	rapid.Check(t, func(t *rapid.T) {
		var l Ledger
		parent, made, now := map[int]int{}, 0, capabilities.Time(10)
		used, revoked := map[int]uint32{}, map[int]bool{}
		above := func(n int) (chain []int) {
			for ; n != 0; n = parent[n] {
				chain = append(chain, n)
			}
			return chain
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1: // derive
				from := rapid.IntRange(0, made).Draw(t, "from")
				e := granted(made+1, from, 1, uint32(rapid.IntRange(0, 3).Draw(t, "uses")), rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID[string]).Draw(t, "outcomes")...)
				e.Grant.Facet.Until = capabilities.Time(rapid.IntRange(0, 60).Draw(t, "until"))
				if l.Narrow(e, now) == nil {
					made++
					parent[made] = from
					l.Set(e)
				}
			case 2: // revoke
				if made > 0 {
					n := rapid.IntRange(1, made).Draw(t, "revoked")
					l.Revoke(id(n), now)
					revoked[n] = true
				}
			case 3:
				now += capabilities.Time(rapid.IntRange(0, 9).Draw(t, "pass"))
			case 4: // use, twice
				if made == 0 {
					continue
				}
				n, outcome := rapid.IntRange(1, made).Draw(t, "used"), rapid.SampledFrom(all).Draw(t, "outcome")
				r, err := l.Check(id(n), []byte{byte(n)})
				if err != nil {
					t.Fatal(err)
				}
				evs, err := l.Use(r, outcome, outcome, now)
				if err != nil {
					continue
				}
				for _, a := range above(n) {
					up := l.byID[id(a)]
					if revoked[a] || !up.May(outcome) || up.Grant.Facet.Until != 0 && now >= up.Grant.Facet.Until {
						t.Fatalf("right %d was used for %s at %d, against %+v (revoked: %v)", n, outcome, now, up, revoked[a])
					}
					if used[a] += uint32(min(len(evs), 1)); up.Grant.Facet.Uses != 0 && used[a] > up.Grant.Facet.Uses {
						t.Fatalf("right %d was used %d times of %d", a, used[a], up.Grant.Facet.Uses)
					}
				}
				for _, e := range evs {
					l.Set(e.(*events.AnswerGranted))
				}
				up := l.byID[id(n)]
				if len(evs) > 0 {
					l.Count(id(1))
				}
				if again, err := l.Use(up, outcome, outcome, now); err != nil || len(again) > 0 {
					t.Fatalf("the same use again: %v, %v", again, err)
				}
				if up.Grant.Facet.Uses != 0 && up.Used >= up.Grant.Facet.Uses {
					other := all[(slices.Index(all, outcome)+1)%len(all)]
					if again, err := l.Use(up, other, other, now); err == nil {
						t.Fatalf("a spent right changed its mind: %v", again)
					}
				}
			}
		}
	})
}

func TestSecretIsOfOneRight(t *testing.T) {
	var l Ledger
	l.Set(granted(1, 0, 1, 1, "deny"))
	l.Set(granted(2, 0, 1, 1, "deny", "once"))
	if _, err := l.Check(id(2), []byte{1}); parley.CodeOf(err) != parley.Unauthenticated {
		t.Fatalf("the secret of another right: %v", err)
	}
	if _, err := l.Check(id(3), nil); parley.CodeOf(err) != parley.Unauthenticated {
		t.Fatalf("no right: %v", err)
	}
}

func TestRightDerivesWithinItsQuestion(t *testing.T) {
	var l Ledger
	l.Set(granted(1, 0, 1, 0, "deny"))
	for _, e := range []*events.AnswerGranted{granted(2, 1, 2, 0, "deny"), granted(2, 1, 1, 0, "once"), granted(2, 9, 1, 0, "deny")} {
		if err := l.Narrow(e, 1); parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("%+v: %v", e, err)
		}
	}
	amended := granted(2, 1, 1, 0, "deny")
	amended.Revision = 2
	if err := l.Narrow(amended, 1); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("of an amended question: %v", err)
	}
}

// TestShareBoundsOneBearer has the bearer of a right derive all it can, from the right and from what derives from it.
func TestShareBoundsOneBearer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Ledger
		l.Set(granted(1, 0, 1, 0, "deny"))
		l.Set(granted(2, 0, 1, 0, "deny"))
		derive := func(n, from int) error {
			e := granted(n, from, 1, 0)
			err := l.Narrow(e, 1)
			if err == nil {
				l.Set(e)
			}
			return err
		}
		live := []int{1}
		for n := 3; len(live) <= MaxShare; n++ {
			if err := derive(n, rapid.SampledFrom(live).Draw(t, "from")); err != nil {
				t.Fatalf("right %d of the share: %v", len(live), err)
			}
			live = append(live, n)
		}
		for _, from := range live {
			if err := derive(99, from); parley.CodeOf(err) != parley.QuotaExceeded || parley.AsError(err).Hint == "" {
				t.Fatalf("beyond the share, from %d: %v", from, err)
			}
		}
		if err := l.Room(id(1)); err != nil {
			t.Fatalf("to the form's own agent: %v", err)
		}
		if err := derive(98, 2); err != nil {
			t.Fatalf("to another bearer: %v", err)
		}
		l.Revoke(id(live[len(live)-1]), 1)
		if err := derive(99, 1); err != nil {
			t.Fatalf("after one was revoked: %v", err)
		}
	})
}

func TestLedgerIsBounded(t *testing.T) {
	var l Ledger
	for n := 1; n <= maxOver+10; n++ {
		l.Set(granted(n, 0, n%4*8000+n, 1, "deny"))
		if n%4 != 0 {
			l.Revoke(id(n), 1) // the form stays open
		} else {
			l.End(id(n))
		}
	}
	if len(l.rights) != maxOver || len(l.byID) != maxOver {
		t.Fatalf("%d rights are kept, %d by ID", len(l.rights), len(l.byID))
	}
	if _, err := l.Get(id(10)); err == nil {
		t.Error("the oldest right was kept")
	}
	for n := range MaxForm {
		l.Set(granted(5000+n, 0, 9000, 1, "deny"))
	}
	if err := l.Room(id(9000)); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Errorf("another right of the form: %v", err)
	}
	if err := l.Room(id(9001)); err != nil {
		t.Error(err)
	}
}
