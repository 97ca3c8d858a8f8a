package transport

import (
	"net"
	"net/netip"
	"testing"

	"parley"
	"parley/events"
)

func TestNetworkOfAddresses(t *testing.T) {
	for ip, want := range map[string]events.Network{
		"8.8.8.8": events.PublicNetwork, "2606:4700::1111": events.PublicNetwork, "::ffff:8.8.8.8": events.PublicNetwork,
		"10.1.2.3": events.PrivateNetwork, "172.16.0.9": events.PrivateNetwork, "192.168.1.77": events.PrivateNetwork, "fd00::77": events.PrivateNetwork,
		"100.64.0.9": events.PrivateNetwork, "::ffff:10.1.2.3": events.PrivateNetwork, "64:ff9b::a01:203": events.PrivateNetwork,
		"2002:a01:203::1": events.PrivateNetwork, "198.18.0.1": events.PrivateNetwork, "255.255.255.255": events.PrivateNetwork,
		"127.0.0.1": events.ThisMachine, "127.9.9.9": events.ThisMachine, "::1": events.ThisMachine, "::ffff:127.0.0.1": events.ThisMachine,
		"0.0.0.0": events.ThisMachine, "::": events.ThisMachine, "169.254.169.254": events.ThisMachine, "fe80::1%eth0": events.ThisMachine,
		"224.0.0.1": events.ThisMachine, "ff02::1": events.ThisMachine,
	} {
		if got := networkOf(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s is of %q, want %q", ip, got, want)
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if own := netip.MustParsePrefix(a.String()).Addr(); networkOf(own) != events.ThisMachine {
			t.Errorf("this machine's own %s is of %q", own, networkOf(own))
		}
	}
	if networkAt("no address") != events.ThisMachine {
		t.Error("an invalid address has another network than ThisMachine")
	}
}

// TestHintsToNearerNetworksAreIgnored checks that a hint to this machine, by any name, is not dialed.
func TestHintsToNearerNetworksAreIgnored(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	tried := make(chan net.Conn, 8)
	go func() {
		for {
			conn, err := target.Accept()
			if err != nil {
				close(tried)
				return
			}
			tried <- conn
		}
	}()
	_, port, _ := net.SplitHostPort(target.Addr().String())
	w := openTransport(t, Options{})
	hints := []string{"nats://127.0.0.1:" + port, "nats://localhost:" + port, "nats://0.0.0.0:" + port, "nats://[::ffff:127.0.0.1]:" + port, "nats://127.1:" + port}
	for _, most := range []events.Network{events.PublicNetwork, events.PrivateNetwork} {
		if err := w.DialWithin(testContext(t), newIdentity(t).Node(), hints, "", most); parley.CodeOf(err) != parley.NodeUnreachable {
			t.Errorf("within %s: %v", most, err)
		}
	}
	_ = target.Close()
	for conn := range tried {
		_ = conn.Close()
		t.Error("the target was tried")
	}
}

// TestNetworkOfConnectedNode checks the network of a peer on both sides, and while it is not connected.
func TestNetworkOfConnectedNode(t *testing.T) {
	a, b := openListening(t, Options{}), openTransport(t, Options{})
	if n := a.NetworkOf(b.me); n != events.PublicNetwork {
		t.Errorf("before: %q", n)
	}
	must(t, b.DialWithin(testContext(t), a.me, a.Hints(), "", events.ThisMachine))
	if n := a.NetworkOf(b.me); n != events.ThisMachine {
		t.Errorf("the network of the dialing node is %q", n)
	}
	if n := b.NetworkOf(a.me); n != events.ThisMachine {
		t.Errorf("the network of the dialed node is %q", n)
	}
}
