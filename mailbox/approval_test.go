package mailbox_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestEachOfSeveralEqualsOne compares SettleEach with the same decisions one after the other: it makes the same events and
// refuses the same.
func TestEachOfSeveralEqualsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		together, alone := mailboxtest.New(t), mailboxtest.New(t)
		var several [2][]mailbox.SettleForm
		n := rapid.IntRange(1, 5).Draw(t, "forms")
		which := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID[int]).Draw(t, "decided")
		decisions := rapid.SliceOfN(rapid.SampledFrom([]string{mailbox.Deny, mailbox.Once, mailbox.Always, mailbox.Never}), n, n).Draw(t, "decisions")
		ended := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "ended")
		for side, v := range []*mailboxtest.Harness{together, alone} {
			v.Add("host")
			v.Add("fae")
			for i := range n {
				v.Must("fae", mailbox.RequestApproval{Tool: "shell", Input: fmt.Sprint(i), Folder: "/srv"})
			}
			v.Deliver(false)
			for _, i := range which {
				c, _, err := v.States["host"].DraftAnswer(mailbox.Reply{
					Form: capabilities.FormNumber(uint64(i)), Texts: []events.FieldText{{Name: "decision", Text: decisions[i]}},
				}, v.Now, v.IDsOf("host"))
				if err != nil {
					t.Fatal(err)
				}
				several[side] = append(several[side], c)
			}
			for i := range n {
				if ended[i] {
					v.Must("fae", mailbox.CancelForm{Form: capabilities.FormNumber(uint64(i))})
				}
			}
		}
		evs, refused := together.States["fae"].SettleEach(several[0], together.Now, together.IDsOf("fae"))
		together.Apply("fae", evs...)
		var want []string
		for i, c := range several[1] {
			made, err := alone.Decide("fae", c)
			if parley.CodeOf(err) != parley.CodeOf(refused[i]) {
				t.Fatalf("decision %d: together %v, alone %v", i, refused[i], err)
			}
			for _, e := range made {
				want = append(want, events.Name(e))
			}
		}
		var got []string
		for _, e := range evs {
			got = append(got, events.Name(e))
		}
		if !slices.Equal(got, want) || together.Snapshot("fae") != alone.Snapshot("fae") {
			t.Fatalf("together %v, alone %v", got, want)
		}
	})
}
