package gateway

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/bridge"
	"parley/gateway/httpd"
)

// answerStyle has long lines broken: a call beside the window would be one that nobody saw.
const answerStyle = `:root{color-scheme:light dark}body{max-width:60rem;margin:1rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.25rem}pre{margin:1rem 0;padding:.7rem;border:1px solid;border-radius:7px;white-space:pre-wrap;font:.9rem/1.5 ui-monospace,monospace}
bdi,pre{unicode-bidi:isolate}.risk{font-weight:700}form{display:inline-block;margin:0 .7rem .7rem 0}button{font:inherit;padding:.6rem 1.2rem}`

// answerPolicy allows the page of a link its own style and forms, and nothing else.
var answerPolicy = func() string {
	sum := sha256.Sum256([]byte(answerStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
}()

// answerPage asks for a confirmation, since programs follow links too: it shows what is asked, and below all of it the answers
// that the link may give. It shows how the form ended.
var answerPage = template.Must(template.New("answer").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Parley</title><style>` + answerStyle + `</style>
<main><h1><bdi>{{.Title}}</bdi></h1>{{with .Tool}}<p>Tool: <bdi>{{.}}</bdi></p>{{end}}{{with .Rows}}<pre>{{range .}}<span{{if .Risk}} class="risk"{{end}}>{{.Text}}</span>
{{end}}</pre>{{end}}{{with .Text}}<p>{{.}}</p>{{end}}{{range .Answers}}<form method="post" action="{{.Outcome}}"><button value="{{.Outcome}}">{{.Label}}</button></form>{{end}}</main></html>
`))

// serveAnswer answers a form by the right in the path. The request needs no token. Only a POST answers. It reports
// whether the path is such an address.
func (s *Server) serveAnswer(w http.ResponseWriter, r *http.Request) bool {
	path, ok := strings.CutPrefix(r.URL.Path, bridge.AnswerPath)
	if !ok {
		return false
	}
	secret, outcome, _ := strings.Cut(path, "/")
	w.Header().Set("Content-Security-Policy", answerPolicy)
	w.Header().Set("Referrer-Policy", "no-referrer") // the address is a secret
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	label := bridge.LinkLabel(outcome)
	switch {
	case label == "":
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "there is no such answer"), http.StatusNotFound)
	case isRead(r.Method):
		s.askAnswer(w, r, secret, outcome)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "an answer is posted"), http.StatusMethodNotAllowed)
	default:
		s.takeAnswer(w, r, api.AnswerWithRequest{Secret: secret, Outcome: outcome}, label)
	}
	return true
}

// askAnswer shows what a link is about, with the answers that it may give. It changes nothing.
func (s *Server) askAnswer(w http.ResponseWriter, r *http.Request, secret, outcome string) {
	m, outcomes, err := s.backend.FormWith(r.Context(), secret, outcome)
	if err != nil {
		showAnswer(w, api.HTTPStatus(parley.CodeOf(err)), bridge.LinkPage{Title: "There is nothing to answer", Text: parley.AsError(err).Message})
		return
	}
	showAnswer(w, http.StatusOK, bridge.PageOf(&m, outcomes))
}

// takeAnswer answers a form by a right. It writes a page, or JSON for the script that shows notifications.
func (s *Server) takeAnswer(w http.ResponseWriter, r *http.Request, with api.AnswerWithRequest, label string) {
	isProgram := r.Header.Get("Accept") == "application/json"
	var o view.Outcome
	err := s.presses.allow(digestOf(with.Secret), "uses of this link")
	if err == nil {
		o, err = s.backend.AnswerWith(r.Context(), with)
	}
	if err != nil {
		s.monitor.Failed(r.Context(), "answer_with", err)
	}
	switch {
	case isProgram && err != nil:
		httpd.Refuse(w, err, 0)
	case isProgram:
		w.Header()["Content-Type"] = jsonType
		title, text := bridge.Pressed(label, o)
		_ = json.NewEncoder(w).Encode(pressed{with.Outcome, title, text}) // the error is that of a client that has gone away
	case err != nil:
		showAnswer(w, api.HTTPStatus(parley.CodeOf(err)), bridge.LinkPage{Title: "Not answered", Text: parley.AsError(err).Message})
	default:
		title, text := bridge.Pressed(label, o)
		showAnswer(w, http.StatusOK, bridge.LinkPage{Title: title, Text: text})
	}
}

// pressed is what the script that shows notifications is told of an answer.
type pressed struct {
	Answered string `json:"answered"` // the outcome
	Title    string `json:"title"`
	Text     string `json:"text,omitempty"`
}

// digestOf returns what stands for the secret of a link where its uses are counted.
func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return string(sum[:])
}

func showAnswer(w http.ResponseWriter, status int, shown bridge.LinkPage) {
	w.WriteHeader(status)
	_ = answerPage.Execute(w, shown) // the error is that of a client that has gone away
}
