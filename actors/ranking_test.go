package actors

import (
	"cmp"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/quota"
)

// rankedAccounts has accounts of a number of agents that the node's host made. Their use is random, by a seed.
func rankedAccounts(t *testing.T, n *Node, count int, seed uint64, now capabilities.Time) (*accounts, []capabilities.ID) {
	t.Helper()
	a, err := newAccounts(n)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, seed))
	ids := make([]capabilities.ID, count)
	for i := range ids {
		ids[i] = n.newID()
		k := &account{by: n.host, kind: events.Guest}
		a.known[ids[i]] = k
		useMore(k, r)
		a.rerank(ids[i], now)
	}
	return a, ids
}

func useMore(k *account, r *rand.Rand) {
	k.use = mailbox.Usage{Amounts: quota.Amounts{quota.Forms: r.Int64N(9000), quota.Daily: r.Int64N(1 << 28), quota.Bytes: r.Int64N(1 << 20)}} // of the first day
}

// TestHeaviestAccountsAreInOrder changes accounts at random, through several days, and compares those that are shown with all.
func TestHeaviestAccountsAreInOrder(t *testing.T) {
	n := openNode(t, t.TempDir())
	now := capabilities.Time(1000)
	a, ids := rankedAccounts(t, n, 50, 1, now)
	r := rand.New(rand.NewPCG(2, 3))
	daily := quota.Daily.String()
	for step := range 2000 {
		id := ids[r.IntN(len(ids))]
		switch r.IntN(8) {
		case 0:
			now += capabilities.Time(r.Int64N(3600_000))
		case 1:
			e := &effort{at: now, rate: a.agents.Quotas[quota.Processor]}
			e.spent = 1e9 * 60
			a.efforts[id] = e
			a.rerank(id, now)
		default:
			useMore(a.known[id], r)
			a.rerank(id, now)
		}
		var all []view.AgentUse
		for _, id := range ids {
			all = append(all, a.useLocked(id, now))
		}
		slices.SortFunc(all, func(x, y view.AgentUse) int {
			return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(y.Used[daily], x.Used[daily]), x.Agent.Compare(y.Agent))
		})
		for i, got := range a.heaviest(heaviestShown, now) {
			if got.Agent != all[i].Agent || got.Share != all[i].Share {
				t.Fatalf("step %d: place %d is %s with %v, want %s with %v", step, i, got.Agent, got.Share, all[i].Agent, all[i].Share)
			}
		}
	}
}

// TestGrowthOfStatus shows the heaviest accounts among few and among many. It looks at no more of them, also after midnight.
func TestGrowthOfStatus(t *testing.T) {
	n := openNode(t, t.TempDir())
	now := capabilities.Time(1000)
	for _, later := range []capabilities.Time{now, now + 86_400_000} {
		var cost [2]float64
		for i, count := range []int{200, 20_000} {
			a, _ := rankedAccounts(t, n, count, 1, now)
			cost[i] = bytesOf(func() { a.heaviest(heaviestShown, later) })
		}
		t.Logf("%.0f and %.0f bytes are allocated", cost[0], cost[1])
		if cost[1] > 2*cost[0]+maxSinks*512 { // those that are out of place after midnight
			t.Error("the cost grows with the agents")
		}
	}
}

// bytesOf returns the bytes that a function allocates, the least of three times.
func bytesOf(do func()) float64 {
	least := 0.0
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		if n := float64(after.TotalAlloc - before.TotalAlloc); least == 0 || n < least {
			least = n
		}
	}
	return least
}
