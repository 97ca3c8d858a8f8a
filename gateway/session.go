package gateway

import (
	"net"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"parley"
	"parley/actors/connlimit"
	"parley/gateway/api"
	"parley/gateway/backend"
	"parley/gateway/bridge"
	"parley/gateway/sanitize"
	"parley/gateway/web"
)

// A browser's session has two halves, a secret and a key. Neither is of use alone. The secret is in a cookie. The key is
// in the address of every page, /s/KEY/…, and the cookie is for that path alone.
//
// A browser sends a cookie to every port of a host. Suppose that an attacker gets a person to follow a link to its own
// server, at another port of 127.0.0.1. It would receive a cookie for all paths, and could present it here with any
// header. It does not receive this cookie, because it does not know the path. If it had the cookie, it would lack the
// key: pages do not send their address to other origins (Referrer-Policy), and another port is another origin. The same
// holds beyond loopback, for a server with a name of its own and behind a proxy. It needs no script.
//
// A session is good for pages and their calls only. It is refused as a token: as a bearer, in a WebSocket's protocol and
// over NATS.

const (
	// SessionCookie is the name of the cookie that has the secret of a browser's session.
	SessionCookie = "parley_session"

	maxCookies = 4 // of that name that are tried: another port may have set some
	maxPageKey = 64
)

// cutKey removes the key of a session from a path. The key is "" for a path without one.
func cutKey(path string) (key, rest string) {
	behind, ok := strings.CutPrefix(path, web.SessionsPath)
	if !ok {
		return "", path
	}
	key, rest, ok = strings.Cut(behind, "/")
	if !ok || key == "" || len(key) > maxPageKey {
		return "", path
	}
	return key, "/" + rest
}

// sessions keeps the sessions of browsers in cookies. It implements web.Sessions.
type sessions struct {
	backend  *backend.Backend
	devices  *devices
	attempts attempts
}

// identify returns the principal of the session with a key. The other half of the session is the request's cookie. It
// refuses with UNAUTHENTICATED.
func (s *sessions) identify(r *http.Request, key string) (api.Principal, error) {
	_, err := s.backend.Identify(r.Context(), "")
	cookies := r.CookiesNamed(SessionCookie)
	for _, c := range cookies[:min(len(cookies), maxCookies)] {
		p, failed := s.backend.IdentifySession(r.Context(), c.Value, key)
		if failed == nil {
			return p, nil
		}
		if err = failed; parley.CodeOf(err) != parley.Unauthenticated {
			break
		}
	}
	return nil, err
}

// renew stores the next secret of a principal's session in the browser, when there is one. After an error the session is
// good for as long as it was.
func (s *sessions) renew(w http.ResponseWriter, r *http.Request, p api.Principal) error {
	if p.SessionKey() == "" {
		return nil
	}
	next, err := s.backend.Renew(r.Context(), p)
	if err == nil && next != "" {
		set(w, r, next, web.BaseOf(p), int(backend.SessionTime.Seconds()))
	}
	return err
}

// set stores the secret of a session in the browser for some seconds, or removes it if that is -1.
func set(w http.ResponseWriter, r *http.Request, secret, path string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: SessionCookie, Value: secret, Path: path, MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// Whose implements web.Sessions.
func (s *sessions) Whose(r *http.Request, code string) string {
	return s.backend.WhoseLink(r.Context(), code)
}

// Begin implements web.Sessions. Attempts that fail are counted, and no others: a link that is good works whatever was
// tried before from the same address, such as that of a proxy. A code has 130 random bits, so nobody guesses one.
func (s *sessions) Begin(w http.ResponseWriter, r *http.Request, code string) (base string, err error) {
	made, err := s.backend.SignIn(r.Context(), code, browserOf(r))
	if parley.CodeOf(err) == parley.Unauthenticated {
		if many := s.attempts.allow(addressOf(r), "attempts to sign in from this address"); many != nil {
			return "", many
		}
	}
	if err != nil {
		return "", err
	}
	base = web.SessionsPath + made.Key
	set(w, r, made.Secret, base, int(backend.SessionTime.Seconds()))
	return base, nil
}

// End implements web.Sessions. With all of the host's sessions, all browsers are told of nothing more. That goes for
// those whose sessions have ended by themselves, too.
func (s *sessions) End(w http.ResponseWriter, r *http.Request, p api.Principal, all bool) error {
	if all && p.IsHost() {
		if err := s.devices.leave(func(bridge.Config) bool { return true }); err != nil {
			return err
		}
	}
	if err := s.backend.EndSession(r.Context(), p, all); err != nil {
		return err
	}
	set(w, r, "", web.BaseOf(p), -1)
	return nil
}

// browserOf returns the browser of a request in a few words, for the list of sessions.
func browserOf(r *http.Request) string {
	agent := r.UserAgent()
	for _, known := range []struct{ mark, name string }{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
	} {
		_, behind, ok := strings.Cut(agent, known.mark)
		if !ok {
			continue
		}
		version, _, _ := strings.Cut(behind, ".")
		said := known.name
		if len(version) <= 4 {
			said += " " + version
		}
		for _, system := range []string{"Android", "iPhone", "iPad", "Windows", "Macintosh", "Linux"} {
			if strings.Contains(agent, system) {
				return sanitize.Line(said + " on " + system)
			}
		}
		return sanitize.Line(said)
	}
	return sanitize.Line(agent[:min(len(agent), 60)])
}

// maxAttempting bounds the addresses, or links, whose attempts are counted.
const maxAttempting = 4096

// maxPresses bounds the uses a minute of a link that answers.
const maxPresses = 30

// attempts bounds how often something is tried a minute, by each address or with each link. There is one for each
// purpose, so that nobody spends what is for another.
type attempts struct {
	perMinute int64

	mu  sync.Mutex
	all map[string]*rate.Limiter
}

// addressOf returns the address of a client, as attempts are counted.
func addressOf(r *http.Request) string {
	if from, err := net.ResolveTCPAddr("tcp", r.RemoteAddr); err == nil {
		return connlimit.Address(from)
	}
	return r.RemoteAddr
}

// allow counts an attempt of one who tries. It refuses with RATE_LIMITED too many, which are called what they are.
func (a *attempts) allow(who, what string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.all[who]
	if l == nil {
		if len(a.all) >= maxAttempting {
			a.forget()
		}
		if a.all == nil {
			a.all = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(float64(a.perMinute)/60), int(min(a.perMinute, 1<<30)))
		a.all[who] = l
	}
	if l.Allow() {
		return nil
	}
	return parley.Refuse(parley.RateLimited, "there were more than %d %s", a.perMinute, what).
		WithHint("try again in a minute")
}

// forget drops those that have all their attempts again, and then others until half are left.
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
