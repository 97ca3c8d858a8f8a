package gateway

import (
	"strings"
	"testing"
	"time"

	"parley/actors"
	"parley/mailbox"
)

// TestLeasesAreOnThePage shows who has leased what, with the holder's words escaped.
func TestLeasesAreOnThePage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	holder, err := h.node.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, body := h.get("/agents", "text/html"); strings.Contains(body, "Leases") {
		t.Error("the page has leases, and there are none")
	}
	for _, c := range []mailbox.AskLease{
		{Patterns: []string{"/srv/shop/src/**"}, For: "<b>rounding</b>", Length: time.Hour},
		{Patterns: []string{"port:3000"}, Length: time.Hour},
	} {
		if _, err := actors.LeasesOf(holder).Ask(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := actors.LeasesOf(h.node.Host()).Ask(t.Context(), mailbox.AskLease{Patterns: []string{"port:3000"}, Length: time.Hour, Wait: time.Hour}); err != nil {
		t.Fatal(err)
	}
	_, _, body := h.get("/agents", "text/html")
	for _, want := range []string{"Leases", "<bdi>fae</bdi> has <code>/srv/shop/src/**</code>", "&lt;b&gt;rounding&lt;/b&gt;", "waits behind 2 for <code>port:3000</code>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
