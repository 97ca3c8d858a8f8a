package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"parley"
	"parley/actors/connlimit"
	"parley/gateway/api"
	"parley/gateway/httpd"
)

// Bounds of a connection.
const (
	headerTime     = 10 * time.Second // for the header of a request
	bodyTime       = 30 * time.Second // for its body
	slowest        = 10 * time.Second // for a reader to take a piece of a response
	writeTime      = 2 * time.Minute  // for a response: longer than any wait
	idleTime       = 5 * time.Minute  // between requests on the socket
	publicIdleTime = 2 * time.Minute  // between requests on the TCP address
	tokenTime      = 30 * time.Second // between two looks whether tokens in use have ended
)

// TLS configures the protection of the TCP address. A token that crosses a network in the clear can be read by others.
// So an address beyond loopback needs a certificate, or Plain.
type TLS struct {
	Cert  string // PEM file with the certificate and its chain; "" for none
	Key   string // PEM file with its key
	Plain bool   // allows HTTP in the clear, also beyond loopback: something else protects the connection
}

// config returns the configuration of TLS for an address, or nil for HTTP in the clear. It refuses with
// INVALID_ARGUMENT a certificate that cannot be used. HTTP in the clear beyond loopback is refused too, unless it is
// wanted.
func (t TLS) config(address string) (*tls.Config, error) {
	if t.Cert != "" || t.Key != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, parley.Refuse(parley.InvalidArgument, "the certificate cannot be used: %v", err).
				WithHint("--tls-cert and --tls-key name PEM files that belong together")
		}
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || t.Plain || isLoopback(host) {
		return nil, nil // net.Listen refuses a malformed address
	}
	return nil, parley.Refuse(parley.InvalidArgument, "listening on %s, beyond this machine, needs TLS", address).
		WithHint("--tls-cert and --tls-key, or --plain-http where something else protects the way")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// scheme returns the scheme of the addresses of pages.
func (t TLS) scheme() string {
	if t.Cert == "" {
		return "http"
	}
	return "https"
}

// listenPublic listens on the TCP address.
func (s *Server) listenPublic(o Options) (*httpd.Server, error) {
	secure, err := o.TLS.config(o.Listen)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "cannot listen on %s: %v", o.Listen, errors.Unwrap(err)).
			WithHint("give another address with --listen, or --listen off for none")
	}
	most := httpd.Affordable(o.Limits.Of(api.LimitConnectionsAll))
	return httpd.New(l, httpd.Options{
		Handler: http.HandlerFunc(s.servePublic), Log: o.Log, TLS: secure,
		Limiter:    connlimit.New(int(min(o.Limits.Of(api.LimitConnections), 1<<30)), most, 0),
		Address:    func(c net.Conn) string { return connlimit.Address(c.RemoteAddr()) },
		HeaderTime: headerTime, ReadTime: bodyTime, WriteTime: writeTime, IdleTime: publicIdleTime,
	}), nil
}

// listenLocal listens on the node's own socket.
func (s *Server) listenLocal(o Options) (*httpd.Server, error) {
	l, err := httpd.ListenUnix(o.Socket)
	if err != nil {
		return nil, err
	}
	most := httpd.Affordable(o.Limits.Of(api.LimitConnectionsHost))
	return httpd.New(l, httpd.Options{
		Handler: s, Log: o.Log, Admit: s.coders.admit,
		Limiter: connlimit.New(max(most/2, 1), most, 0), Address: httpd.Process,
		HeaderTime: headerTime, ReadTime: bodyTime, WriteTime: writeTime, IdleTime: idleTime,
	}), nil
}

// report serves until Drain. It reports an error that ends it before.
func (s *Server) report(h *httpd.Server) {
	if err := h.Serve(); err != nil {
		s.broken <- fmt.Errorf("serve %s: %w", h.Addr(), err)
	}
}

// FileLimit returns the number of files that this process may open, and whether there is a limit.
func FileLimit() (files uint64, limited bool) { return httpd.FileLimit() }
