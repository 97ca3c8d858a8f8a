package bridge

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"parley"
)

// Network is how near an address may be.
type Network string

// The networks, from the farthest to the nearest.
const (
	Public  Network = "public"
	Private Network = "private" // of an organisation or a home
	Machine Network = "machine" // this machine
)

var networks = []Network{Public, Private, Machine}

// ParseNetwork parses a network; "" is Public.
func ParseNetwork(s string) (Network, error) {
	if s == "" {
		return Public, nil
	}
	if !slices.Contains(networks, Network(s)) {
		return "", parley.Refuse(parley.InvalidArgument, "unknown network %s", parley.Quoted(s, 40)).WithHint("networks are public, private and machine")
	}
	return Network(s), nil
}

// shared has the networks that package netip does not treat as private, but that are not public.
var shared = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// NetworkOf returns the network of an address. An address that is not of one host is of this machine.
func NetworkOf(ip netip.Addr) Network {
	ip = ip.Unmap().WithZone("")
	switch {
	case !ip.IsValid() || ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || isOwn(ip):
		return Machine
	case ip.IsPrivate() || slices.ContainsFunc(shared, func(p netip.Prefix) bool { return p.Contains(ip) }):
		return Private
	}
	return Public
}

// isOwn reports whether an address is one of this machine's.
func isOwn(ip netip.Addr) bool {
	addresses, _ := net.InterfaceAddrs() // an error leaves none
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		own, err := netip.ParsePrefix(a.String())
		return err == nil && own.Addr().Unmap() == ip
	})
}

// Dialer returns a dialer that connects to no address nearer than a network, whatever a name resolves to.
func Dialer(nearest Network) *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if near := NetworkOf(at.Addr()); slices.Index(networks, near) > slices.Index(networks, nearest) {
			return fmt.Errorf("the receiver's address is in the network %s, nearer than %s", near, nearest)
		}
		return nil
	}}
}

// Client returns an HTTP client that dials with Dialer. It follows no redirect, and uses no proxy.
func Client(nearest Network) *http.Client {
	return &http.Client{
		Timeout:       15 * time.Second,
		Transport:     &http.Transport{DialContext: Dialer(nearest).DialContext, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 16 << 10, IdleConnTimeout: time.Minute, MaxIdleConns: 4},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// WithoutAddress returns an error of a client without the address that it could not reach.
func WithoutAddress(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Post sends a request to a receiver. It returns nil if the receiver took it, and ErrGone if it wants no more. An error
// does not tell the address, which may be a secret.
func Post(client *http.Client, r *http.Request) error {
	resp, err := client.Do(r)
	if err != nil {
		return WithoutAddress(err)
	}
	defer resp.Body.Close()                                     //nolint:errcheck // nothing in it is needed
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4096)) // so that the connection is kept
	return Taken(resp)
}

// Taken reads the status of a receiver's response: nil if it took what was sent, ErrGone if it wants no more.
func Taken(r *http.Response) error {
	switch {
	case r.StatusCode/100 == 2:
		return nil
	case r.StatusCode == http.StatusGone:
		return ErrGone
	}
	return fmt.Errorf("the receiver answered with status %d", r.StatusCode)
}
