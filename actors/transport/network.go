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

// Nodes announce their own addresses and those of others. A stranger could so make a node try addresses inside its own
// network. An address is only dialed if its network is no nearer than the one in which the announcement came.

// rank orders networks by how near they are.
func rank(n events.Network) int {
	return slices.Index([]events.Network{events.PublicNetwork, events.PrivateNetwork, events.ThisMachine, events.AnyNetwork}, n)
}

// private has the networks that package netip does not treat as private, but that are not public: shared and benchmark
// networks, and IPv4 within IPv6.
var private = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// networkOf returns the network of an address. An address that is not of one host counts as the nearest network.
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

// errTooNear is the error for an address in a network that is nearer than allowed.
var errTooNear = errors.New("the address is in a nearer network than that in which the node was met")

// within returns a dialer control that allows no address nearer than a network. It sees resolved addresses.
func within(most events.Network) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		if rank(networkAt(address)) > rank(most) {
			return errTooNear
		}
		return nil
	}
}

// NetworkOf returns the nearest network in which a node is connected now. It returns PublicNetwork for a node that
// is not connected, or only at the hub.
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
