package actors

import (
	"fmt"
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

// TestGrowthOfUnread lists what is unread, and what is open, where nothing is, among few messages and among many.
func TestGrowthOfUnread(t *testing.T) {
	var cost [2]float64
	for i, count := range []int{100, 6000} {
		n := openNode(t, t.TempDir())
		fae := guest(t, n, "fae")
		for k := range count {
			if _, err := fae.Send(t.Context(), "HOST", fmt.Sprint("message ", k)); err != nil {
				t.Fatal(err)
			}
		}
		eventually.Holds(t, "all have arrived and are read", func() bool {
			left, err := n.Host().Mail().MarkRead(t.Context(), nil, false)
			if err != nil {
				t.Fatal(err)
			}
			c, err := n.Host().Mail().Counts(t.Context())
			return err == nil && left == 0 && c.All == count
		})
		addToIndex(t, n)
		cost[i] = bytesOf(func() {
			for _, f := range []view.MessageFilter{{Unread: true}, {All: true, Open: true}} {
				in, err := n.Host().Mail().Inbox(t.Context(), f)
				if err != nil || len(in.Messages) != 0 {
					t.Errorf("%+v: %d, %v", f, len(in.Messages), err)
				}
			}
		})
	}
	t.Logf("%.0f and %.0f bytes are allocated", cost[0], cost[1])
	if cost[1] > 2*cost[0]+4096 {
		t.Error("a listing of nothing costs more among many messages")
	}
}
