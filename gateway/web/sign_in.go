package web

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
)

// SessionsPath, with the key of a session behind it, begins the addresses of a session's pages.
const SessionsPath = "/s/"

// SignInPath is the address of a link that signs in.
const SignInPath = "/sign-in"

// SignInPage is what a browser without a session is shown. Script and style stand in the page itself: nothing else is
// served without a session.
type SignInPage struct {
	Title      string
	Message    string
	Code       string // of the link that the button uses; "" for no button
	Leaves     string // where signing out is asked for, if that is what it is about
	Everywhere bool   // it may be from all browsers
	Signed     bool   // the browser may be signed in all the same, at another address
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
button { padding: .5rem 1.25rem; border: 0; border-radius: 10px; background: light-dark(#2f50c0, #9db4ff); color: light-dark(#ffffff, #10162b); font: inherit; font-weight: 600; cursor: pointer; }
:focus-visible { outline: 3px solid light-dark(#2f50c0, #9db4ff); outline-offset: 2px; }
`

// SignInTemplate draws a SignInPage.
var SignInTemplate = template.Must(template.New("sign-in").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>Parley: sign in</title>
<style>` + signInStyle + `</style>{{if .Signed}}<script>` + signInScript + `</script>{{end}}</head>
<body><main><h1>{{.Title}}</h1>{{with .Message}}<p>{{.}}</p>{{end}}
{{if .Leaves}}<form method="post" action="{{.Leaves}}"><button autofocus>Sign this browser out</button></form>
{{if .Everywhere}}<form method="post" action="{{.Leaves}}"><button name="everywhere" value="yes">Sign out everywhere</button></form>
<p>Everywhere is all browsers that are signed in as this agent. Programs with a token stay: see <code>parley token ls</code>.</p>{{end}}
{{else if .Code}}<form method="post" action="` + SignInPath + `"><input type="hidden" name="code" value="{{.Code}}"><button autofocus>Sign in</button></form>
{{else}}<p>Run <code>parley open</code> in a terminal: it gives a link that signs this browser in.</p>
{{end}}</main></body>
</html>
`))

// SignInPolicy is the Content-Security-Policy of a SignInPage: it lets in its own style and script alone, by their hashes.
var SignInPolicy = "default-src 'none'; style-src '" + PolicyHash(signInStyle) + "'; script-src '" + PolicyHash(signInScript) +
	"'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// PolicyHash returns the source expression by which a policy lets in a text.
func PolicyHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
