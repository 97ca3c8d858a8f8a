package coding

import (
	"fmt"
	"testing"
	"time"

	"parley/actors"
	"parley/gateway/api"
	"parley/mailbox"
)

// TestLeasesAreToldOncePerChange has the host lease files of the folder of a session: it is told at its next prompt, once, and again when
// they change; at a start, of all that are held. What is elsewhere, or is no file, is not told; of very many some are.
func TestLeasesAreToldOncePerChange(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	one, _ := f.enter("a", f.self, api.MomentStart, "startup")
	host := actors.LeasesOf(f.node.Host())
	lease := func(pattern string) uint64 {
		t.Helper()
		got, err := host.Ask(t.Context(), mailbox.AskLease{Patterns: []string{pattern}, Length: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return got.Lease
	}
	told := func(moment string) string {
		t.Helper()
		got, err := f.all.LeaseNews(t.Context(), one, "/w/shop", api.MailMoment{Moment: moment})
		switch {
		case err != nil:
			t.Fatal(err)
		case got == nil:
			return ""
		}
		return fmt.Sprintf("%d and %d more", len(got.Leases), got.More)
	}
	expect := func(moment, want string) {
		t.Helper()
		if got := told(moment); got != want {
			t.Errorf("at %s it is told of %q, want %q", moment, got, want)
		}
	}
	expect(api.MomentStart, "")
	lease("/w/other/**")
	lease("port:80")
	expect(api.MomentPrompt, "")
	first := lease("/w/shop/src/**")
	expect(api.MomentStop, "")
	expect(api.MomentCalls, "1 and 0 more")
	expect(api.MomentCalls, "")
	expect(api.MomentPrompt, "")
	expect(api.MomentStart, "1 and 0 more")
	if err := host.End(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	expect(api.MomentCalls, "") // so soon
	expect(api.MomentPrompt, "0 and 0 more")
	expect(api.MomentPrompt, "")
	for i := range 20 {
		lease(fmt.Sprintf("/w/shop/%d", i))
	}
	expect(api.MomentPrompt, "8 and 12 more")
}
