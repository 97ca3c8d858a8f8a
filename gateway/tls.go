package gateway

import (
	"crypto/tls"
	"net"
	"net/http"

	"parley"
)

// TLS says how the TCP address is protected. A token that crosses a network in the clear is anybody's, so beyond
// loopback one of the two is needed: a certificate, or the word that something else protects the way.
type TLS struct {
	Cert  string // file with the certificate, and those up to its authority, in PEM; "" for none
	Key   string // file with its key
	Plain bool   // HTTP in the clear is wanted, also beyond loopback
}

// check refuses with INVALID_ARGUMENT an address that would be served in the clear without that being wanted, and
// a certificate that cannot be used.
func (t TLS) check(address string) error {
	if t.Cert != "" || t.Key != "" {
		if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
			return parley.Refuse(parley.InvalidArgument, "the certificate cannot be used: %v", err).
				WithHint("--tls-cert and --tls-key name PEM files that belong together")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || t.Plain || isLoopback(host) {
		return nil // an address that is none is refused when it is listened on
	}
	return parley.Refuse(parley.InvalidArgument, "listening on %s, beyond this machine, needs TLS", address).
		WithHint("--tls-cert and --tls-key, or --plain-http where something else protects the way")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (t TLS) serve(server *http.Server, l net.Listener) error {
	if t.Cert == "" {
		return server.Serve(l)
	}
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	return server.ServeTLS(l, t.Cert, t.Key)
}

// scheme is that of links to the page.
func (t TLS) scheme() string {
	if t.Cert == "" {
		return "http"
	}
	return "https"
}
