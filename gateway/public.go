package gateway

import (
	"net"
	"net/http"
	"strings"

	"parley"
	"parley/gateway/a2a"
	"parley/gateway/agui"
	"parley/gateway/api"
	"parley/gateway/httpd"
	"parley/gateway/web"
)

// servePublic answers a request on the TCP address, which anybody may reach. A request must have a token, or both halves
// of a browser's session, and must not come from another site.
func (s *Server) servePublic(w http.ResponseWriter, r *http.Request) {
	harden(w.Header())
	if !isOwnName(r.Host, s.listens) {
		httpd.Refuse(w, parley.Refuse(parley.NotPermitted, "this is not %.80q", r.Host), http.StatusMisdirectedRequest)
		return
	}
	if r.URL.Path == api.HealthPath {
		healthz(w)
		return
	}
	if s.serveAnswer(w, r) { // also for another site: the app of a receiver posts from its own page
		return
	}
	if err := s.checkSite(r); err != nil {
		httpd.Refuse(w, err, http.StatusForbidden)
		return
	}
	if r.URL.Path == web.SignInPath {
		s.site.SignIn(w, r)
		return
	}
	if r.URL.Path == a2a.CardPath {
		s.serveCard(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, oauthPaths) {
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "this node has no authorization server").
			WithHint("parley token create makes a token"), http.StatusNotFound)
		return
	}
	key, path := cutKey(r.URL.Path)
	p, err := s.authenticate(r, key)
	if err != nil {
		if parley.CodeOf(err) == parley.Unauthenticated {
			challenge(w.Header(), tokenOf(r), err)
		}
		s.site.RefuseSignIn(w, r, err)
		return
	}
	if err := s.sessions.renew(w, r, p); err != nil {
		s.monitor.Failed(r.Context(), "renew a session", err)
	}
	r = r.WithContext(as(r.Context(), p))
	if key != "" { // handlers see no key: they use web.BaseOf for addresses
		u := *r.URL
		u.Path, u.RawPath, r.URL = path, "", &u
	}
	if p.SessionKey() != "" && path == web.SignOutPath {
		s.site.SignOut(w, r, p)
		return
	}
	s.serveTo(w, r)
}

// checkSite refuses with NOT_PERMITTED some requests of another origin's page. They may change something, or that page
// could read or embed their response. It accepts a link that a person follows.
func (s *Server) checkSite(r *http.Request) error {
	if s.crossOrigin.Check(r) != nil {
		return httpd.ErrOtherSite
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return nil
	case "": // a program, or an old browser
		if isRead(r.Method) {
			return httpd.CheckOrigin(r)
		}
		return nil // crossOrigin has checked it
	}
	if isRead(r.Method) && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return nil
	}
	return httpd.ErrOtherSite
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// serveTo answers a request of a principal.
func (s *Server) serveTo(w http.ResponseWriter, r *http.Request) {
	name, isCall := strings.CutPrefix(r.URL.Path, api.CallPath)
	switch {
	case !isCall && r.URL.Path == api.WebSocketPath:
		s.ws.Serve(w, r, s.caller(r.Context()), func() {})
	case !isCall && r.URL.Path == toolsPath:
		s.serveTools(w, r)
	case !isCall && a2a.Has(r.URL.Path):
		s.serveProtocol(w, r, "a2a", func(w http.ResponseWriter, r *http.Request, u *toolUser) {
			s.a2a.Serve(w, r, u, s.baseOf(r))
		})
	case !isCall && agui.Has(r.URL.Path):
		s.serveProtocol(w, r, "agui", func(w http.ResponseWriter, r *http.Request, u *toolUser) { agui.Serve(w, r, u) })
	case !isCall && r.URL.Path == metricsPath:
		s.serveMetrics(w, r)
	case !isCall && r.URL.Path == api.OpenAPIPath:
		s.serveOpenAPI(w, r)
	case !isCall && (s.site.Has(r.URL.Path) || isRead(r.Method) && strings.Contains(r.Header.Get("Accept"), "text/html")): // a browser is told on a page
		s.site.Serve(w, r, s.caller(r.Context()))
	case !isCall:
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "there is nothing at %.80q", r.URL.Path), http.StatusNotFound)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "operations are called with POST"), http.StatusMethodNotAllowed)
	default:
		s.serveCall(w, r, name)
	}
}

// SignInURL implements backend.Server.
func (s *Server) SignInURL(code string) (string, error) {
	if s.public == nil {
		return "", parley.Refuse(parley.InvalidArgument, "the node has no page: it listens on its socket alone").
			WithHint("parley restart --listen 127.0.0.1:7420")
	}
	return s.tls.scheme() + "://" + named(s.Address(), s.listens) + web.SignInPath + "?code=" + code, nil
}

// named returns a TCP address with the name in the configured address, which a certificate may be for.
func named(address, configured string) string {
	name, _, err := net.SplitHostPort(configured)
	_, port, failed := net.SplitHostPort(address)
	if err != nil || failed != nil || name == "" || name == "localhost" || net.ParseIP(name) != nil {
		return address
	}
	return net.JoinHostPort(name, port)
}

// harden sets the headers of all responses that forbid a browser to run, frame, sniff or store them.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with "no-referrer", an old browser would hide the origin of a form
	h.Set("Cache-Control", "no-store")
}

// isOwnName reports whether a Host header names the server with a configured address. An attacker can point a name of its
// own at this address, to get around the same-origin policy. A page of that name has another Host header.
func isOwnName(host, configured string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" {
		return true
	}
	own, _, err := net.SplitHostPort(configured)
	if err == nil && own != "" && strings.EqualFold(name, own) {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil // a page has an address as its name only if it came from there
}
