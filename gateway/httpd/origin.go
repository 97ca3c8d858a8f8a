package httpd

import (
	"net/http"
	"net/url"
	"strings"

	"parley"
)

// ErrOtherSite refuses a request that a page of another site sends.
var ErrOtherSite = parley.Refuse(parley.NotPermitted, "requests from other sites are refused")

// CheckOrigin refuses with NOT_PERMITTED what another site's page sends. Browsers say whose page it is, and other
// programs say nothing. That an upgrade is a GET, which is let through elsewhere, makes it no safer: it changes
// nothing, but what comes after it does.
func CheckOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return ErrOtherSite
	}
	return nil
}
