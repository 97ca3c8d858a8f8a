package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"parley"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/gateway/web"
)

// showSignInPage writes a signInPage.
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

// refuseStranger writes, for who has no session, an error as its reader reads: a page for people, JSON for programs.
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
