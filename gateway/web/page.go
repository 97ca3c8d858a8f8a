package web

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/httpd"
	"parley/gateway/people"
)

// layout is the data of the template that all pages share.
type layout struct {
	Title  string
	Base   string // the beginning of the addresses of all pages
	As     string
	Reader capabilities.ID // the agent that is signed in
	Count  string          // of rows that wait, as atLeast has them; "" if the stream of events is to tell it
	Names  []string        // that the agent holds
	Here   string          // the path
	Left   *leftPane       // nil if another pane is asked for alone
	List   *mailList       // nil for a page without a list
	Alone  bool            // the address is that of the item, not of the list
	Main   any             // the data of the page's own template
}

// View returns the panes of the page: list or item, where a narrow window shows one of them, or page.
func (l layout) View() string {
	switch {
	case l.List == nil && !l.Alone:
		return "page"
	case l.Alone:
		return "item"
	}
	return "list"
}

// Place returns the place of the rail to which the page belongs; "" for none.
func (l layout) Place() string {
	switch {
	case l.Here == AccessPath:
		return "access"
	case l.List != nil && l.List.View == pastMail:
		return "history"
	case l.List != nil && (l.List.View == needsReader || l.List.View == snoozedMail):
		return "needs"
	case l.List != nil || strings.HasPrefix(l.Here, FormsPath) || l.Here == ComposePath || strings.HasPrefix(l.Here, TopicsPath):
		return "mail"
	case l.Here == SettingsPath, l.Here == DevicesPath, l.Here == PasskeysPath, l.Here == AgentPath(""):
		return "settings"
	case strings.HasPrefix(l.Here, "/agents"):
		return "agents"
	}
	return ""
}

// Cursor returns the cursor from which to follow the mail of the list; "" if there is none to follow.
func (l layout) Cursor() string {
	if l.List == nil || !l.List.Newest {
		return ""
	}
	return l.List.Cursor
}

// page is one request for a page, and its response.
type page struct {
	site      *Site
	w         http.ResponseWriter
	r         *http.Request
	principal api.Principal // the reader
	base      string        // the beginning of the addresses of the reader's pages
	agent     api.Agent     // whose mail the page is about
	as        string        // the reader's name for that agent; "" for the reader's own mail
	body      []byte        // of the request
	held      *api.Charge   // for the request and the response

	statusOf []view.AgentStatus // that the page can name, and when it looked
	looked   time.Time
	named    *people.Names // nil before the first

	waiting   map[string][]view.Message // the forms that wait in the mail of agents, by the reader's name for them
	asked     []question                // that wait for the reader, in all mail that it has; nil before they are looked for
	askedMore bool                      // there are more than those
}

func (p *page) ctx() context.Context { return p.r.Context() }

// Call implements api.Client for the reader. It refuses what the reader may not do.
func (p *page) Call(ctx context.Context, operation string, request, response any) error {
	if err := p.principal.May(p.site.Backend.Operations()[operation]); err != nil {
		return err
	}
	return api.Within{Caller: p.site.Backend, Principal: p.principal}.Call(ctx, operation, request, response)
}

// agentOf returns the agent that the reader holds under a name; "" is the reader's own.
func (p *page) agentOf(name string) (api.Agent, error) {
	return p.site.Backend.Agent(p.ctx(), p.principal, name)
}

// readsOnly refuses all methods but GET and HEAD.
func (p *page) readsOnly() error {
	if isRead(p.r.Method) {
		return nil
	}
	p.w.Header().Set("Allow", "GET, HEAD")
	return parley.Refuse(parley.InvalidArgument, "pages are read with GET")
}

// maxShownNames bounds the names that a page offers where one is typed.
const maxShownNames = 1000

// show renders a page, and then writes it.
func (p *page) show(status int, name string, f layout) error {
	f.As, f.Here, f.Base, f.Reader = p.as, p.r.URL.Path, p.base, p.principal.ID()
	var err error
	if f.Names, err = p.agent.Names().List(p.ctx(), "", "", maxShownNames); err != nil {
		return err
	}
	if p.pane() == "" || p.pane() == "left" {
		if f.Left, err = p.left(); err != nil {
			return err
		}
		f.nameAgent()
	}
	return p.render(status, name, f)
}

// nameAgent names the agent by which the list is filtered.
func (l layout) nameAgent() {
	if l.List == nil {
		return
	}
	for _, a := range l.Left.Agents {
		if a.ID == l.List.Agent {
			l.List.AgentName = a.Name
		}
	}
}

// pane returns the only pane that a script asks for: left, list or item; "" for the whole page.
func (p *page) pane() string { return p.r.URL.Query().Get("pane") }

// render renders a template, and then writes it. It charges the reader for the size.
func (p *page) render(status int, name string, data any) error {
	buf := p.site.Bodies.Get()
	defer p.site.Bodies.Put(buf)
	if err := p.execute(buf, name, data); err != nil {
		return err
	}
	p.site.send(p.w, status, buf.Bytes())
	return nil
}

func (p *page) execute(buf *bytes.Buffer, name string, data any) error {
	built, err := p.held.Account().Build(p.ctx())
	if err != nil {
		return err
	}
	defer built()
	err = p.held.Account().InTurn(p.ctx(), func() error { return p.site.templates.ExecuteTemplate(buf, name, data) })
	if err != nil {
		return err
	}
	return p.held.Add(int64(buf.Len()))
}

// refuse writes an error: as a page to browsers, as JSON to programs.
func (p *page) refuse(err error) {
	if !strings.Contains(p.r.Header.Get("Accept"), "text/html") {
		httpd.Refuse(p.w, err, 0)
		return
	}
	e := api.Shown(err)
	if err := p.site.render(p.w, api.HTTPStatus(e.Code), "refusal.html", layout{Title: refusalTitle(e.Code), Base: p.base, Main: e}); err != nil {
		httpd.Refuse(p.w, err, 0)
	}
}

// refusalTitle returns what a page with an error is headed by: what went wrong, as far as that is known.
func refusalTitle(code parley.Code) string {
	switch code {
	case parley.NoSuchMessage:
		return "There is nothing here"
	case parley.NotPermitted, parley.Unauthenticated:
		return "You may not see this"
	case parley.Internal:
		return "Something went wrong"
	}
	return "This cannot be done"
}

// maxNamed bounds the names that are looked through for the name of a reference.
const maxNamed = 500

// namer returns a function that names a reference's target as an agent does. It asks for the names with the first
// reference.
func namer(ctx context.Context, a api.Agent) func(capabilities.Ref) string {
	var known map[capabilities.ID]string
	return func(r capabilities.Ref) string {
		if known == nil {
			known = heldNames(ctx, a)
		}
		if name, ok := known[r.Target]; ok {
			return name
		}
		return unnamed(r)
	}
}

// heldNames returns the names of the references that an agent holds, by target.
func heldNames(ctx context.Context, a api.Agent) map[capabilities.ID]string {
	known := map[capabilities.ID]string{}
	names, err := a.Names().List(ctx, "", "", maxNamed)
	if err != nil {
		return known // then a reference is shown by its ID
	}
	for _, name := range names {
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
