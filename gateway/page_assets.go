package gateway

import (
	"net/http"
	"strings"

	"parley"
	"parley/gateway/web"
)

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

// asset serves a file.
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
