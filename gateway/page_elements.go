package gateway

import "net/http"

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
	to := v.s.page.assets.url(v.r.URL.Path[1:])
	v.w.Header().Set("Location", to[1:]) // relative: a proxy may have the node under a path
	v.w.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}
