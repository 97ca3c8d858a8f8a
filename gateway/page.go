package gateway

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/httpd"
	"parley/gateway/web"
)

// pagePolicy is the Content-Security-Policy of pages: a page runs, shows and fetches only what this node serves.
const pagePolicy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// viewing is one request for a page.
type viewing struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	agent api.Agent   // whose mail it is about
	as    string      // the name under which the host holds it; "" is who is signed in
	body  []byte      // of the request
	held  *api.Charge // for the request and the response
}

// servePage answers a request for a page. It reports whether there is such a page.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) bool {
	serve, known := s.pageAt(r.URL.Path)
	if !known {
		return false
	}
	account, k := s.account(r.Context()), api.KindCalls
	if r.URL.Path == eventsPath {
		k = api.KindStreams
	}
	held := api.ChargeOf(account)
	defer held.Release()
	body := s.bodies.Get()
	defer s.bodies.Put(body)
	err := account.Pace()
	if err == nil && !isRead(r.Method) {
		err = s.bodies.Read(w, r, body, held, maxPlainForm)
		r.Body = io.NopCloser(bytes.NewReader(body.Bytes()))
	}
	if err == nil {
		err = account.Take(k, 1)
	}
	if err != nil {
		s.refusePage(w, r, err)
		return true
	}
	defer account.Give(k, 1)
	defer httpd.Survive(w, s.monitor, "page")

	v := &viewing{s: s, w: w, r: r, as: r.URL.Query().Get("as"), body: body.Bytes(), held: held}
	err = s.caller(r.Context()).May(api.Operation{Name: "the page", Scope: api.ScopeRead})
	if err == nil {
		v.agent, err = s.agent(r.Context(), v.as)
	}
	if err == nil {
		w.Header().Set("Content-Security-Policy", pagePolicy)
		err = serve(v)
	}
	if err != nil {
		if parley.CodeOf(err) == parley.Internal && !api.IsContextEnd(err) {
			s.log.LogAttrs(r.Context(), slog.LevelError, "page failed", slog.String("path", r.URL.Path), slog.Any("error", err))
		}
		s.refusePage(w, r, err)
	}
	return true
}

// pageAt returns the handler of a path.
func (s *Server) pageAt(path string) (func(*viewing) error, bool) {
	switch {
	case path == "/":
		return (*viewing).inbox, true
	case path == "/questions":
		return (*viewing).questions, true
	case path == "/agents":
		return (*viewing).agents, true
	case strings.HasPrefix(path, web.AgentsPath):
		return (*viewing).ofAgent, true
	case path == eventsPath:
		return (*viewing).events, true
	case path == previewPath:
		return (*viewing).preview, true
	case path == elementsPath, path == elementTypesPath:
		return (*viewing).elements, true
	case strings.HasPrefix(path, formsPath):
		return (*viewing).form, true
	case strings.HasPrefix(path, web.AssetsPath):
		return (*viewing).asset, true
	}
	return nil, false
}

// readsOnly refuses all methods but GET and HEAD.
func (v *viewing) readsOnly() error {
	if v.r.Method == http.MethodGet || v.r.Method == http.MethodHead {
		return nil
	}
	v.w.Header().Set("Allow", "GET, HEAD")
	return parley.Refuse(parley.InvalidArgument, "pages are read with GET")
}

// maxShownNames is how many names a page offers where one is typed.
const maxShownNames = 1000

// show renders a page, and then writes it.
func (v *viewing) show(status int, name string, f web.Layout) error {
	f.As, f.Here, f.Base, f.Reader = v.as, v.r.URL.Path, v.s.pagePrefix(v.r.Context()), v.s.caller(v.r.Context()).ID()
	var err error
	if f.Names, err = v.agent.Names().List(v.r.Context(), ""); err != nil {
		return err
	}
	f.Names = f.Names[:min(len(f.Names), maxShownNames)]
	return v.render(status, name, f)
}

// render renders a template, and then writes it. It charges the reader for it.
func (v *viewing) render(status int, name string, with any) error {
	buf := v.s.bodies.Get()
	defer v.s.bodies.Put(buf)
	if err := v.execute(buf, name, with); err != nil {
		return err
	}
	v.s.sendPage(v.w, status, buf.Bytes())
	return nil
}

func (v *viewing) execute(buf *bytes.Buffer, name string, with any) error {
	if err := v.held.Account().Build(v.r.Context()); err != nil {
		return err
	}
	defer v.held.Account().Built()
	if err := v.s.page.Templates.ExecuteTemplate(buf, name, with); err != nil {
		return err
	}
	return v.held.Add(int64(buf.Len()))
}

func (s *Server) render(w http.ResponseWriter, status int, name string, with any) error {
	buf := s.bodies.Get()
	defer s.bodies.Put(buf)
	if err := s.page.Templates.ExecuteTemplate(buf, name, with); err != nil {
		return err
	}
	s.sendPage(w, status, buf.Bytes())
	return nil
}

func (s *Server) sendPage(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	s.bodies.Write(w, body)
}

// fragment renders one message as it stands in a page.
func (s *Server) fragment(c web.Card) (string, error) {
	var buf bytes.Buffer
	err := s.page.Templates.ExecuteTemplate(&buf, "message", c)
	return buf.String(), err
}

// refusePage writes an error: a page for browsers, JSON for programs.
func (s *Server) refusePage(w http.ResponseWriter, r *http.Request, err error) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		httpd.Refuse(w, err, 0)
		return
	}
	e := api.Shown(err)
	if err := s.render(w, api.HTTPStatus(e.Code), "refusal.html", web.Layout{Base: s.pagePrefix(r.Context()), Main: e}); err != nil {
		httpd.Refuse(w, err, 0)
	}
}

// pagePrefix returns the beginning of the addresses of pages, which has the key of the session.
func (s *Server) pagePrefix(ctx context.Context) string { return prefixOf(s.caller(ctx)) }

// local is an agent of this node that the reader may act as.
type local struct {
	name  string // "" is who is signed in
	agent api.Agent
}

// maxLocals bounds the agents that the page looks at.
const maxLocals = 500

// locals returns the agent that is signed in and, for the node's host, the agents of this node that it holds.
func (s *Server) locals(ctx context.Context) ([]local, error) {
	self, err := s.agent(ctx, "")
	if err != nil {
		return nil, err
	}
	found := []local{{agent: self}}
	if !self.IsHost() {
		return found, nil
	}
	names, err := self.Names().List(ctx, "")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{self.ID().String(): true}
	for _, name := range names {
		if strings.HasPrefix(name, "@") || len(found) > maxLocals {
			continue
		}
		agent, err := s.agent(ctx, name)
		if err != nil || seen[agent.ID().String()] { // it is no agent, one of another node, or a second name for one
			continue
		}
		seen[agent.ID().String()] = true
		found = append(found, local{name: name, agent: agent})
	}
	return found, nil
}

// card draws a message. Names are those of the agent whose mail it is in.
func (s *Server) card(ctx context.Context, l local, e view.Message, t *web.Tried) web.Card {
	return web.NewCard(s.pagePrefix(ctx), l.name, e, t, s.namer(ctx, l.agent))
}

// maxNamed bounds the names that are looked through for what a reference is called.
const maxNamed = 500

// namer says what an agent calls a reference's target. It asks for the names once there is a reference.
func (s *Server) namer(ctx context.Context, a api.Agent) func(capabilities.Ref) string {
	var known map[capabilities.ID]string
	return func(r capabilities.Ref) string {
		if known == nil {
			known = heldNames(ctx, a)
		}
		if name, ok := known[r.Target]; ok {
			return name
		}
		return string(r.Kind) + " " + view.ShortID(r.Target)
	}
}

func heldNames(ctx context.Context, a api.Agent) map[capabilities.ID]string {
	known := map[capabilities.ID]string{}
	names, err := a.Names().List(ctx, "")
	if err != nil {
		return known // then it is shown by its ID
	}
	for _, name := range names[:min(len(names), maxNamed)] {
		v, err := a.Names().Show(ctx, name, false)
		if err != nil {
			continue
		}
		if r, ok := v.AsRef(); ok && known[r.Target] == "" {
			known[r.Target] = name
		}
	}
	return known
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// The addresses of the elements for other pages, which stay when the files change.
const (
	elementsPath     = "/elements.js"
	elementTypesPath = "/elements.d.ts"
)

// elements leads to the module or its types as they are in this build. What the module imports is beside it there.
func (v *viewing) elements() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	to := v.s.page.Assets.URL(v.r.URL.Path[1:])
	v.w.Header().Set("Location", to[1:]) // relative: a proxy may have the node under a path
	v.w.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

// asset serves a file of the page.
func (v *viewing) asset() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	a := v.s.page.Assets
	hash, name, _ := strings.Cut(strings.TrimPrefix(v.r.URL.Path, web.AssetsPath), "/")
	file, known := a.Files[name]
	if !known || hash != a.Hash {
		return parley.Refuse(parley.NoSuchMessage, "there is nothing at %.80q", v.r.URL.Path)
	}
	v.w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	file.Serve(v.w, v.r)
	return nil
}
