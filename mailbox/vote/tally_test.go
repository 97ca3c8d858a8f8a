package vote_test

import (
	"fmt"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox/vote"
)

func id(n int) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID{15: byte(n), 14: byte(n >> 8)}}
}

// TestTallyLaws casts, withdraws and amends in any order. The model is the last vote of each principal on the present
// revision. A vote settles the form exactly when the model says so.
func TestTallyLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			tally    vote.Tally
			standing = map[capabilities.ID]events.VoteCast{} // by principal
			cast     = map[capabilities.ID]bool{}            // answers
			revision = uint64(1)
			next     = 1000
			route    = &events.Route{Need: uint32(rapid.IntRange(0, 4).Draw(t, "need")), NoVeto: rapid.Bool().Draw(t, "no veto")}
			outcome  = rapid.SampledFrom([]events.VoteOutcome{"once", "always", "deny", events.VoteDeclined, events.VoteAnswered})
		)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if len(tally.Standing) != len(standing) {
					t.Fatalf("%d votes stand, and not %d", len(tally.Standing), len(standing))
				}
				for _, v := range tally.Standing {
					if standing[v.Principal] != v {
						t.Fatalf("%v stands, and not %v", v, standing[v.Principal])
					}
				}
				for a := range cast {
					if !tally.Knows(a) {
						t.Fatalf("the vote %s is forgotten", a)
					}
				}
				if tally.Knows(capabilities.ID{}) || tally.Knows(id(next+1)) {
					t.Fatal("a vote is known that was not cast")
				}
			},
			"cast": func(t *rapid.T) {
				by := rapid.IntRange(1, 12).Draw(t, "by")
				next++
				v := events.VoteCast{By: id(by), Principal: id(100 + by/2), Revision: revision, Outcome: outcome.Draw(t, "outcome"), Answer: id(next)}
				left := rapid.IntRange(0, 4).Draw(t, "left")
				before := fmt.Sprint(tally)
				settles := tally.Settles(route, v, left)
				if fmt.Sprint(tally) != before {
					t.Fatal("asking whether a vote settles the form changed the votes")
				}
				standing[v.Principal] = v
				if want := settledBy(standing, route, v, left); settles != want {
					t.Fatalf("%v of %v with %d left settles %v: %v", v.Outcome, standing, left, route, settles)
				}
				tally.Cast(v)
				cast[v.Answer] = true
			},
			"withdraw": func(t *rapid.T) {
				by := id(rapid.IntRange(1, 12).Draw(t, "by"))
				v := tally.Of(by)
				if v == nil {
					if tally.Withdraw(events.VoteWithdrawn{By: by}) {
						t.Fatal("withdrew no vote")
					}
					return
				}
				if tally.Withdraw(events.VoteWithdrawn{By: by, Answer: id(1)}) {
					t.Fatal("withdrew another vote")
				}
				delete(standing, v.Principal)
				if !tally.Withdraw(events.VoteWithdrawn{By: by, Answer: v.Answer}) {
					t.Fatal("kept a vote")
				}
			},
			"amend": func(t *rapid.T) {
				revision++
				tally.Amend(revision)
				if len(tally.Void) != len(standing) {
					t.Fatalf("%d votes are void, and not %d", len(tally.Void), len(standing))
				}
				clear(standing)
			},
		})
	})
}

// settledBy reports whether the last of the votes settles a form.
func settledBy(standing map[capabilities.ID]events.VoteCast, r *events.Route, last events.VoteCast, left int) bool {
	need := max(1, int(r.Need))
	alike := map[events.VoteOutcome]int{}
	most := 0
	for _, v := range standing {
		alike[v.Outcome]++
		if v.Outcome != "deny" && v.Outcome != events.VoteDeclined {
			most = max(most, alike[v.Outcome])
		}
	}
	if last.Outcome == "deny" || last.Outcome == events.VoteDeclined {
		return !r.NoVeto || most+left < need
	}
	return alike[last.Outcome] >= need
}
