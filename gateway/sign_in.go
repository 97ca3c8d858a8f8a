package gateway

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley"
	"parley/actors"
	"parley/actors/connlimit"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/gateway/web"
	"parley/mailbox"
)

// links holds the one-time links that sign a browser in. They are in memory alone, and end with the process.
type links struct {
	mu   sync.Mutex
	open map[string]link
}

// link signs in as an agent, by the token that asked for the link.
type link struct {
	agent *actors.Agent
	until time.Time
}

const (
	linkTime    = 2 * time.Minute
	sessionTime = mailbox.SessionTime
	maxLinks    = 16   // of one agent, and of one token, that wait
	maxLinksAll = 1024 // of all; the host's are never refused for those of others
)

// make returns the code of a new link for an agent.
func (l *links) make(a *actors.Agent) (code string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, own := time.Now(), 0
	for c, k := range l.open {
		switch {
		case now.After(k.until):
			delete(l.open, c)
		case k.agent.ID() == a.ID() && k.agent.By() == a.By():
			own++
		}
	}
	if own >= maxLinks || len(l.open) >= maxLinksAll && !a.IsHost() {
		return "", parley.Refuse(parley.RateLimited, "%d links of this agent wait to be used", own).WithHint("they end after %v", linkTime)
	}
	if l.open == nil {
		l.open = map[string]link{}
	}
	code = rand.Text()
	l.open[code] = link{agent: a, until: now.Add(linkTime)}
	return code, nil
}

// use returns the agent of a link, and removes the link.
func (l *links) use(code string) (*actors.Agent, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.open[code]
	delete(l.open, code)
	return k.agent, ok && time.Now().Before(k.until)
}

func openLink(ctx context.Context, s *Server, r api.OpenLinkRequest) (api.OpenLinkResponse, error) {
	if s.public == nil {
		return api.OpenLinkResponse{}, parley.Refuse(parley.InvalidArgument, "the node has no page: it listens on its socket alone").
			WithHint("parley restart --listen 127.0.0.1:7420")
	}
	agent, err := s.agent(ctx, r.Actor())
	if err != nil {
		return api.OpenLinkResponse{}, err
	}
	code, err := s.links.make(agent)
	if err != nil {
		return api.OpenLinkResponse{}, err
	}
	return api.OpenLinkResponse{URL: s.tls.scheme() + "://" + s.Address() + web.SignInPath + "?code=" + code, Until: capabilities.At(time.Now().Add(linkTime))}, nil
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
		refuse(w, parley.Refuse(parley.InvalidArgument, "a link is used with POST"), http.StatusMethodNotAllowed)
		return
	}
	if err := s.attempts.allow(r); err != nil {
		s.refuseStranger(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	agent, ok := s.links.use(r.FormValue("code"))
	if !ok {
		s.refuseStranger(w, r, parley.Refuse(parley.Unauthenticated, "the link was used, or has ended").WithHint("parley open makes another"))
		return
	}
	made, err := agent.Tokens().MakeSession(r.Context(), browserOf(r))
	if err != nil {
		s.note(r.Context(), "sign in", err)
		s.refuseStranger(w, r, err)
		return
	}
	prefix := web.SessionsPath + made.Key
	s.setSession(w, r, made.Text, prefix)
	http.Redirect(w, r, prefix+"/", http.StatusSeeOther)
}

// showSignInPage writes a SignInPage.
func (s *Server) showSignInPage(w http.ResponseWriter, status int, d web.SignInPage) {
	buf := s.bodies.get()
	defer s.bodies.put(buf)
	if err := web.SignInTemplate.Execute(buf, d); err != nil {
		refuse(w, err, 0)
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
	e := shown(err)
	switch {
	case !strings.Contains(r.Header.Get("Accept"), "text/html"):
		refuse(w, err, 0)
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
