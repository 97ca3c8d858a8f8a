package actors

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/eventually"
)

// TestBacklogArrivesInOrderOnce sends messages to a node that is closed and then opens. Both nodes are restarted in
// the middle of their delivery.
func TestBacklogArrivesInOrderOnce(t *testing.T) {
	t.Parallel()
	messages := 2_000
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		messages = 100_000
	}
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	closeNode(t, b.Node)
	sendMany(t, a.Host(), "b", messages)
	b.open(t)
	some := messages / 10
	eventually.Holds(t, "some have arrived", func() bool { return countMail(t, b.Host()) > some })
	closeNode(t, a.Node)
	a.open(t)
	some = countMail(t, b.Host()) + 1
	closeNode(t, b.Node)
	b.open(t)
	eventually.Holds(t, "more have arrived", func() bool { return countMail(t, b.Host()) >= min(some, messages) })
	eventually.Within(t, 5*time.Minute, "all have arrived", func() bool { return countMail(t, b.Host()) >= messages })
	checkBacklog(t, a.Host(), b.Host(), messages)
	eventually.Holds(t, "all acks are recorded", func() bool { return hasDelivered(t, a.Host()) })
}

// BenchmarkBacklog times how long messages for a node that was closed take to arrive when it opens.
func BenchmarkBacklog(b *testing.B) {
	const messages = 100_000
	for b.Loop() {
		b.StopTimer()
		sender, receiver := openClusterNode(b, "sender", false), openClusterNode(b, "receiver", true)
		connectHosts(b, receiver, sender)
		closeNode(b, receiver.Node)
		began := time.Now()
		sendMany(b, sender.Host(), "receiver", messages)
		b.ReportMetric(time.Since(began).Seconds(), "s-sending")
		b.ReportMetric(heapMiB(), "MiB-waiting")
		b.StartTimer()
		receiver.open(b)
		eventually.Within(b, 10*time.Minute, "all have arrived", func() bool { return countMail(b, receiver.Host()) >= messages })
		b.StopTimer()
		b.ReportMetric(heapMiB(), "MiB-after")
		checkBacklog(b, sender.Host(), receiver.Host(), messages)
		closeNode(b, receiver.Node)
		closeNode(b, sender.Node)
		b.StartTimer()
	}
	b.ReportMetric(messages*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// heapMiB returns the size of the heap's live objects.
func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// sendMany sends messages by many callers at once.
func sendMany(tb testing.TB, from *Agent, to string, messages int) {
	tb.Helper()
	var left atomic.Int64
	left.Store(int64(messages))
	var callers sync.WaitGroup
	for caller := range 128 {
		callers.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := from.Send(tb.Context(), to, fmt.Sprint("from caller ", caller)); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
}

// countMail returns the number of messages in a mailbox.
func countMail(tb testing.TB, a *Agent) int {
	tb.Helper()
	n, err := inspect(tb.Context(), a, func(b *mailboxActor) (int, error) { return int(b.state.Mail.Index.Len()), nil })
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// checkBacklog checks that all messages from one agent have arrived at the other, in order.
func checkBacklog(tb testing.TB, from, to *Agent, messages int) {
	tb.Helper()
	list := func(a *Agent) []string {
		ids, err := inspect(tb.Context(), a, func(b *mailboxActor) (ids []string, err error) {
			for m, err := range b.old.list(b.old.all(0), readAtOnce) {
				if err != nil {
					return nil, err
				}
				ids = append(ids, m.MessageID.String())
			}
			return ids, nil
		})
		if err != nil {
			tb.Fatal(err)
		}
		return ids
	}
	if sent, got := list(from), list(to); len(sent) != messages || !slices.Equal(sent, got) {
		tb.Errorf("%d were sent and %d have arrived, or in another order", len(sent), len(got))
	}
}
