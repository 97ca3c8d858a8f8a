package gateway

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"parley"
	"parley/actors/connlimit"
	"parley/gateway/api"
	"parley/gateway/httpd"
	"parley/gateway/sanitize"
	"parley/gateway/web"
)

// SignInURL implements backend.Server.
func (s *Server) SignInURL(code string) (string, error) {
	if s.public == nil {
		return "", parley.Refuse(parley.InvalidArgument, "the node has no page: it listens on its socket alone").
			WithHint("parley restart --listen 127.0.0.1:7420")
	}
	return s.tls.scheme() + "://" + s.Address() + web.SignInPath + "?code=" + code, nil
}

// maxSignIn bounds, in bytes, what a browser sends to use a link.
const maxSignIn = 4 << 10

// signIn exchanges a link for a session. A GET only shows a button, so that a preview does not use the link.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		s.showSignInPage(w, http.StatusOK, web.SignInPage{Title: "Sign in to Parley", Code: r.URL.Query().Get("code")})
		return
	case http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "a link is used with POST"), http.StatusMethodNotAllowed)
		return
	}
	if err := s.attempts.allow(r); err != nil {
		s.refuseStranger(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	made, err := s.backend.SignIn(r.Context(), r.FormValue("code"), browserOf(r))
	if err != nil {
		s.monitor.Failed(r.Context(), "sign in", err)
		s.refuseStranger(w, r, err)
		return
	}
	prefix := web.SessionsPath + made.Key
	s.setSession(w, r, made.Secret, prefix)
	http.Redirect(w, r, prefix+"/", http.StatusSeeOther)
}

// showSignInPage writes a SignInPage.
func (s *Server) showSignInPage(w http.ResponseWriter, status int, d web.SignInPage) {
	buf := s.bodies.Get()
	defer s.bodies.Put(buf)
	if err := web.SignInTemplate.Execute(buf, d); err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", web.SignInPolicy)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // who has gone away does not miss it
}

// refuseStranger refuses a request without a session: with a page for browsers, with JSON for programs.
func (s *Server) refuseStranger(w http.ResponseWriter, r *http.Request, err error) {
	e := api.Shown(err)
	switch {
	case !strings.Contains(r.Header.Get("Accept"), "text/html"):
		httpd.Refuse(w, err, 0)
	case e.Code != parley.Unauthenticated:
		s.showSignInPage(w, api.HTTPStatus(e.Code), web.SignInPage{Title: "That did not work", Message: sanitize.Line(e.Message)})
	case r.URL.Path == web.SignInPath:
		s.showSignInPage(w, api.HTTPStatus(e.Code), web.SignInPage{Title: "This link is not good any more", Message: "It was used, or its time is over: a link signs in once, within two minutes."})
	default:
		s.showSignInPage(w, api.HTTPStatus(e.Code), web.SignInPage{Title: "Sign in to Parley", Signed: true})
	}
}

// maxAttempting is how many addresses are remembered that have tried to sign in.
const maxAttempting = 4096

// attempts bounds how often each address tries to sign in.
type attempts struct {
	perMinute int64

	mu  sync.Mutex
	all map[string]*rate.Limiter
}

// allow refuses with RATE_LIMITED an address that has tried too often.
func (a *attempts) allow(r *http.Request) error {
	address := r.RemoteAddr
	if from, err := net.ResolveTCPAddr("tcp", r.RemoteAddr); err == nil {
		address = connlimit.Address(from)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.all[address]
	if l == nil {
		if len(a.all) >= maxAttempting {
			a.forget()
		}
		if a.all == nil {
			a.all = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(float64(a.perMinute)/60), int(min(a.perMinute, 1<<30)))
		a.all[address] = l
	}
	if l.Allow() {
		return nil
	}
	return parley.Refuse(parley.RateLimited, "there were more than %d attempts to sign in from this address", a.perMinute).
		WithHint("try again in a minute")
}

// forget drops the addresses that have all attempts again, or half of all.
func (a *attempts) forget() {
	before := len(a.all)
	for address, l := range a.all {
		if l.Tokens() >= float64(l.Burst()) {
			delete(a.all, address)
		}
	}
	for address := range a.all {
		if len(a.all) <= before/2 {
			return
		}
		delete(a.all, address)
	}
}
