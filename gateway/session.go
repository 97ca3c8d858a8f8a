package gateway

import (
	"net/http"
	"strings"

	"parley"
	"parley/gateway/api"
	"parley/gateway/backend"
	"parley/gateway/httpd"
	"parley/gateway/sanitize"
	"parley/gateway/web"
)

// A browser's session has two halves, of which neither is of any use alone. One is a secret in a cookie. The other, the
// key, stands in the address of every page: /s/KEY/… , and the cookie is for that path alone.
//
// A browser sends a cookie to every port of a host, so whoever gets a person to follow a link to a server of its own
// at another port of 127.0.0.1 would have the cookie, and could show it here with any header that it likes. It does not
// get this one, since it knows no path that the browser sends it to; and if it had it, it would have to know the key
// too, which no browser sends elsewhere: pages say nothing of where they are to other origins (Referrer-Policy), a port
// being one. The same holds beyond loopback, by a name of one's own and behind a proxy, and needs no script.
//
// A session is good on pages and what they call. It is no token: as a bearer, in a WebSocket's protocol or over NATS it
// is refused.

const (
	// SessionCookie is the name of the cookie that has the one half of a browser's session.
	SessionCookie = "parley_session"

	signOutPath = "/sign-out"
	maxCookies  = 4 // of that name that are looked at: another port may have set some
	maxPageKey  = 64
)

// cutKey takes the key of a session off a path. It gives "" for a path that has none.
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

// prefixOf returns the beginning of the addresses of pages, which has the key of the session if there is one.
func prefixOf(p api.Principal) string {
	if p.SessionKey() == "" {
		return ""
	}
	return web.SessionsPath + p.SessionKey()
}

// identifySession gives the principal of the session with a key, of which the request's cookie is the other half.
func (s *Server) identifySession(r *http.Request, key string) (api.Principal, error) {
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

// renew gives a session its next secret, now and then, with the response to whatever it is used for.
func (s *Server) renew(w http.ResponseWriter, r *http.Request, p api.Principal) {
	if p.SessionKey() == "" {
		return
	}
	next, err := s.backend.Renew(r.Context(), p)
	if err != nil {
		s.monitor.Failed(r.Context(), "renew a session", err) // it is good for as long as it was
		return
	}
	if next != "" {
		s.setSession(w, r, next, prefixOf(p))
	}
}

// setSession has a browser keep a session until it is closed or the session ends.
func (s *Server) setSession(w http.ResponseWriter, r *http.Request, text, prefix string) {
	http.SetCookie(w, &http.Cookie{
		Name: SessionCookie, Value: text, Path: prefix, MaxAge: int(backend.SessionTime.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// signOut asks whether to end the session, or all of its agent's, and does.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request, p api.Principal) {
	d := web.SignInPage{Title: "Sign out of Parley", Leaves: prefixOf(p) + signOutPath, Everywhere: p.May(api.Operation{Scope: api.ScopeAdmin}) == nil}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		s.showSignInPage(w, http.StatusOK, d)
		return
	case http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "a session is ended with POST"), http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	if err := s.backend.EndSession(r.Context(), p, d.Everywhere && r.FormValue("everywhere") != ""); err != nil {
		s.monitor.Failed(r.Context(), "sign out", err)
		s.refuseStranger(w, r, err)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: SessionCookie, Path: prefixOf(p), MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	s.showSignInPage(w, http.StatusOK, web.SignInPage{Title: "You are signed out", Signed: true})
}

// browserOf says in a few words which browser sends a request, for who looks through the sessions.
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
