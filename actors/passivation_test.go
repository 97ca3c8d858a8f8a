package actors

import (
	"fmt"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/internal/eventually"
)

// awake starts the actors of so many mailboxes, which have no log.
func awake(tb testing.TB, n *Node, count int) []*registration {
	tb.Helper()
	all := make([]*registration, count)
	n.registry.mu.Lock()
	defer n.registry.mu.Unlock()
	for i := range all {
		all[i] = n.registry.registration(n.newID())
	}
	return all
}

func TestPassivationSparesUsedMailboxes(t *testing.T) {
	n := openWith(t, Options{Folder: t.TempDir(), Idle: time.Hour})
	all := awake(t, n, 100)
	before := time.Now()
	for _, s := range all[:10] {
		s.used.Store(before.Add(time.Minute).UnixNano())
	}
	all[10].queued.Add(1)
	n.registry.returnAcks(all[11], []ack{{}})
	n.registry.passivate(before)
	for i, s := range all {
		if got := n.registry.isAwake(s.id); got != (i < 12) {
			t.Errorf("mailbox %d is awake: %t", i, got)
		}
	}
	all[10].queued.Add(-1)
	all[11].acks.take(nil, 1)
	n.registry.passivate(before)
	n.registry.passivate(before.Add(time.Hour))
	if len(n.registry.idle) != len(n.registry.registrations) || n.registry.isAwake(all[0].id) || n.registry.isAwake(all[11].id) {
		t.Errorf("%d of %d mailboxes are looked at", len(n.registry.idle), len(n.registry.registrations))
	}
}

// TestHostIsPassivated passivates the host's mailbox. What the node keeps of it works before it is awake again.
func TestHostIsPassivated(t *testing.T) {
	n := openWith(t, Options{Folder: t.TempDir(), Idle: time.Millisecond})
	g := guest(t, n, "g")
	if err := n.Host().Agents().SetQuota(t.Context(), g, map[string]int64{"names": 0}, false); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the host is passivated", func() bool { return !n.registry.isAwake(n.host) })
	if quotas := n.accounts.limits(g.id, n.now()); quotas == nil || quotas.Quotas.Named()["names"] != 0 {
		t.Errorf("the quotas of the guest are %v", quotas)
	}
	asked := ask(t, g, parley.Form{Fields: textField("a")})
	if _, err := n.Host().Answer(t.Context(), capabilities.FormID(asked.Form), parley.Answer{Values: text("a", "b")}); err != nil {
		t.Error(err)
	}
}

// BenchmarkTick measures a look of the scheduler at mailboxes in memory of which none is due. x-100 is the time over that
// of 100 mailboxes.
func BenchmarkTick(b *testing.B) {
	var few float64
	for _, count := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("mailboxes=%d", count), func(b *testing.B) {
			n := openWith(b, Options{Folder: b.TempDir(), Idle: time.Hour})
			awake(b, n, count)
			b.ResetTimer()
			for b.Loop() {
				n.registry.recordAllAcks()
				n.registry.passivate(time.Now().Add(-n.o.Idle))
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if count == 100 {
				few = each
			}
			b.ReportMetric(each/few, "x-100")
		})
	}
}
