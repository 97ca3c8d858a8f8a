package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// BenchmarkAcrossNodes times a form from ask to outcome, asked on one node and answered on another over loopback. The same run
// times it on one node: x-p50 and x-rate compare the two. The answerers follow their inboxes.
func BenchmarkAcrossNodes(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			here := openForPeers(b)
			there := openForPeers(b)
			connect(b, here, there)
			local := newTraffic(b, here, here, callers)
			across := newTraffic(b, here, there, callers)
			b.ResetTimer()
			one := local.run(b, b.N)
			two := across.run(b, b.N)
			b.ReportMetric(float64(two.p50.Microseconds()), "p50-µs")
			b.ReportMetric(float64(one.p50.Microseconds()), "one-node-p50-µs")
			b.ReportMetric(float64(two.p50)/float64(one.p50), "x-p50")
			b.ReportMetric(two.rate, "cycles/s")
			b.ReportMetric(two.rate/one.rate, "x-rate")
		})
	}
}

func openForPeers(b *testing.B) *Node {
	b.Helper()
	n, err := Open(b.Context(), Options{Folder: b.TempDir(), Peers: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return n
}

func connect(b *testing.B, a, c *Node) {
	b.Helper()
	i, err := a.Host().Peers().Invite(b.Context(), NewInvitation{Name: "other"})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Host().Peers().Accept(b.Context(), "other", i.Locator); err != nil {
		b.Fatal(err)
	}
}

// traffic holds pairs of an asker and an answerer.
type traffic struct{ askers, answerers []*Agent }

// newTraffic makes the pairs. Each asker has its answerer under the name "it".
func newTraffic(b *testing.B, asking, answering *Node, pairs int) *traffic {
	b.Helper()
	ctx := b.Context()
	t := &traffic{}
	for i := range pairs {
		name := fmt.Sprintf("%s%d", asking.id.String()[:8]+answering.id.String()[:8], i)
		asker, err := asking.Host().Make(ctx, NewAgent{Kind: events.Host, Name: name + "a"})
		if err != nil {
			b.Fatal(err)
		}
		answerer, err := answering.Host().Make(ctx, NewAgent{Kind: events.Host, Name: name + "b"})
		if err != nil {
			b.Fatal(err)
		}
		if err := giveReference(ctx, asking, answering, asker, name); err != nil {
			b.Fatal(err)
		}
		t.askers, t.answerers = append(t.askers, asker), append(t.answerers, answerer)
	}
	return t
}

// giveReference gives the asker a reference to the answerer under the name "it", by messages of both hosts.
func giveReference(ctx context.Context, asking, answering *Node, asker *Agent, name string) error {
	if asking != answering {
		if _, err := answering.Host().Send(ctx, "other", fmt.Sprintf("@it:%sb", name)); err != nil {
			return err
		}
		if err := adoptLatest(ctx, asking.Host(), name+"b"); err != nil {
			return err
		}
	}
	if _, err := asking.Host().Send(ctx, name+"a", fmt.Sprintf("@it:%sb", name)); err != nil {
		return err
	}
	return adoptLatest(ctx, asker, "it")
}

// adoptLatest binds a name to the reference at the edge "it" of the first message that has one. It waits for the message.
func adoptLatest(ctx context.Context, a *Agent, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for e, err := range a.Mail().Follow(ctx, view.MessageFilter{}, 0) {
		if err != nil {
			return err
		}
		err = a.Adopt(ctx, capabilities.FormNumber(e.Number), "it", name)
		if err == nil {
			return a.Dismiss(ctx, capabilities.FormNumber(e.Number))
		}
		if parley.CodeOf(err) != parley.UnknownName {
			return err
		}
	}
	return errors.New("no message came")
}

type timing struct {
	p50  time.Duration
	rate float64
}

// run makes the given number of cycles by all pairs at once.
func (t *traffic) run(b *testing.B, cycles int) timing {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var answering, asking sync.WaitGroup
	for _, a := range t.answerers {
		answering.Go(func() { answerAll(ctx, b, a) })
	}
	var left atomic.Int64
	left.Store(int64(cycles))
	took := make([][]time.Duration, len(t.askers))
	start := time.Now()
	for i, a := range t.askers {
		asking.Go(func() {
			for left.Add(-1) >= 0 {
				begin := time.Now()
				if err := askOnce(ctx, a); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(begin))
			}
		})
	}
	asking.Wait()
	elapsed := time.Since(start)
	cancel()
	answering.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	if len(all) == 0 {
		b.Fatal("no cycle was made")
	}
	return timing{p50: all[len(all)/2], rate: float64(len(all)) / elapsed.Seconds()}
}

func askOnce(ctx context.Context, a *Agent) error {
	asked, err := a.Ask(ctx, parley.Form{To: "it", Description: "how many?", Fields: []events.Field{{Name: "n", Type: events.Number}}})
	if err != nil {
		return err
	}
	_, err = a.Await(ctx, capabilities.FormID(asked.Form))
	return err
}

// answerAll answers every form of an agent until ctx ends.
func answerAll(ctx context.Context, b *testing.B, a *Agent) {
	for e, err := range a.Mail().Follow(ctx, view.MessageFilter{Pending: true}, 0) {
		if err != nil {
			if ctx.Err() == nil {
				b.Error(err)
			}
			return
		}
		_, err := a.Answer(ctx, capabilities.FormNumber(e.Number), parley.Answer{Values: map[string]capabilities.Value{"n": capabilities.Int(1)}})
		if err != nil && ctx.Err() == nil && parley.CodeOf(err) != parley.AlreadyAnswered {
			b.Error(err)
		}
	}
}
