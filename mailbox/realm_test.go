package mailbox

import (
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// TestANodeIntroducesSoMany and no more, so that others still can.
func TestANodeIntroducesSoMany(t *testing.T) {
	v := newVillage(t)
	v.quick = true
	v.add("host")
	node := func(n int) capabilities.NodeID { return capabilities.NodeID{0: byte(n >> 8), 1: byte(n), 31: 9} }
	for n := range maxIntroduced {
		v.must("host", Hear{Node: node(n), By: node(-1), Stamp: 1 << 60})
	}
	if _, err := v.decide("host", Hear{Node: node(maxIntroduced), By: node(-1)}); parley.CodeOf(err) != parley.TooLarge {
		t.Errorf("one too many: %v", err)
	}
	v.must("host", Hear{Node: node(maxIntroduced), By: node(-2)})
	evs := v.must("host", Hear{Node: node(0), Hints: []string{"nats://own:1"}, Stamp: 1})
	if len(evs) != 1 || evs[0].(*events.NodeMet).Hints[0] != "nats://own:1" {
		t.Errorf("a node's own word did not go before another's: %v", evs)
	}
	v.checkReplay()
}
