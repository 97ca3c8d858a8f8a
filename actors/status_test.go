package actors

import (
	"context"
	"maps"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

func TestStatusShowsAgent(t *testing.T) {
	n := openNode(t, t.TempDir())
	labels := map[string]string{"team": "site"}
	fae, err := n.Host().Make(t.Context(), NewAgent{Kind: events.Guest, Name: "fae", Title: "Repairs things", Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, fae, parley.Form{})
	p, err := fae.Status(t.Context())
	if err != nil || p.Title != "Repairs things" || !maps.Equal(p.Labels, labels) || p.Status != "idle" || p.Asks != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	p.Labels["team"] = "other"
	if again, err := fae.Status(t.Context()); err != nil || again.Labels["team"] != "site" {
		t.Errorf("a reader changed the labels: %+v, %v", again, err)
	}
	if _, err := n.Host().Decline(t.Context(), capabilities.FormNumber(0), 0, ""); err != nil {
		t.Fatal(err)
	}
	if p, err := fae.Status(t.Context()); err != nil || p.Asks != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestBeyondReportsChangesWithoutMail(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	before, err := fae.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	versions := make(chan uint64, 1)
	go func() {
		version, err := fae.Beyond(ctx, before)
		if err != nil {
			version = 0
		}
		versions <- version
	}()
	eventually.Holds(t, "it waits", func() bool { return n.changed.has(fae.ID()) })
	if err := fae.Names().Store(t.Context(), "note", `"x"`); err != nil {
		t.Fatal(err)
	}
	if got := <-versions; got != before+1 {
		t.Errorf("version %d, want %d", got, before+1)
	}
	cancel()
	if got, err := fae.Beyond(ctx, before+1); err != nil || got != before+1 {
		t.Errorf("after cancellation: %d, %v", got, err)
	}
}
