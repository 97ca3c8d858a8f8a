package mailbox_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestNamesByPage lists names by pages of any size. Together they are those of one list, and each is sorted.
func TestNamesByPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		v.Add("host")
		s := v.States["host"]
		bind := func(name string, value capabilities.Value) {
			if err := s.Apply(events.Recorded{At: v.Now, Event: &events.NameBound{Name: name, Value: value}}); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]bool{}
		for i := range rapid.IntRange(0, 40).Draw(t, "names") {
			name := rapid.StringMatching(`[0-9A-Za-z~é]{1,3}`).Draw(t, "name")
			if rapid.Bool().Draw(t, "agent") {
				bind(name, capabilities.Reference(capabilities.Ref{Target: v.NewID(), Kind: capabilities.KindAgent}))
			} else {
				bind(name, capabilities.Int(int64(i)))
			}
			want[name] = true
			if rapid.IntRange(0, 4).Draw(t, "frees") == 0 {
				if err := s.Apply(events.Recorded{At: v.Now, Event: &events.NameUnbound{Name: name}}); err != nil {
					t.Fatal(err)
				}
				delete(want, name)
			}
		}
		all := []string{capabilities.NameHost, capabilities.NameSelf}
		for name := range want {
			all = append(all, name)
		}
		slices.Sort(all[2:])
		for _, most := range []int{0, 1, 2, 7} {
			var got []string
			for after := ""; ; after = got[len(got)-1] {
				page, err := s.Namespace().List("", after, most)
				if err != nil {
					t.Fatal(err)
				}
				if most > 0 && len(page) > most {
					t.Fatalf("a page of %d has %q", most, page)
				}
				got = append(got, page...)
				if len(page) == 0 {
					break
				}
			}
			if !slices.Equal(got, all) {
				t.Fatalf("by %d: %q, want %q", most, got, all)
			}
		}
	})
}

// TestGrowthOfNames lists a page of names among few and among many, of agents and of values.
func TestGrowthOfNames(t *testing.T) {
	const most = 50
	var cost [2]float64
	for i, count := range []int{100, 20_000} {
		s := mailbox.New(mailboxtest.New(t).NewID())
		for n := range count {
			value := capabilities.Int(int64(n))
			if n%2 == 0 {
				value = capabilities.Reference(capabilities.Ref{Target: capabilities.ID{ULID: [16]byte{byte(n), byte(n >> 8), 1}, Node: s.ID.Node}, Kind: capabilities.KindAgent})
			}
			if err := s.Apply(events.Recorded{At: 1, Event: &events.NameBound{Name: fmt.Sprintf("n%06d", n), Value: value}}); err != nil && n > 0 {
				t.Fatal(err)
			}
		}
		after := fmt.Sprintf("n%06d", count/2)
		cost[i] = testing.AllocsPerRun(10, func() {
			names, err := s.Namespace().List("", after, most)
			if err != nil || len(names) != min(most, count-count/2-1) {
				t.Fatal(len(names), err)
			}
			_ = s.Namespace().Revoked(names, 1)
		})
	}
	t.Logf("%.0f and %.0f allocations", cost[0], cost[1])
	if cost[1] > 1.5*cost[0]+5 {
		t.Error("a page of names costs more among many")
	}
}
