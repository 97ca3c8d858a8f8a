package web

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"parley"
	"parley/gateway/api"
	"parley/gateway/httpd"
	"parley/gateway/sanitize"
)

const (
	// SessionsPath, with the key of a session behind it, begins the addresses of a session's pages.
	SessionsPath = "/s/"
	// SignInPath is the address of a link that signs in.
	SignInPath = "/sign-in"
	// SignOutPath is the address, behind that of a session, at which it ends.
	SignOutPath = "/sign-out"
)

// maxSignIn bounds, in bytes, the form of a browser that signs in or out.
const maxSignIn = 4 << 10

// Sessions makes and ends the sessions of browsers.
type Sessions interface {
	// Whose returns whom the code of a link signs in as, in words; "" for a link that is not good. It does not use the link.
	Whose(r *http.Request, code string) string
	// Begin exchanges the code of a link for a session, and stores the session in the browser. It returns the beginning of
	// the addresses of the session's pages. It refuses with UNAUTHENTICATED a link that was used or has ended. Too
	// many of those from one address are refused with RATE_LIMITED.
	Begin(w http.ResponseWriter, r *http.Request, code string) (base string, err error)
	// End ends the session of a principal, and with all those of its agent. It removes the session from the browser.
	End(w http.ResponseWriter, r *http.Request, p api.Principal, all bool) error
}

// SignIn exchanges a link for a session. A GET only shows a button: a preview of the link does not use it.
func (s *Site) SignIn(w http.ResponseWriter, r *http.Request) {
	switch {
	case isRead(r.Method):
		d := signInPage{Title: "Sign in to Parley", Code: r.URL.Query().Get("code")}
		if who := s.Sessions.Whose(r, d.Code); who != "" {
			d.Message = "This browser will act as " + sanitize.Line(who) + "."
		}
		s.showSignIn(w, http.StatusOK, d)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "a link is used with POST"), http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	base, err := s.Sessions.Begin(w, r, codeIn(r.FormValue("code")))
	if err != nil {
		s.Monitor.Failed(r.Context(), "sign in", err)
		s.RefuseSignIn(w, r, err)
		return
	}
	http.Redirect(w, r, base+"/", http.StatusSeeOther)
}

// codeIn returns the code in what a person has pasted: the code alone, or the link.
func codeIn(pasted string) string {
	pasted = strings.TrimSpace(pasted)
	if _, code, isLink := strings.Cut(pasted, "?code="); isLink {
		return code
	}
	return pasted
}

// SignOut shows buttons that end the session of a principal, or all of its agent's, and ends them with POST.
func (s *Site) SignOut(w http.ResponseWriter, r *http.Request, p api.Principal) {
	d := signInPage{Title: "Sign out of Parley", Leaves: BaseOf(p) + SignOutPath, Everywhere: p.May(api.Operation{Scope: api.ScopeAdmin}) == nil}
	switch {
	case isRead(r.Method):
		s.showSignIn(w, http.StatusOK, d)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "a session is ended with POST"), http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	if err := s.Sessions.End(w, r, p, d.Everywhere && r.FormValue("everywhere") != ""); err != nil {
		s.Monitor.Failed(r.Context(), "sign out", err)
		s.RefuseSignIn(w, r, err)
		return
	}
	s.showSignIn(w, http.StatusOK, signInPage{Title: "You are signed out", Signed: true})
}

// RefuseSignIn refuses a request without a session: with a page to browsers, with JSON to programs.
func (s *Site) RefuseSignIn(w http.ResponseWriter, r *http.Request, err error) {
	e := api.Shown(err)
	d := signInPage{Title: "Sign in to Parley", Signed: true}
	switch {
	case !strings.Contains(r.Header.Get("Accept"), "text/html"):
		httpd.Refuse(w, err, 0)
		return
	case e.Code != parley.Unauthenticated:
		d = signInPage{Title: "You are not signed in", Message: sanitize.Line(e.Message)}
	case r.URL.Path == SignInPath:
		d = signInPage{Title: "This link has expired", Message: "A link signs in once, within two minutes."}
	}
	s.showSignIn(w, api.HTTPStatus(e.Code), d)
}

// showSignIn writes a signInPage.
func (s *Site) showSignIn(w http.ResponseWriter, status int, d signInPage) {
	buf := s.Bodies.Get()
	defer s.Bodies.Put(buf)
	if err := signInTemplate().Execute(buf, d); err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", signInPolicy)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // the error of a client that has gone away
}

// signInPage is the data of the page for a browser without a session. Script and style are in the page itself: nothing
// else is served without a session.
type signInPage struct {
	Title      string
	Message    string
	Code       string // of the link that the button uses; "" for no button
	Leaves     string // the address that ends the session, on a page that asks whether to
	Everywhere bool   // all sessions may be ended
	Signed     bool   // the browser may have a session all the same, at another address
}

// signInScript redirects a signed-in browser from an address without its session's key to the same address with it.
// The page stored the key in localStorage, which only pages of this origin can read: not those of another port.
const signInScript = `
try {
  const home = localStorage.getItem('parley.home');
  if (home && location.pathname.startsWith(home + '/')) localStorage.removeItem('parley.home');
  else if (home?.startsWith('` + SessionsPath + `') && !location.pathname.startsWith('` + SessionsPath + `')) location.replace(home + location.pathname + location.search + location.hash);
} catch {}
`

const signInStyle = `
:root { color-scheme: light dark; }
html { background: light-dark(#f4f5f8, #14161b); color: light-dark(#1a1d24, #e8eaf0); font: 100%/1.5 system-ui, sans-serif; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; }
main { display: grid; gap: .75rem; max-width: 34rem; padding: 1rem; }
h1, p { margin: 0; }
h1 { font-size: 1.35rem; }
code { font: .875em ui-monospace, monospace; }
input { padding: .45rem .6rem; border: 1px solid light-dark(#767c8c, #8a90a2); border-radius: 10px; background: light-dark(#ffffff, #1d2027); color: inherit; font: inherit; }
button { padding: .5rem 1.25rem; border: 0; border-radius: 10px; background: light-dark(#2f50c0, #9db4ff); color: light-dark(#ffffff, #10162b); font: inherit; font-weight: 600; cursor: pointer; }
:focus-visible { outline: 3px solid light-dark(#2f50c0, #9db4ff); outline-offset: 2px; }
`

// signInTemplate draws a signInPage.
var signInTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("sign-in").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>Parley: sign in</title>
<style>` + signInStyle + `</style>{{if .Signed}}<script>` + signInScript + `</script>{{end}}</head>
<body><main><h1>{{.Title}}</h1>{{with .Message}}<p>{{.}}</p>{{end}}
{{if .Leaves}}<form method="post" action="{{.Leaves}}"><button autofocus>Sign this browser out</button></form>
{{if .Everywhere}}<form method="post" action="{{.Leaves}}"><button name="everywhere" value="yes">Sign out everywhere</button></form>
<p>Everywhere is all browsers that are signed in as this agent. Programs with a token stay: see <code>parley token ls</code>.</p>{{end}}
{{else if .Code}}<form method="post" action="` + SignInPath + `"><input type="hidden" name="code" value="{{.Code}}"><button autofocus>Sign in</button></form>
{{else}}<p>Run <code>parley open</code> in a terminal: it gives a link that signs this browser in.</p>
<form method="post" action="` + SignInPath + `"><label>Or paste a link here <input name="code" autocomplete="off" autocapitalize="off" spellcheck="false" required></label> <input type="submit" value="Sign in"></form>
{{end}}</main></body>
</html>
`))
})

// signInPolicy is the Content-Security-Policy of a signInPage. It allows only the page's own style and script, by hash.
var signInPolicy = "default-src 'none'; style-src '" + PolicyHash(signInStyle) + "'; script-src '" + PolicyHash(signInScript) +
	"'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// PolicyHash returns the source expression by which a policy allows a text.
func PolicyHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
