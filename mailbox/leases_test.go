package mailbox_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/lease"
	"parley/mailbox/mailboxtest"
)

// leaseWorld is a host whose guests ask for leases of few files, and what is known of them by the events alone.
type leaseWorld struct {
	*mailboxtest.Harness
	held, waiting map[uint64]*events.LeaseAsked
	last          map[string]uint64 // by file, the greatest number of an exclusive lease that was held
}

// leasedFiles are all files of the world.
var leasedFiles = []string{"/w/s/a/1", "/w/s/a/2", "/w/s/b/1", "/w/s/b/2", "/w/s/c"}

func newLeaseWorld(t rapid.TB) *leaseWorld {
	w := &leaseWorld{Harness: mailboxtest.New(t), held: map[uint64]*events.LeaseAsked{}, waiting: map[uint64]*events.LeaseAsked{}, last: map[string]uint64{}}
	w.Now = 1_000
	for _, name := range []string{"host", "fae", "bob", "zoe", "team"} {
		w.Add(name)
		if name != "host" {
			w.Apply("host", &events.NameBound{Name: name, Value: capabilities.Reference(capabilities.Ref{Target: w.States[name].ID, Kind: capabilities.KindAgent})})
		}
	}
	w.Must("host", mailbox.MakeTeam{Team: w.States["team"].ID, Name: "shop"})
	return w
}

// both reports whether two leases are on a common file, or of one name, by looking at each.
func both(a, b *events.LeaseAsked) bool {
	covers := func(e *events.LeaseAsked, file string) bool {
		return slices.ContainsFunc(e.Patterns, func(p string) bool { return lease.Pattern(p).Covers(file, e.Fold) })
	}
	return slices.ContainsFunc(append(slices.Clone(leasedFiles), "port:1"), func(file string) bool { return covers(a, file) && covers(b, file) })
}

func (w *leaseWorld) conflict(a, b *events.LeaseAsked) bool {
	host := w.States["host"].ID
	binds := a.Team == b.Team || a.Holder == host && a.Team.IsZero() || b.Holder == host && b.Team.IsZero()
	return binds && a.Holder != b.Holder && !(a.Shared && b.Shared) && both(a, b)
}

// take notes a lease that is held from now on, and checks that it may be.
func (w *leaseWorld) take(e *events.LeaseAsked) {
	for n, o := range w.held {
		if w.conflict(e, o) {
			w.TB.Fatalf("leases %d and %d are both held", n, e.Lease)
		}
	}
	for n, o := range w.waiting {
		if n < e.Lease && w.conflict(e, o) {
			w.TB.Fatalf("lease %d is held before %d, which waits since longer", e.Lease, n)
		}
	}
	for _, file := range leasedFiles {
		if covered := slices.ContainsFunc(e.Patterns, func(p string) bool { return lease.Pattern(p).Covers(file, false) }); covered && !e.Shared && e.Team.IsZero() {
			if e.Lease <= w.last[file] {
				w.TB.Fatalf("%s was leased under %d, and now under %d", file, w.last[file], e.Lease)
			}
			w.last[file] = e.Lease
		}
	}
	w.held[e.Lease] = e
}

// decide has the host's mailbox decide, and follows what comes of it.
func (w *leaseWorld) decide(c mailbox.Command) error {
	evs, err := w.Decide("host", c)
	for _, e := range evs {
		if ended, ok := e.(*events.LeaseEnded); ok {
			delete(w.held, ended.Lease)
			delete(w.waiting, ended.Lease)
		}
	}
	for _, e := range evs {
		switch e := e.(type) {
		case *events.LeaseAsked:
			if e.Waits {
				w.waiting[e.Lease] = e
			} else {
				w.take(e)
			}
		case *events.LeaseGranted:
			asked := w.waiting[e.Lease]
			delete(w.waiting, e.Lease)
			w.take(asked)
		}
	}
	return err
}

// check compares the state with what is known.
func (w *leaseWorld) check() {
	s := w.States["host"]
	if len(s.Leases.All()) != len(w.held)+len(w.waiting) {
		w.TB.Fatalf("%d leases, of %d held and %d that wait", len(s.Leases.All()), len(w.held), len(w.waiting))
	}
	for _, l := range s.Leases.All() {
		if known := w.held[l.Number()] != nil; known != l.Held {
			w.TB.Fatalf("lease %d is held: %t", l.Number(), l.Held)
		}
		if l.Until <= w.Now {
			w.TB.Fatalf("lease %d is over", l.Number())
		}
		if !l.Held && len(s.Leases.Ahead(l.Number())) == 0 {
			w.TB.Fatalf("lease %d waits for nothing", l.Number())
		}
		if at := s.Summary().Deadline; at == 0 || at > l.Until {
			w.TB.Fatalf("nobody looks at lease %d in time", l.Number())
		}
	}
	for _, file := range leasedFiles {
		for _, name := range []string{"fae", "bob", "zoe"} {
			id, blocked := w.States[name].ID, false
			for _, e := range w.held {
				team := s.Teams.Named("shop").Has(id)
				binds := e.Team.IsZero() && (!team || e.Holder == s.ID) || !e.Team.IsZero() && team
				if e.Holder != id && binds && both(e, &events.LeaseAsked{Patterns: []string{file}}) {
					blocked = blocked || !e.Shared
				}
			}
			if one, at := mailbox.Blocking(s, id, capabilities.ID{}, []string{"/elsewhere", file}, nil); blocked && (one == nil || at != file) {
				w.TB.Fatalf("%s may write %s", name, file)
			}
			for _, tree := range []string{file, "/w/s", "/w/*"} {
				one, _ := mailbox.Blocking(s, id, capabilities.ID{}, []string{file}, nil)
				if whole, _ := mailbox.Blocking(s, id, capabilities.ID{}, nil, []string{tree}); one != nil && lease.Pattern(tree).Covers(file, false) && whole == nil {
					w.TB.Fatalf("%s may not write %s, and may change all of %s", name, file, tree)
				}
			}
		}
	}
}

// TestLeasesKeepTheirLaws asks for, renews, releases and breaks leases at random. No two that overlap are held by two agents, unless
// both are shared; who waits gets it in order; the number of what is held later is greater; nobody waits for nothing.
func TestLeasesKeepTheirLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newLeaseWorld(t)
		patterns := rapid.SliceOfN(rapid.SampledFrom([]string{"/w/s/a", "/w/s/*/1", "/w/s/b/**", "/w/s/**/2", "/w/s/c", "port:1", "/w/s/a/1"}), 1, 2)
		who := rapid.SampledFrom([]string{"host", "fae", "bob", "zoe"})
		number := func() uint64 { return rapid.Uint64Range(1, 12).Draw(t, "number") }
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				c := mailbox.AskLease{
					Holder: w.States[who.Draw(t, "who")].ID, Patterns: patterns.Draw(t, "patterns"), Shared: rapid.Bool().Draw(t, "shared"),
					Length: time.Duration(rapid.IntRange(1, 30).Draw(t, "length")) * time.Second, Wait: time.Duration(rapid.IntRange(0, 20).Draw(t, "wait")) * time.Second,
				}
				err := w.decide(c)
				refused, leased := errors.AsType[*mailbox.Leased](err)
				switch {
				case err == nil:
				case leased && c.Wait == 0 && refused.Lease.Asked.Holder != c.Holder:
				case parley.CodeOf(err) == parley.Leased: // both would wait, or it waits for the same already
				default:
					t.Fatal(err)
				}
			},
			"release": func(t *rapid.T) {
				_ = w.decide(mailbox.EndLease{Lease: number(), By: w.States[who.Draw(t, "who")].ID})
			},
			"renew": func(t *rapid.T) {
				_ = w.decide(mailbox.RenewLease{Lease: number(), By: w.States[who.Draw(t, "who")].ID, Length: 5 * time.Second})
			},
			"leave": func(t *rapid.T) {
				if err := w.decide(mailbox.EndLeasesOf{Holder: w.States[who.Draw(t, "who")].ID}); err != nil {
					t.Fatal(err)
				}
			},
			"join": func(t *rapid.T) {
				if err := w.decide(mailbox.SetTeamMember{Team: "shop", Agent: w.States[rapid.SampledFrom([]string{"fae", "bob"}).Draw(t, "member")].ID, In: rapid.Bool().Draw(t, "in")}); err != nil {
					t.Fatal(err)
				}
				w.Deliver(true)
			},
			"time": func(t *rapid.T) {
				w.Now += capabilities.Time(rapid.IntRange(1, 10_000).Draw(t, "passes"))
				if err := w.decide(mailbox.ExpireLeases{}); err != nil {
					t.Fatal(err)
				}
			},
			"": func(*rapid.T) {
				w.check()
				w.CheckReplay()
			},
		})
	})
}

// TestLeasesAreBounded has one guest ask for more than it may have, at once and in a day. Others, and the host, still get theirs.
func TestLeasesAreBounded(t *testing.T) {
	w := newLeaseWorld(t)
	w.SkipChecksums = true
	ask := func(name string, n int) error {
		return w.decide(mailbox.AskLease{Holder: w.States[name].ID, Patterns: []string{fmt.Sprint("port:", n)}, Length: time.Minute})
	}
	n, err := 0, error(nil)
	for ; err == nil && n < 5000; n++ {
		err = ask("fae", n)
	}
	if parley.CodeOf(err) != parley.QuotaExceeded || n > 100 {
		t.Fatalf("after %d leases: %v", n, err)
	}
	if err := errors.Join(ask("bob", 90_000), ask("host", 90_001)); err != nil {
		t.Error(err)
	}
	for n, err = 0, nil; err == nil && n < 5000; n++ {
		err = w.decide(mailbox.RenewLease{Lease: 1, By: w.States["fae"].ID, Length: time.Minute})
	}
	if parley.CodeOf(err) != parley.QuotaExceeded || n > 4000 {
		t.Fatalf("after %d renewals: %v", n, err)
	}
	if err := errors.Join(w.decide(mailbox.EndLease{Lease: 1, By: w.States["fae"].ID}), ask("bob", 90_002), ask("host", 90_003)); err != nil {
		t.Error(err)
	}
	w.Now += capabilities.Time(24 * time.Hour / time.Millisecond)
	if err := errors.Join(w.decide(mailbox.ExpireLeases{}), ask("fae", 1)); err != nil {
		t.Errorf("the day after: %v", err)
	}
	w.CheckReplay()
}

// TestLeasesOfEverythingAreRefused refuses patterns that come around the edges, which read them first.
func TestLeasesOfEverythingAreRefused(t *testing.T) {
	w := newLeaseWorld(t)
	for _, p := range []string{"/**", "/w", "/w/**", "src", "", "/w/s/../../**", "/w//s"} {
		if err := w.decide(mailbox.AskLease{Holder: w.States["fae"].ID, Patterns: []string{p}, Length: time.Minute}); err == nil {
			t.Errorf("%q is leased", p)
		}
	}
	fae := w.States["fae"].ID
	for _, c := range []mailbox.AskLease{
		{Holder: fae, Length: time.Minute},
		{Holder: fae, Patterns: []string{"port:1"}},
		{Holder: fae, Patterns: []string{"port:1"}, Length: 25 * time.Hour},
		{Holder: fae, Patterns: []string{"port:1"}, Length: time.Minute, Wait: 25 * time.Hour},
		{Holder: fae, Patterns: slices.Repeat([]string{"port:1"}, 17), Length: time.Minute},
		{Holder: fae, Patterns: []string{"port:1"}, Length: time.Minute, For: "a\nb"},
		{Holder: fae, Patterns: []string{"port:1"}, Length: time.Minute, Team: "shop"},
		{Holder: fae, Patterns: []string{"port:1"}, Length: time.Minute, Team: "none"},
	} {
		if err := w.decide(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if _, err := w.Decide("fae", mailbox.AskLease{Holder: fae, Patterns: []string{"port:1"}, Length: time.Minute}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a guest keeps leases: %v", err)
	}
}

// TestATeamIsLeft has a member leave a team: it loses what it had through the team, and keeps what it had otherwise.
func TestATeamIsLeft(t *testing.T) {
	w := newLeaseWorld(t)
	id := func(name string) capabilities.ID { return w.States[name].ID }
	for _, name := range []string{"fae", "bob"} {
		w.Must("host", mailbox.SetTeamMember{Team: "shop", Agent: id(name), In: true})
	}
	w.Deliver(true)
	grants := w.States["host"].Teams.Named("shop").Grants()
	if len(grants) != 6 { // each with the team, and both with each other
		t.Fatalf("%d grants: %v", len(grants), grants)
	}
	if err := w.decide(mailbox.AskLease{Holder: id("fae"), Patterns: []string{"/w/s/a"}, Length: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if one, _ := mailbox.Blocking(w.States["host"], id("bob"), capabilities.ID{}, []string{"/w/s/a/1"}, nil); one == nil {
		t.Error("a member's lease does not bind another")
	}
	if one, _ := mailbox.Blocking(w.States["host"], id("zoe"), capabilities.ID{}, []string{"/w/s/a/1"}, nil); one != nil {
		t.Error("a team's lease binds who is in none")
	}
	if one, _ := mailbox.Blocking(w.States["host"], id("zoe"), id("bob"), []string{"/w/s/a/1"}, nil); one == nil {
		t.Error("a member's lease does not bind the session of another")
	}
	if err := w.decide(mailbox.SetTeamMember{Team: "shop", Agent: id("fae")}); err != nil {
		t.Fatal(err)
	}
	w.Deliver(true)
	w.check()
	if len(w.held) != 0 {
		t.Error("who left has a lease of the team still")
	}
	for _, g := range w.States["host"].Grants.All() {
		left := g.To == id("fae") || g.Target == id("fae")
		if left != (g.Revoked != 0) {
			t.Errorf("the grant of %s to %s is revoked: %t", w.NameOf[g.Target], w.NameOf[g.To], g.Revoked != 0)
		}
	}
	w.Must("host", mailbox.SetTeamMember{Team: "shop", Agent: id("fae"), In: true})
	w.Must("host", mailbox.EndTeam{Team: "shop"})
	w.Deliver(true)
	for _, g := range w.States["host"].Grants.All() {
		if g.Revoked == 0 {
			t.Errorf("the grant of %s to %s outlives the team", w.NameOf[g.Target], w.NameOf[g.To])
		}
	}
	w.CheckReplay()
}
