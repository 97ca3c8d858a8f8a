package gateway

import (
	"net"
	"net/url"
	"strings"

	"parley"
	"parley/gateway/web"
)

// PairingLink returns a link that signs in as another device can use it: at an address of the node, or where the node
// listens if that is "". It refuses with INVALID_ARGUMENT an address that no other device reaches.
func PairingLink(link, address string) (string, error) {
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	if address != "" {
		at, err := url.Parse(address)
		if err != nil || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" || at.Scheme != "https" && at.Scheme != "http" {
			return "", parley.Refuse(parley.InvalidArgument, "%s is no address of a web server", parley.Quoted(address, 80))
		}
		at.Path, at.RawQuery = strings.TrimSuffix(at.Path, "/")+web.SignInPath, u.RawQuery
		u = at
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	switch {
	case isLoopback(host) || strings.HasSuffix(host, ".localhost"):
		return "", parley.Refuse(parley.InvalidArgument, "Parley listens on this computer only (%s), so a phone can't reach it", host).
			WithHint("a tunnel leads here: tailscale serve --bg http://%s, or cloudflared tunnel --url http://%s; then parley open --qr --address with the address that it prints. "+
				"Or parley restart --listen 0.0.0.0:7420 with --tls-cert and --tls-key", u.Host, u.Host)
	case ip != nil && ip.IsUnspecified(): // the node listens at all addresses, and the link has its port
		near := ownAddress(ip.To4() != nil)
		if near == nil {
			return "", parley.Refuse(parley.InvalidArgument, "this machine has no address in a network").WithHint("parley open --qr --address https://node.example")
		}
		u.Host = net.JoinHostPort(near.String(), u.Port())
	}
	return u.String(), nil
}

// ownAddress returns an address of this machine in its network: of version 4 if there is one, and a private one first. It
// is nil if there is none.
func ownAddress(only4 bool) (best net.IP) {
	all, _ := net.InterfaceAddrs() // an error leaves none
	rank := func(ip net.IP) int {
		switch {
		case ip == nil:
			return 0
		case ip.To4() == nil:
			return 1
		case !ip.IsPrivate():
			return 2
		}
		return 3
	}
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() || only4 && n.IP.To4() == nil {
			continue
		}
		if rank(n.IP) > rank(best) {
			best = n.IP
		}
	}
	return best
}

// Pair implements web.Devices. A page at an address of this machine alone leads to where the node listens.
func (d *devices) Pair(link, address string) (string, error) {
	if u, err := url.Parse(address); err == nil && isLoopback(u.Hostname()) {
		address = ""
	}
	return PairingLink(link, address)
}
