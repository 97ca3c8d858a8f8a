package transport

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"parley/capabilities"
	"parley/events"
)

// A node says itself where it is to be found, and others say it of it. Whoever may say so could have this node try the
// doors of the house that it stands in: so an address is dialled only if it is no nearer than what was met there.

// rank orders networks by how near they are.
func rank(n events.Network) int {
	return slices.Index([]events.Network{events.PublicNetwork, events.PrivateNetwork, events.ThisMachine, events.AnyNetwork}, n)
}

// private are the addresses, beside those that package netip knows, that are not of the public network or lead to such:
// shared and benchmark networks, and IPv4 within IPv6.
var private = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// networkOf returns the network of an address. What is not of one host alone counts as the nearest.
func networkOf(ip netip.Addr) events.Network {
	ip = ip.Unmap().WithZone("")
	switch {
	case !ip.IsValid() || ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || isOwn(ip):
		return events.ThisMachine
	case ip.IsPrivate() || slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(ip) }):
		return events.PrivateNetwork
	}
	return events.PublicNetwork
}

// isOwn reports whether an address is one of this machine's.
func isOwn(ip netip.Addr) bool {
	addresses, _ := net.InterfaceAddrs() // an error leaves none
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		own, err := netip.ParsePrefix(a.String())
		return err == nil && own.Addr().Unmap() == ip
	})
}

// networkAt returns the network of HOST:PORT, where HOST is an address.
func networkAt(address string) events.Network {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return events.ThisMachine
	}
	return networkOf(at.Addr())
}

// errTooNear says that an address leads nearer than it may.
var errTooNear = errors.New("the address is in a nearer network than that in which the node was met")

// within keeps a dialer from connecting nearer than a network. Names were resolved when it is asked.
func within(most events.Network) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		if rank(networkAt(address)) > rank(most) {
			return errTooNear
		}
		return nil
	}
}

// NetworkOf returns the nearest network in which a node is connected now, and PublicNetwork if it is not, or only at
// the hub: who is met there is not dialled nearer.
func (t *Transport) NetworkOf(node capabilities.NodeID) events.Network {
	nearest := events.PublicNetwork
	near := func(address string) {
		if n := networkAt(address); address != "" && rank(n) > rank(nearest) {
			nearest = n
		}
	}
	t.mu.Lock()
	link := t.dialed[node]
	t.mu.Unlock()
	if link.connected() {
		near(link.conn.ConnectedAddr())
	}
	if t.listener != nil {
		for _, from := range t.listener.front.addressesOf(node) {
			near(from)
		}
	}
	return nearest
}
