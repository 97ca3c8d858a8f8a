package gateway

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/web"
	"parley/mailbox"
)

// links are the one-time links that sign a browser in. They are in memory alone: one that a restart forgets is
// asked for again.
type links struct {
	mu   sync.Mutex
	open map[string]link
}

// link signs in as an agent, by the token by which that was asked for.
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

// make makes a link for an agent.
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

// use gives the agent of a link, once.
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

// signIn takes a link and gives a session. Fetching a link only shows a button, so that whatever previews links
// does not use it up.
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
	made, err := agent.MakeSession(r.Context(), browserOf(r))
	if err != nil {
		s.note(r.Context(), "sign in", err)
		s.refuseStranger(w, r, err)
		return
	}
	prefix := web.SessionsPath + made.Key
	s.setSession(w, r, made.Text, prefix)
	http.Redirect(w, r, prefix+"/", http.StatusSeeOther)
}
