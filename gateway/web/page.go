package web

import (
	"embed"
	"html/template"

	"parley/capabilities"
	"parley/gateway/sanitize"
)

//go:embed assets
var embedded embed.FS

// Page draws pages.
type Page struct {
	Assets    *Assets
	Templates *template.Template
}

// New reads the templates and assets.
func New() (*Page, error) {
	a, err := newAssets(embedded, "assets/static")
	if err != nil {
		return nil, err
	}
	funcs := template.FuncMap{
		"seen": sanitize.Line, "lines": sanitize.Lines, "asset": a.URL, "when": Readable, "party": partyOf,
	}
	t, err := template.New("page").Funcs(funcs).ParseFS(embedded, "assets/templates/*.html")
	if err != nil {
		return nil, err
	}
	return &Page{Assets: a, Templates: t}, nil
}

// Layout is what every page shows around its own part.
type Layout struct {
	Title  string
	Base   string // what the addresses of all pages begin with
	As     string
	Reader capabilities.ID // the agent that is signed in
	Count  int             // of questions that wait; 0 if the stream of events is to tell it
	Names  []string        // that the agent holds
	Cursor string          // from where to follow the agent's mail; "" if the page does not show it
	Here   string          // the path
	Main   any
}

// Stream is the newest part of an agent's mail, or the part before a number.
type Stream struct {
	Cards  []Card
	Before uint64 // there is more before this number; 0 if there is none
	Newest bool   // it is the end of the mail
}
