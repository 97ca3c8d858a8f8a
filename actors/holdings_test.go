package actors

import (
	"reflect"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
)

// TestWhatIsHeldIsListed gives an agent references with a message and with answers. It lists them by the names by which each is used, with what is
// left of them, until they are revoked; what it has adopted it lists once. Who gave them lists its own.
func TestWhatIsHeldIsListed(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	held := func(a *Agent) (all []view.Held) {
		t.Helper()
		got, err := ResourcesOf(a).Held(t.Context())
		if err != nil || got.MoreHeld {
			t.Fatal(got.MoreHeld, err)
		}
		return got.Held
	}
	if got := held(fae); len(got) > 0 {
		t.Errorf("it holds %+v", got)
	}
	giveFolder(t, n, "fae", t.TempDir(), capabilities.Facet{Uses: 2, Until: n.now() + 1e9})
	for i, name := range []string{"", "kept"} { // one answer has a name, the other none
		asked, err := fae.Requests().Send(t.Context(), parley.Request{To: "HOST", Text: "all of it", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		awaitMessage(t, n.Host(), asked.Form)
		if _, err := n.Host().Requests().Resolve(t.Context(), capabilities.FormID(asked.Form), "all", capabilities.Facet{Mode: capabilities.ReadOnly}); err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "it is listed", func() bool { return len(held(fae)) == i+2 })
	}
	two := uint32(2)
	check := func(when string, want ...view.Held) {
		t.Helper()
		got := held(fae)
		for i := range got {
			got[i].Words, got[i].Until = "", 0
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", when, got)
		}
	}
	folder := func(name string) view.Held { return view.Held{Name: name, Kind: capabilities.KindFolder} }
	given := folder("@mail/0/notes")
	given.Left = &two
	check("as given", folder("kept"), folder("@mail/1/@value"), given)
	for _, h := range held(fae) {
		if u, err := ResourcesOf(fae).Use(t.Context(), Used{Name: h.Name}); err != nil || u.Holds.Words != h.Words || u.Holds.Facet.Until != h.Until {
			t.Errorf("%+v is described as %+v, %v", h, u.Holds, err)
		}
	}
	if _, err := ResourcesOf(fae).Use(t.Context(), Used{Name: "note", Verb: "list"}); parley.CodeOf(err) != parley.UnknownName || parley.AsError(err).Hint != "parley use lists what is held" {
		t.Errorf("with a wrong name: %v", err)
	}
	if err := fae.Adopt(t.Context(), capabilities.FormNumber(0), "notes", "mine"); err != nil {
		t.Fatal(err)
	}
	if _, err := ResourcesOf(fae).Use(t.Context(), writeA("mine", "")); err != nil {
		t.Fatal(err)
	}
	one := uint32(1)
	adopted := folder("mine")
	adopted.Left = &one
	check("adopted, and used once", folder("kept"), adopted, folder("@mail/1/@value"))

	grants, err := n.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if g.Kind == capabilities.KindFolder {
			if err := n.Host().Names().Revoke(t.Context(), g.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, h := range held(fae) {
		if h.Gone == "" || h.Words != "" {
			t.Errorf("it was revoked: %+v", h)
		}
	}
	if got := held(n.Host()); len(got) != 2 || got[0].Name != "all" || got[1].Name != "notes" || got[0].Gone != "" {
		t.Errorf("the host holds %+v", got)
	}
}
