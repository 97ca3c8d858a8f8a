package web

import (
	"encoding/json"
	"strings"
)

// ManifestPath is the address of the manifest with which a browser installs the page as an app.
const ManifestPath = "/manifest.webmanifest"

// manifest is a web app manifest. Its addresses are relative to its own, since a proxy may serve the node under a path.
type manifest struct {
	Name       string         `json:"name"`
	ShortName  string         `json:"short_name"`
	Start      string         `json:"start_url"`
	Scope      string         `json:"scope"`
	Display    string         `json:"display"`
	Background string         `json:"background_color"`
	Theme      string         `json:"theme_color"`
	Icons      []manifestIcon `json:"icons"`
}

// manifestIcon is an icon of the app.
type manifestIcon struct {
	Source  string `json:"src"`
	Sizes   string `json:"sizes"`
	Type    string `json:"type"`
	Purpose string `json:"purpose"`
}

// manifest writes the manifest. The app begins at the address without a session, which redirects to the browser's
// latest session. So it outlives the session in which it was installed.
func (p *page) manifest() error {
	if err := p.readsOnly(); err != nil {
		return err
	}
	top := strings.Repeat("../", strings.Count(p.base, "/"))
	icon := func(name, sizes, kind, purpose string) manifestIcon {
		return manifestIcon{Source: p.site.Assets.URL(name)[1:], Sizes: sizes, Type: kind, Purpose: purpose}
	}
	b, err := json.Marshal(manifest{
		Name: "Parley", ShortName: "Parley", Start: top + "questions", Scope: "./" + top, Display: "standalone",
		Background: "#f4f5f8", Theme: "#3355c8",
		Icons: []manifestIcon{
			icon("icon-192.png", "192x192", "image/png", "any"), icon("icon-512.png", "512x512", "image/png", "maskable"), icon("icon.svg", "any", "image/svg+xml", "any"),
		},
	})
	if err != nil {
		return err
	}
	p.w.Header().Set("Content-Type", "application/manifest+json")
	_, _ = p.w.Write(b) // the error is that of a client that has gone away
	return nil
}
