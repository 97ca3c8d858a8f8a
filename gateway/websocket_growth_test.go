package gateway

import (
	"math"
	"runtime"
	"sync"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// TestGrowthOfOpeningAWebSocket opens a WebSocket of the host's, among few messages and among many that are done. Its client is sent the
// question that waits, and nothing else is read for it.
func TestGrowthOfOpeningAWebSocket(t *testing.T) {
	var cost [2]uint64
	for i, count := range []int{50, 1500} {
		h := openTestServer(t)
		fae, host := h.guest("fae"), h.node.Host()
		var all sync.WaitGroup
		for range 25 {
			all.Go(func() {
				for range count / 25 {
					if _, err := fae.Send(t.Context(), "HOST", "a note"); err != nil {
						t.Error(err)
					}
					asked, err := fae.Ask(t.Context(), parley.Form{To: "HOST", Description: "May I?", Fields: []events.Field{{Name: "yes", Type: events.Confirm}}})
					if err != nil {
						t.Error(err)
						continue
					}
					yes := map[string]capabilities.Value{"yes": capabilities.String("Yes")}
					if _, err := host.Answer(t.Context(), capabilities.FormID(asked.Form), parley.Answer{Values: yes}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		h.dial("fae").send(`{"type":"ask_request","id":"1","payload":{"prompt":"?"}}`)
		cost[i] = math.MaxUint64
		for range 5 { // the node does other work now and then
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			k := h.dial("host")
			want(t, k.receive(), "ask_request")
			k.disconnect()
			delete(h.clients, "host")
			runtime.ReadMemStats(&after)
			cost[i] = min(cost[i], after.TotalAlloc-before.TotalAlloc)
		}
	}
	t.Logf("%d and %d bytes are allocated", cost[0], cost[1])
	if cost[1] > 2*cost[0]+4096 {
		t.Error("a WebSocket costs more among many messages that are done")
	}
}
