package transport

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley"
)

const (
	maxHints    = 8
	maxHintSize = 255
	maxOwnHints = 6
)

// Hints returns the addresses of this node's listener, as "nats://HOST:PORT". It returns nil if there is no listener.
func (t *Transport) Hints() []string {
	if t.listener == nil {
		return nil
	}
	_, port, err := net.SplitHostPort(t.Address())
	if err != nil {
		return nil
	}
	host, _, err := net.SplitHostPort(t.o.Listen)
	if err != nil {
		return nil
	}
	hosts := []string{host}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		hosts = ownAddresses()
	}
	hints := make([]string, len(hosts))
	for n, h := range hosts {
		hints[n] = "nats://" + net.JoinHostPort(h, port)
	}
	return hints
}

// ownAddresses returns the addresses of this machine that others may reach, IPv4 first. If there are none it returns
// the loopback address.
func ownAddresses() []string {
	var four, six []string
	addresses, _ := net.InterfaceAddrs() // an error leaves none
	for _, a := range addresses {
		network, ok := a.(*net.IPNet)
		switch {
		case !ok || !network.IP.IsGlobalUnicast():
		case network.IP.To4() != nil:
			four = append(four, network.IP.String())
		default:
			six = append(six, network.IP.String())
		}
	}
	found := slices.Concat(four, six)
	if len(found) == 0 {
		return []string{"127.0.0.1"}
	}
	return found[:min(len(found), maxOwnHints)]
}

// servers returns the addresses in hints, which may come from strangers, in a form that is safe to dial.
func servers(hints []string) ([]string, error) {
	if len(hints) == 0 {
		return nil, parley.Refuse(parley.NodeUnreachable, "it is not known where the node is")
	}
	if len(hints) > maxHints {
		return nil, parley.Refuse(parley.InvalidArgument, "%d hints: at most %d", len(hints), maxHints)
	}
	var list []string
	for _, hint := range hints {
		address, ok := readHint(hint)
		if !ok {
			return nil, parley.Refuse(parley.InvalidArgument, "%.80q is no hint: want nats://HOST:PORT", hint)
		}
		if at := "nats://" + address; !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return list, nil
}

// readHint returns HOST:PORT of a hint.
func readHint(hint string) (string, bool) {
	if len(hint) > maxHintSize {
		return "", false
	}
	u, err := url.Parse(hint)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" {
		return "", false
	}
	host, port := u.Hostname(), u.Port()
	if u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || strings.Contains(hint, "#") || !isHost(host) {
		return "", false
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", false
	}
	return net.JoinHostPort(host, port), true
}

// isHost reports whether text can be an address or a name of the DNS.
func isHost(text string) bool {
	if text == "" {
		return false
	}
	if strings.Contains(text, ":") {
		ip, err := netip.ParseAddr(text)
		return err == nil && ip.Zone() == ""
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r != '-' && r != '.' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}
