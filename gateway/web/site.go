package web

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/httpd"
	"parley/gateway/queue"
	"parley/gateway/sanitize"
)

//go:embed assets
var embedded embed.FS

// Options configure a Site.
type Options struct {
	Backend  api.Backend
	Sessions Sessions
	Devices  Devices // nil for none
	Bodies   *httpd.Bodies
	Monitor  api.Monitor
	Stopping context.Context // ends the streams of events
}

// Site serves the pages.
type Site struct {
	Options
	Assets    *Assets
	templates *template.Template
	readings  queue.Readings // of the calls that lists show
}

// New reads the templates and assets, and returns a Site of them.
func New(o Options) (*Site, error) {
	a, err := newAssets(embedded, "assets/static")
	if err != nil {
		return nil, err
	}
	funcs := template.FuncMap{
		"seen": sanitize.Line, "lines": sanitize.Lines, "asset": a.URL, "when": readable, "party": partyOf, "ends": endsOf, "headline": headlineOf, "delay": view.ShortDelay,
		"sender": func(m view.Message) party { return senderOf(&m) }, "author": func(m view.Message) party { return authorOf(&m) },
	}
	t, err := template.New("page").Funcs(funcs).ParseFS(embedded, "assets/templates/*.html")
	if err != nil {
		return nil, err
	}
	return &Site{Options: o, Assets: a, templates: t}, nil
}

// pagePolicy is the Content-Security-Policy of pages. A page may run, show and fetch only what this node serves.
const pagePolicy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; manifest-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Has reports whether the site has a page, a file or a stream at a path. A session's key is no part of the path.
func (s *Site) Has(path string) bool {
	_, known := handlerOf(path)
	return known
}

// handlerOf returns the handler of a path.
func handlerOf(path string) (func(*page) error, bool) {
	switch {
	case isList(path):
		return (*page).inbox, true
	case path == "/agents":
		return (*page).agents, true
	case strings.HasPrefix(path, AgentsPath):
		return func(p *page) error { return (&agentRequest{page: p}).serve() }, true
	case path == AccessPath:
		return showAccess, true
	case path == FindPath:
		return find, true
	case path == ComposePath:
		return compose, true
	case path == TopicsPath, strings.HasPrefix(path, TopicsPath+"/"):
		return topics, true
	case path == SettingsPath:
		return showSettings, true
	case path == PasskeysPath:
		return showPasskeys, true
	case path == DevicesPath:
		return func(p *page) error { return deviceSettings{p}.serve() }, true
	case path == EventsPath:
		return (*page).events, true
	case path == ManifestPath:
		return (*page).manifest, true
	case path == PreviewPath:
		return (*page).preview, true
	case path == ElementsPath, path == ElementTypesPath:
		return (*page).elements, true
	case strings.HasPrefix(path, FormsPath):
		return (*page).form, true
	case strings.HasPrefix(path, AssetsPath):
		return (*page).asset, true
	}
	return nil, false
}

// Serve answers a request of a principal for a path that the site has, or says that it has none.
func (s *Site) Serve(w http.ResponseWriter, r *http.Request, by api.Principal) {
	defer httpd.Survive(w, s.Monitor, "page")
	held := api.ChargeOf(by.Account())
	defer held.Release()
	body := s.Bodies.Get()
	defer s.Bodies.Put(body)
	p := &page{site: s, w: w, r: r, principal: by, base: BaseOf(by), as: r.URL.Query().Get("as"), held: held}
	if err := s.admit(p, body); err != nil {
		p.refuse(err)
		return
	}
	kind := kindOf(r)
	if err := by.Account().Take(kind, 1); err != nil {
		p.refuse(err)
		return
	}
	defer by.Account().Give(kind, 1)
	if err := s.serve(p); err != nil {
		if parley.CodeOf(err) == parley.Internal && !api.IsContextEnd(err) {
			s.Monitor.Log.LogAttrs(r.Context(), slog.LevelError, "page failed", slog.String("path", r.URL.Path), slog.Any("error", err))
		}
		p.refuse(err)
	}
}

// kindOf returns the kind of resource that a request takes a place of.
func kindOf(r *http.Request) api.Kind {
	if r.URL.Path == EventsPath {
		return api.KindStreams
	}
	return api.KindCalls
}

// admit paces the principal, and reads the body of the request into a buffer.
func (s *Site) admit(p *page, body *bytes.Buffer) error {
	if err := p.principal.Account().Pace(); err != nil || isRead(p.r.Method) {
		return err
	}
	err := s.Bodies.Read(p.w, p.r, body, p.held, maxPlainForm)
	p.body = body.Bytes()
	p.r.Body = io.NopCloser(bytes.NewReader(p.body))
	return err
}

// serve looks up the agent that a page is about, and calls the handler of its path.
func (s *Site) serve(p *page) error {
	err := p.principal.May(pageOperation(api.ScopeRead))
	if err != nil {
		return err
	}
	if p.agent, err = p.agentOf(p.as); err != nil {
		return err
	}
	p.w.Header().Set("Content-Security-Policy", pagePolicy)
	handle, known := handlerOf(p.r.URL.Path)
	if !known {
		return parley.Refuse(parley.NoSuchMessage, "there is nothing at %.80q", p.r.URL.Path)
	}
	return handle(p)
}

// pageOperation returns the operation for which a principal needs a scope to see or use a page.
func pageOperation(needs api.Scope) api.Operation {
	return api.Operation{Name: "the page", Scope: needs}
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// BaseOf returns the beginning of the addresses of a principal's pages. It has the key of the session, if there is one.
func BaseOf(p api.Principal) string {
	if p.SessionKey() == "" {
		return ""
	}
	return SessionsPath + p.SessionKey()
}

// render writes a page that a template makes.
func (s *Site) render(w http.ResponseWriter, status int, name string, data any) error {
	buf := s.Bodies.Get()
	defer s.Bodies.Put(buf)
	if err := s.templates.ExecuteTemplate(buf, name, data); err != nil {
		return err
	}
	s.send(w, status, buf.Bytes())
	return nil
}

func (s *Site) send(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	s.Bodies.Write(w, body)
}

// fragment returns the HTML of one row of a list.
func (s *Site) fragment(r row) (string, error) {
	var buf bytes.Buffer
	err := s.templates.ExecuteTemplate(&buf, "row", r)
	return buf.String(), err
}
