package mailbox_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// resourceWorld is the mailbox of a folder, and what is known of it by what it has accepted.
type resourceWorld struct {
	t      rapid.TB
	s      *mailbox.State
	now    capabilities.Time
	next   uint16
	host   capabilities.ID
	agents []capabilities.ID
	made   capabilities.Facet
	grants []*worldGrant
	uses   []*worldUse
}

type worldGrant struct {
	capabilities.Grant
	parent  *worldGrant // nil if the host gave it
	revoked bool
}

type worldUse struct {
	id     capabilities.ID
	chain  []*worldGrant // the holder's first
	at     capabilities.Time
	denied bool
	ended  bool
	asks   capabilities.ID
	out    bool
}

func newResourceWorld(t rapid.TB, made capabilities.Facet) *resourceWorld {
	w := &resourceWorld{t: t, now: 1_000, made: made}
	w.host = w.id()
	for range 3 {
		w.agents = append(w.agents, w.id())
	}
	id := w.id()
	w.s = mailbox.New(id)
	c := mailbox.MakeResource{Resource: id, Name: "notes", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: "/srv/notes", Facet: made}}
	host := mailbox.New(w.host)
	host.Profile.Host = w.host
	w.apply(c.Genesis(host, w.now)...)
	return w
}

func (w *resourceWorld) id() capabilities.ID {
	w.next++
	return capabilities.ID{ULID: ulid.ULID{13: byte(w.next >> 8), 14: byte(w.next), 15: 1}, Node: capabilities.NodeOf([capabilities.NodeKeySize]byte{1})}
}

func (w *resourceWorld) apply(evs ...events.Event) {
	for _, e := range evs {
		if err := w.s.Apply(events.Recorded{At: w.now, Event: e}); err != nil {
			w.t.Fatalf("%T: %v", e, err)
		}
	}
}

func (w *resourceWorld) decide(c mailbox.Command) ([]events.Event, error) {
	evs, err := w.s.Decide(c, w.now, w.id)
	if err == nil {
		w.apply(evs...)
	}
	return evs, err
}

func facetOf(t *rapid.T, label string) capabilities.Facet {
	if rapid.Bool().Draw(t, label+" full") {
		return capabilities.Facet{}
	}
	return capabilities.Facet{
		Mode: rapid.SampledFrom([]capabilities.Mode{capabilities.Full, capabilities.Full, capabilities.ReadOnly}).Draw(t, label+" mode"), Uses: uint32(rapid.IntRange(0, 3).Draw(t, label+" uses")),
		Below: rapid.SampledFrom([]string{"", "", "", "a", "a/b"}).Draw(t, label+" below"), Until: capabilities.Time(rapid.SampledFrom([]int{0, 0, 0, 2_000, 9_000}).Draw(t, label+" until")),
		Rate: rapid.SampledFrom([]capabilities.Rate{{}, {}, {Uses: 1, Seconds: 1}, {Uses: 2, Seconds: 10}}).Draw(t, label+" rate"), Ask: rapid.IntRange(0, 4).Draw(t, label+" ask") == 0,
	}
}

// chain returns a grant and those that it derives from.
func (g *worldGrant) chain() (all []*worldGrant) {
	for ; g != nil; g = g.parent {
		all = append(all, g)
	}
	return all
}

// live reports whether neither the grant nor one that it derives from is revoked.
func (g *worldGrant) live() bool {
	for _, one := range g.chain() {
		if one.revoked {
			return false
		}
	}
	return true
}

func (w *resourceWorld) mint(t *rapid.T) {
	var parent *worldGrant
	g := capabilities.Grant{ID: w.id(), Target: w.s.ID, Kind: capabilities.KindFolder, By: w.host, To: rapid.SampledFrom(w.agents).Draw(t, "to"), At: w.now}
	via := capabilities.ID{}
	if i := rapid.IntRange(-1, len(w.grants)-1).Draw(t, "parent"); i >= 0 {
		parent = w.grants[i]
		g.By, via = parent.To, parent.ID
		if rapid.IntRange(0, 4).Draw(t, "lies") == 0 {
			g.By = rapid.SampledFrom(append(w.agents, w.host)).Draw(t, "liar")
		}
	}
	g.Facet = facetOf(t, "facet")
	if parent != nil && rapid.Bool().Draw(t, "narrows") {
		g.Facet = parent.Facet.Narrow(g.Facet)
	}
	if _, err := w.decide(mailbox.MintCapability{Grant: g, Via: via}); err != nil {
		return
	}
	switch {
	case parent == nil && g.By != w.host:
		t.Fatalf("%s gave what it does not hold", g.By)
	case parent != nil && (g.By != parent.To || !parent.live() || !parent.Facet.Covers(g.Facet)):
		t.Fatalf("%+v was derived from %+v, live %t", g, parent.Grant, parent.live())
	}
	w.grants = append(w.grants, &worldGrant{Grant: g, parent: parent})
}

// revoke revokes a grant as its giver does. From then on nothing may be used by it.
func (w *resourceWorld) revoke(t *rapid.T) {
	if len(w.grants) == 0 {
		return
	}
	g := rapid.SampledFrom(w.grants).Draw(t, "revoked")
	if _, err := w.decide(mailbox.RecordRevocation{Grant: g.ID, By: g.By, Date: w.now}); err != nil {
		t.Fatal(err)
	}
	g.revoked = true
	for _, u := range w.uses { // what waits for a decision by it ends
		if !u.out && !u.ended && slices.Contains(u.chain, g) {
			u.ended, u.denied = true, true
		}
	}
}

// used counts the uses by a grant, and those since a time.
func (w *resourceWorld) used(g *worldGrant, since capabilities.Time) (all, recent int) {
	for _, u := range w.uses {
		for _, one := range u.chain {
			if one != g {
				continue
			}
			if !u.denied {
				all++
			}
			if u.at > since {
				recent++
			}
		}
	}
	return all, recent
}

func (w *resourceWorld) use(t *rapid.T) {
	by, grant := rapid.SampledFrom(append(w.agents, w.host)).Draw(t, "user"), (*worldGrant)(nil)
	c := mailbox.BeginUse{Use: w.id(), By: by, Words: "read", Digest: []byte{1}}
	if len(w.grants) > 0 && rapid.IntRange(0, 9).Draw(t, "by grant") > 0 {
		grant = rapid.SampledFrom(w.grants).Draw(t, "grant")
		c.Grant = grant.ID
		if rapid.IntRange(0, 4).Draw(t, "own") > 0 {
			c.By = grant.To
		}
	}
	c.Action = capabilities.Action{Verb: "v", Writes: rapid.IntRange(0, 3).Draw(t, "writes") == 0, Path: rapid.SampledFrom([]string{"a/b/c", "a/b/c", "a/b", "a", "x"}).Draw(t, "path")}
	if rapid.IntRange(0, 3).Draw(t, "narrower") == 0 {
		c.Facet = capabilities.Facet{Below: "a/b"}
	}
	if _, err := w.decide(c); err != nil {
		return
	}
	u := &worldUse{id: c.Use, at: w.now, chain: grant.chain()}
	if grant == nil && c.By != w.host || grant != nil && c.By != grant.To {
		t.Fatalf("%s used what it does not hold", c.By)
	}
	if err := w.made.Narrow(c.Facet).Allows(c.Action, w.now); err != nil {
		t.Fatalf("%+v is more than there is: %v", c.Action, err)
	}
	for _, g := range u.chain {
		if g.revoked {
			t.Fatalf("a use by %s after %s was revoked", grant.ID, g.ID)
		}
		if err := g.Facet.Allows(c.Action, w.now); err != nil {
			t.Fatalf("%+v by %+v: %v", c.Action, g.Facet, err)
		}
		all, recent := w.used(g, w.now-capabilities.Time(g.Facet.Rate.Seconds)*1000)
		if m := g.Facet.Uses; m != 0 && all >= int(m) {
			t.Fatalf("a use after %d of %d", all, m)
		}
		if m := g.Facet.Rate.Uses; m != 0 && recent >= int(m) {
			t.Fatalf("a use after %d in %s", recent, g.Facet.Rate)
		}
		if g.Facet.Ask {
			u.asks = g.By // the one nearest to the host comes last
		}
	}
	if w.made.Ask {
		u.asks = w.host
	}
	found := w.s.Resource.FindUse(c.Use, c.By, "")
	if found == nil || found.Begun.Ask != u.asks || found.IsOut() != u.asks.IsZero() {
		t.Fatalf("the use %+v should ask %s", found, u.asks)
	}
	u.out = u.asks.IsZero()
	w.uses = append(w.uses, u)
}

func (w *resourceWorld) end(t *rapid.T) {
	if len(w.uses) == 0 {
		return
	}
	u := rapid.SampledFrom(w.uses).Draw(t, "use")
	how := rapid.SampledFrom([]events.UseEnd{events.UseDone, events.UseFailed, events.UseDenied}).Draw(t, "how")
	if !u.ended && !u.out && rapid.Bool().Draw(t, "allowed") {
		evs, err := w.decide(mailbox.AllowUse{Use: u.id, Form: w.id()})
		if err != nil {
			t.Fatal(err)
		}
		_, out := evs[0].(*events.UseAllowed)
		for _, g := range u.chain {
			if out && (g.revoked || g.Facet.Until != 0 && w.now >= g.Facet.Until) {
				t.Fatalf("a use went out after %s had ended", g.ID)
			}
		}
		u.out, u.ended, u.denied = out, !out, !out
		return
	}
	evs, err := w.decide(mailbox.EndUse{Use: u.id, How: how})
	if err != nil {
		t.Fatal(err)
	}
	if len(evs) > 0 {
		if u.ended || how == events.UseDenied && u.out {
			t.Fatalf("a use that is out or has ended: %v", evs)
		}
		u.ended, u.denied = true, how == events.UseDenied
	}
}

// lose ends the process: what was out is unknown, and stays charged.
func (w *resourceWorld) lose(t *rapid.T) {
	evs, err := w.decide(mailbox.LoseUses{IsKnown: func(*mailbox.ResourceUse) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	lost := map[capabilities.ID]events.UseEnd{}
	for _, e := range evs {
		lost[e.(*events.UseEnded).Use] = e.(*events.UseEnded).How
	}
	for _, u := range w.uses {
		want := events.UseEnd("")
		if !u.ended && u.out {
			want = events.UseUnknown
		} else if !u.ended {
			for _, g := range u.chain {
				if g.revoked || g.Facet.Until != 0 && w.now >= g.Facet.Until {
					want = events.UseDenied
				}
			}
			if w.made.Until != 0 && w.now >= w.made.Until {
				want = events.UseDenied
			}
		}
		if lost[u.id] != want {
			t.Fatalf("the use %+v is ended as %q, not %q", u, lost[u.id], want)
		}
		u.ended, u.denied = u.ended || want != "", u.denied || want == events.UseDenied
	}
}

// restart has the state be made from its snapshot.
func (w *resourceWorld) restart(t *rapid.T) {
	b, err := w.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.s, err = mailbox.Restore(w.s.ID, b); err != nil {
		t.Fatal(err)
	}
}

// TestUsesStayWithinTheirGrants has the mailbox of a folder be given grants, revocations and uses in any order: no use after a
// revocation, none beyond what was given, none wider than any grant that it derives from.
func TestUsesStayWithinTheirGrants(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		made := capabilities.Facet{}
		if rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
			made = facetOf(t, "made")
		}
		w := newResourceWorld(t, made)
		t.Repeat(map[string]func(*rapid.T){
			"mint": w.mint, "mint again": w.mint, "revoke": w.revoke, "use": w.use, "use again": w.use, "use more": w.use, "and more": w.use, "end": w.end, "lose": w.lose, "restart": w.restart,
			"wait": func(t *rapid.T) { w.now += capabilities.Time(rapid.IntRange(1, 1500).Draw(t, "ms")) },
		})
		accepted += len(w.uses)
	})
	if accepted == 0 {
		t.Error("nothing was ever used")
	}
	t.Log(accepted, "uses")
}

// TestAKeyIsOneUse uses a resource with a key, and again.
func TestAKeyIsOneUse(t *testing.T) {
	w := newResourceWorld(t, capabilities.Facet{})
	g := capabilities.Grant{ID: w.id(), Target: w.s.ID, Kind: capabilities.KindFolder, By: w.host, To: w.agents[0], Facet: capabilities.Facet{Uses: 1}}
	if _, err := w.decide(mailbox.MintCapability{Grant: g}); err != nil {
		t.Fatal(err)
	}
	c := mailbox.BeginUse{Use: w.id(), By: w.agents[0], Grant: g.ID, Words: "read a", Digest: []byte{1}}
	for i := range 3 {
		c.Key = []string{"caf\u00e9", "cafe\u0301", "caf\u00e9"}[i]
		if evs, err := w.decide(c); err != nil || len(evs) > 0 != (i == 0) {
			t.Fatalf("call %d: %v, %v", i, evs, err)
		}
		c.Use = w.id()
	}
	c.Digest = []byte{2}
	if _, err := w.decide(c); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("another use with that key is refused with %v", err)
	}
	if c.Key, c.Use = "other", w.id(); w.s.Resource.Used(g.ID) != 1 {
		t.Error("the use is charged", w.s.Resource.Used(g.ID), "times")
	}
	if _, err := w.decide(c); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a second use is refused with %v", err)
	}
}

// TestAForgottenUseIsNotRepeated has a holder come again with a use, by its ID and by its key, after so many others that the use is not kept.
// It is begun and charged no second time, also after a restart, whatever others use meanwhile.
func TestAForgottenUseIsNotRepeated(t *testing.T) {
	w := newResourceWorld(t, capabilities.Facet{})
	grants := map[capabilities.ID]capabilities.ID{}
	for _, agent := range w.agents {
		g := capabilities.Grant{ID: w.id(), Target: w.s.ID, Kind: capabilities.KindFolder, By: w.host, To: agent}
		if _, err := w.decide(mailbox.MintCapability{Grant: g}); err != nil {
			t.Fatal(err)
		}
		grants[agent] = g.ID
	}
	use := func(by capabilities.ID, key string, how events.UseEnd) mailbox.BeginUse {
		t.Helper()
		w.now += 10_000
		c := mailbox.BeginUse{Use: w.id(), By: by, Grant: grants[by], Words: "write a", Digest: []byte{1}, Key: key}
		if evs, err := w.decide(c); err != nil || len(evs) != 1 {
			t.Fatal(evs, err)
		}
		if _, err := w.decide(mailbox.EndUse{Use: c.Use, How: how}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	bob := w.agents[0]
	done, failed := use(bob, "caf\u00e9", events.UseDone), use(bob, "b", events.UseFailed)
	for i := range 6000 {
		use(w.agents[1+i%2], fmt.Sprint(i), events.UseDone)
	}
	if w.s.Resource.FindUse(done.Use, bob, "") != nil {
		t.Fatal("the use is kept")
	}
	b, err := w.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.s, err = mailbox.Restore(w.s.ID, b); err != nil {
		t.Fatal(err)
	}
	for _, c := range []mailbox.BeginUse{done, failed} {
		byKey := c
		byKey.Use, byKey.Key = w.id(), capabilities.Normal(c.Key)
		byID := c
		byID.Key = "another"
		for _, again := range []mailbox.BeginUse{c, byKey, byID} {
			if evs, err := w.decide(again); err != nil || len(evs) > 0 {
				t.Errorf("it is begun once more: %v, %v", evs, err)
			}
		}
		byKey.Digest = []byte{2}
		if _, err := w.decide(byKey); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("another use with its key: %v", err)
		}
		byKey.By, byKey.Grant, byKey.Use = w.agents[1], grants[w.agents[1]], w.id()
		if evs, err := w.decide(byKey); err != nil || len(evs) != 1 {
			t.Errorf("the same key of another holder: %v, %v", evs, err)
		}
		if _, err := w.decide(mailbox.EndUse{Use: byKey.Use, How: events.UseDone}); err != nil {
			t.Fatal(err)
		}
	}
	if used := w.s.Resource.Used(grants[bob]); used != 2 {
		t.Errorf("it is charged %d times", used)
	}
	if how, _ := w.s.Resource.Forgot(failed.Use, bob, ""); how != events.UseFailed {
		t.Errorf("it has ended %q", how)
	}
}

// TestNoHolderTakesAllUses has a holder begin uses that do not end. Another holder, and the host, find a place all the same.
func TestNoHolderTakesAllUses(t *testing.T) {
	w := newResourceWorld(t, capabilities.Facet{})
	grants := map[capabilities.ID]capabilities.ID{}
	for _, agent := range w.agents {
		g := capabilities.Grant{ID: w.id(), Target: w.s.ID, Kind: capabilities.KindFolder, By: w.host, To: agent}
		if _, err := w.decide(mailbox.MintCapability{Grant: g}); err != nil {
			t.Fatal(err)
		}
		grants[agent] = g.ID
	}
	begin := func(by capabilities.ID) (n int) {
		for ; n < 1000; n++ {
			_, err := w.decide(mailbox.BeginUse{Use: w.id(), By: by, Grant: grants[by], Words: "read a", Digest: []byte{1}})
			if parley.CodeOf(err) == parley.RateLimited {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	for _, by := range []capabilities.ID{w.agents[0], w.agents[1], w.host} {
		if n := begin(by); n == 0 || n == 1000 {
			t.Errorf("%s begins %d uses", by, n)
		}
	}
	if n := begin(w.agents[2]); n == 0 {
		t.Error("the host's uses leave no place for a holder's")
	}
}

// TestUsesDoNotGrowTheState ends many uses, of which the last are kept.
func TestUsesDoNotGrowTheState(t *testing.T) {
	w := newResourceWorld(t, capabilities.Facet{})
	for i := range 2000 {
		c := mailbox.BeginUse{Use: w.id(), By: w.host, Words: "read a", Digest: []byte{1}, Key: fmt.Sprint(i)}
		c.Use.ULID[0], c.Use.ULID[1] = byte(i>>8), byte(i)
		if _, err := w.decide(c); err != nil {
			t.Fatal(err)
		}
		if _, err := w.decide(mailbox.EndUse{Use: c.Use, How: events.UseDone}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.s.Resource.Uses()); n == 0 || n > 600 {
		t.Errorf("%d uses are kept", n)
	}
	if used := w.s.Resource.Used(capabilities.ID{}); used != 2000 {
		t.Errorf("%d uses are counted", used)
	}
}

// TestSecretsAreForHostsAndHeadersThatCanBe makes secrets for hosts and headers that no request could have.
func TestSecretsAreForHostsAndHeadersThatCanBe(t *testing.T) {
	check := func(host, header string) error {
		return mailbox.CheckResource(&events.ResourceMade{Kind: capabilities.KindSecret, Header: header, Facet: capabilities.Facet{Only: host, Methods: "GET"}})
	}
	for _, host := range []string{"api.example", "localhost", "a-b.example:8443", "127.0.0.1", "10.0.0.1:80", "[::1]", "[2001:db8::1]:8443", "xn--bcher-kva.example"} {
		if err := check(host, "X-Key: {}"); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{
		"API.example", "api.example:443", "api.example:", "api.example:0", "api.example:0443", "api.example:99999", "api.example:x", "https://api.example", "api.example/v1", "api..example", ".example", "api.example.",
		"-a.example", "a-.example", "*.example", "a_b.example", "bücher.example", "user@api.example", "::1", "[::1", "[0:0::1]", "[::1]:443", "[fe80::1%eth0]", "256.1.1.1", "1.2.3", "a%2e.example", "/",
	} {
		if check(host, "X-Key: {}") == nil {
			t.Errorf("%q is taken for a host", host)
		}
	}
	for _, header := range []string{"X-Key: {}", "Authorization: Basic {}", "Cookie: session={}"} {
		if err := check("api.example", header); err != nil {
			t.Errorf("%s: %v", header, err)
		}
	}
	for _, header := range []string{"Host: {}", "content-length: {}", "Transfer-Encoding: {}", "Connection: {}", "User-Agent: {}", "Accept-Encoding: {}", "Accept: {}", "X Key: {}", ": {}", "X-Key: no", "X-Key {}", "X-Key: {}{}", "X-Key: {}\r\nHost: x"} {
		if check("api.example", header) == nil {
			t.Errorf("%q is taken for the header of a secret", header)
		}
	}
}

// TestGrantsThatComeBeforeTheirParent records grants of a folder before those from which they derive, as they may come from other nodes.
// Nothing is used by them until all of their chain has come, and no more than that allows.
func TestGrantsThatComeBeforeTheirParent(t *testing.T) {
	w := newResourceWorld(t, capabilities.Facet{})
	fae, bob, far := w.agents[0], w.agents[1], w.id()
	far.Node = capabilities.NodeOf([capabilities.NodeKeySize]byte{2})
	grant := func(by, to, parent capabilities.ID, f capabilities.Facet) mailbox.MintCapability {
		g := capabilities.Grant{ID: w.id(), Target: w.s.ID, Kind: capabilities.KindFolder, By: by, To: to, Facet: f, At: w.now}
		g.ID.Node = by.Node
		return mailbox.MintCapability{Grant: g, Via: parent}
	}
	use := func(by, grant capabilities.ID, path string) error {
		_, err := w.decide(mailbox.BeginUse{Use: w.id(), By: by, Grant: grant, Action: capabilities.Action{Path: path}, Words: "read " + path, Digest: []byte(path)})
		return err
	}
	mustTake := func(c mailbox.MintCapability) {
		t.Helper()
		if evs, err := w.decide(c); err != nil || len(evs) != 1 {
			t.Fatalf("%d events, %v", len(evs), err)
		}
	}
	mustRefuse := func(what string, err error) {
		t.Helper()
		if parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("%s: %v", what, err)
		}
	}
	first := grant(w.host, fae, capabilities.ID{}, capabilities.Facet{Below: "docs"})
	second := grant(fae, bob, first.Grant.ID, capabilities.Facet{}) // more than fae has
	third := grant(bob, far, second.Grant.ID, capabilities.Facet{})
	other := grant(bob, far, second.Grant.ID, capabilities.Facet{})
	asks := grant(far, bob, other.Grant.ID, capabilities.Facet{Ask: true}) // only the resource's own node can be asked
	mustTake(third)
	mustTake(asks)
	mustRefuse("before anything", use(far, third.Grant.ID, "docs/a"))
	mustTake(second)
	mustTake(other)
	mustRefuse("before the first", use(far, third.Grant.ID, "docs/a"))
	if got := w.s.Grants.Awaited(third.Grant.ID, far, w.host); got != first.Grant.ID {
		t.Errorf("it waits for %s", got)
	}
	if got := w.s.Grants.Awaited(third.Grant.ID, bob, w.host); !got.IsZero() {
		t.Errorf("another holder waits for %s", got)
	}
	mustTake(first)
	if err := use(far, third.Grant.ID, "docs/a"); err != nil {
		t.Error("when all has come:", err)
	}
	mustRefuse("more than the first gives", use(far, third.Grant.ID, "other"))
	mustRefuse("a giver who cannot be asked", use(bob, asks.Grant.ID, "docs/a"))
	if _, err := w.decide(mailbox.RecordRevocation{Grant: first.Grant.ID, By: w.host, Date: w.now}); err != nil {
		t.Fatal(err)
	}
	mustRefuse("after a revocation", use(far, third.Grant.ID, "docs/a"))
	for _, g := range w.s.Grants.Minted() {
		if g.Revoked == 0 {
			t.Errorf("%s is shown as live", g.ID)
		}
	}

	// Whoever vouches for nothing has some place, and takes none of others.
	around := grant(fae, bob, w.id(), capabilities.Facet{})
	mustTake(around)
	circle := grant(bob, fae, around.Grant.ID, capabilities.Facet{})
	circle.Grant.ID = around.Via
	_, err := w.decide(circle)
	mustRefuse("a grant that derives from itself", err)
	for range 63 {
		mustTake(grant(fae, bob, w.id(), capabilities.Facet{}))
	}
	_, err = w.decide(grant(fae, bob, w.id(), capabilities.Facet{}))
	mustRefuse("one too many", err)
	mustTake(grant(bob, far, w.id(), capabilities.Facet{}))
	mustTake(grant(far, bob, w.id(), capabilities.Facet{}))
	mustTake(grant(w.host, fae, capabilities.ID{}, capabilities.Facet{}))
}
