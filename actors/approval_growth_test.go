package actors

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"

	"parley"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestGrowthOfOpenApprovals has one agent ask for many approvals. Each costs what the first ones cost, in bytes of the log and
// in allocations. What is held of those that are open is little, and is given up with their end.
func TestGrowthOfOpenApprovals(t *testing.T) {
	const few, some, most = 100, 500, 30e6 / 10_000 // some are measured; most is the bytes of one
	many := 3000
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		many = 10_000
	}
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	var open []parley.Decision
	ask := func(until int) {
		t.Helper()
		for len(open) < until {
			input := fmt.Sprintf(`{"command":"echo %d; sleep 1; git push origin branch-%d"}`, len(open), len(open))
			p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Input: input, Folder: "/home/fae/shop"}})
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, parley.Decision{Form: p.Form, Digest: digestOf(t, fae, p.Form), Decision: mailbox.Deny})
		}
	}
	size := func() (bytes uint64) {
		eventually.Holds(t, "the log says its size", func() bool { // it may take long to answer on a busy machine
			bytes = n.State().Journal.Bytes
			return bytes > 0
		})
		return bytes
	}
	cost := func(do func()) (logged, allocated float64) {
		var before, after runtime.MemStats
		from := size()
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return float64(size()-from) / some, float64(after.TotalAlloc-before.TotalAlloc) / some
	}
	live := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	ask(few)
	firstLogged, firstAllocated := cost(func() { ask(few + some) })
	ask(many - some)
	lastLogged, lastAllocated := cost(func() { ask(many) })
	s, err := fae.Status(t.Context())
	if err != nil || s.Calls() != many || len(s.Pending) != maxShownCalls || s.Pending[maxShownCalls-1].Form != open[many-1].Form {
		t.Errorf("%d calls wait, and %d are shown; %v", s.Calls(), len(s.Pending), err)
	}
	eventually.Holds(t, "the host has all", func() bool {
		c, err := n.Host().Mail().Counts(t.Context())
		return err == nil && c.Pending == many
	})
	held := live()
	for some := range slices.Chunk(open, 100) {
		for _, d := range n.Host().Decide(t.Context(), "", some) {
			if d.Err != nil {
				t.Fatal(d.Err)
			}
		}
	}
	eventually.Holds(t, "the host has none", func() bool {
		c, err := n.Host().Mail().Counts(t.Context())
		return err == nil && c.Pending == 0
	})
	each := (held - live()) / float64(many)
	t.Logf("an approval takes %.0f bytes of log and %.0f allocated where %d are open, %.0f and %.0f where %d are; an open one holds %.0f bytes",
		firstLogged, firstAllocated, few, lastLogged, lastAllocated, many, each)
	if lastLogged > 1.5*firstLogged || lastAllocated > 2*firstAllocated { // a snapshot may fall into either
		t.Error("an approval costs more where many are open")
	}
	if each > most {
		t.Errorf("an open approval holds %.0f bytes, over %.0f", each, float64(most))
	}
}
