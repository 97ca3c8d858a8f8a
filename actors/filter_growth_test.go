package actors

import (
	"math"
	"sync"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
)

// TestGrowthOfAFilteredList lists the forms, and the settled ones, among few notes and among many. The notes are known by the
// index, and none is read.
func TestGrowthOfAFilteredList(t *testing.T) {
	cost := map[string][2]float64{}
	for i, notes := range []int{200, 2000} {
		n := openNode(t, t.TempDir())
		fae := guest(t, n, "fae")
		for _, answered := range []bool{true, false} {
			asked := ask(t, fae, parley.Form{To: "HOST", Fields: textField("a")})
			if answered {
				if _, err := n.Host().Answer(t.Context(), capabilities.FormID(asked.Form), parley.Answer{Values: text("a", "b")}); err != nil {
					t.Fatal(err)
				}
				if _, err := fae.Await(t.Context(), capabilities.FormID(asked.Form)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range notes / 50 {
					if _, err := fae.Send(t.Context(), "SELF", "a note"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		eventually.Holds(t, "all of it is delivered", func() bool { return isDelivered(t, fae) && isDelivered(t, n.Host()) })
		for name, list := range map[string]struct {
			filter view.MessageFilter
			want   int
		}{
			"forms":   {view.MessageFilter{All: true, Forms: true}, 2},
			"settled": {view.MessageFilter{All: true, Settled: true}, 1},
			"open":    {view.MessageFilter{All: true, Open: true}, 1},
		} {
			each := cost[name]
			each[i] = math.Inf(1)
			for range 10 { // the node does other work now and then
				each[i] = min(each[i], testing.AllocsPerRun(1, func() {
					if in, err := fae.Mail().Last(t.Context(), list.filter, 0, 50); err != nil || len(in.Messages) != list.want {
						t.Fatalf("%s: %+v, %v", name, in.Messages, err)
					}
				}))
			}
			cost[name] = each
		}
	}
	for name, each := range cost {
		t.Logf("%s: %.0f and %.0f allocations", name, each[0], each[1])
		if each[1] > 2*each[0]+50 {
			t.Errorf("a list of what is %s costs more among many notes", name)
		}
	}
}
