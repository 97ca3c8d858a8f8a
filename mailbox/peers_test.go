package mailbox_test

import (
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestIntroducedPeerIsNoNearerThanIntroducer introduces and updates nodes. Each is dialed in no nearer network than its
// introducer. Those whose network is unknown are unchanged.
func TestIntroducedPeerIsNoNearerThanIntroducer(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	node := func(n byte) capabilities.NodeID { return capabilities.NodeOf([32]byte{0: n, 31: 9}) }
	met := func(n byte, network events.Network) {
		v.Apply("host", &events.NodeMet{Node: node(n), Host: capabilities.ID{Node: node(n)}, Network: network})
	}
	met(1, events.PublicNetwork)
	met(2, events.PrivateNetwork)
	met(3, events.AnyNetwork)
	for by, network := range map[byte]events.Network{1: events.PublicNetwork, 2: events.PrivateNetwork, 3: events.AnyNetwork} {
		v.Must("host", mailbox.UpdatePeer{Node: node(10 * by), By: node(by)})
		v.Must("host", mailbox.UpdatePeer{Node: node(10*by + 1), By: node(10 * by)})
		v.Must("host", mailbox.UpdatePeer{Node: node(10*by + 1), Hints: []string{"nats://127.0.0.1:1"}, Stamp: 5})
		for _, a := range v.States["host"].Peers.All() {
			if (a.Node == node(10*by) || a.Node == node(10*by+1)) && (a.Network != network || a.Way != node(by)) {
				t.Errorf("by %d: %+v", by, a)
			}
		}
	}
	v.Must("host", mailbox.UpdatePeer{Node: node(99), By: node(98)}) // by an unknown node
	if all := v.States["host"].Peers.All(); all[len(all)-1].Network != events.PublicNetwork {
		t.Errorf("%+v", all[len(all)-1])
	}
	met(20, events.ThisMachine) // it was met, and no longer counts as introduced
	if n := v.States["host"].Peers.IntroducedBy(node(2)); n != 1 {
		t.Errorf("%d nodes are introduced by node 2", n)
	}
	v.CheckReplay()
}

// TestIntroductionsPerNodeAreLimited checks that a node, with the nodes it introduced, can introduce a limited number.
func TestIntroductionsPerNodeAreLimited(t *testing.T) {
	v := mailboxtest.New(t)
	v.SkipChecksums = true
	v.Add("host")
	node := func(n int) capabilities.NodeID {
		return capabilities.NodeOf([32]byte{0: byte(n >> 8), 1: byte(n), 31: 9})
	}
	v.Must("host", mailbox.UpdatePeer{Node: node(0), By: node(-1), Stamp: 1 << 60})
	for n := 1; n < mailbox.MaxIntroduced; n++ { // as decided, without the decision of each
		v.Apply("host", &events.NodeMet{Node: node(n), By: node(-1)})
	}
	if _, err := v.Decide("host", mailbox.UpdatePeer{Node: node(mailbox.MaxIntroduced), By: node(-1)}); parley.CodeOf(err) != parley.TooLarge {
		t.Errorf("one too many: %v", err)
	}
	if _, err := v.Decide("host", mailbox.UpdatePeer{Node: node(mailbox.MaxIntroduced), By: node(7)}); parley.CodeOf(err) != parley.TooLarge {
		t.Errorf("one too many, by a node that it has introduced: %v", err)
	}
	v.Must("host", mailbox.UpdatePeer{Node: node(mailbox.MaxIntroduced), By: node(-2)})
	evs := v.Must("host", mailbox.UpdatePeer{Node: node(0), Hints: []string{"nats://own:1"}, Stamp: 1})
	if len(evs) != 1 || evs[0].(*events.NodeMet).Hints[0] != "nats://own:1" {
		t.Errorf("a node's own hints do not replace introduced ones: %v", evs)
	}
	v.CheckReplay()
}
