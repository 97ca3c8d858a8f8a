package capabilities

import (
	"testing"

	"pgregory.net/rapid"

	"parley/internal/fault"
)

func someFacet() *rapid.Generator[Facet] {
	return rapid.Custom(func(t *rapid.T) Facet {
		return Facet{
			Mode:  rapid.SampledFrom([]Mode{Full, AskOnly, ReadOnly}).Draw(t, "mode"),
			Until: Time(rapid.IntRange(0, 4).Draw(t, "until")),
			Uses:  uint32(rapid.IntRange(0, 4).Draw(t, "uses")),

			Rate:    rapid.SampledFrom([]Rate{{}, {}, {1, 60}, {3, 60}, {3, 5}}).Draw(t, "rate"),
			Below:   rapid.SampledFrom([]string{"", "", "a", "a/b", "ab", "c", Nothing}).Draw(t, "below"),
			Only:    rapid.SampledFrom([]string{"", "", "x", "x y", "y z", Nothing}).Draw(t, "only"),
			Methods: rapid.SampledFrom([]string{"", "", "GET", "GET HEAD", "POST"}).Draw(t, "methods"),
			Ask:     rapid.Bool().Draw(t, "ask"),
		}
	})
}

// actions are uses of resources that differ in all that facets of someFacet tell apart.
func actions() (all []Action) {
	for _, path := range []string{"", "a", "a/b", "a/b/c", "ab", "c/d"} {
		for _, word := range []string{"", "x", "y", "z", Nothing} {
			for _, method := range []string{"", "GET", "HEAD", "POST"} {
				for _, writes := range []bool{false, true} {
					all = append(all, Action{Verb: "v", Writes: writes, Path: path, Word: word, Method: method})
				}
			}
		}
	}
	return all
}

// TestNarrowedResourcesPermitNoMore checks that what is narrowed permits exactly what both facets permit, and no more often than either.
func TestNarrowedResourcesPermitNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := someFacet().Draw(t, "f"), someFacet().Draw(t, "g")
		both := f.Narrow(g)
		if err := both.Check(); err != nil {
			t.Fatalf("%+v is malformed: %v", both, err)
		}
		if !f.Covers(both) || !g.Covers(both) {
			t.Fatalf("%+v is not within %+v and %+v", both, f, g)
		}
		for _, a := range actions() {
			for at := range Time(5) {
				may := f.Allows(a, at+1) == nil && g.Allows(a, at+1) == nil
				if got := both.Allows(a, at+1) == nil; got != may {
					t.Fatalf("%+v within %+v permits %+v: %t", f, g, a, got)
				}
			}
		}
		for _, one := range []Facet{f, g} {
			if one.Ask && !both.Ask || one.Uses != 0 && (both.Uses == 0 || both.Uses > one.Uses) ||
				one.Rate != (Rate{}) && (both.Rate.Uses == 0 || both.Rate.Uses > one.Rate.Uses || both.Rate.Seconds < one.Rate.Seconds) {
				t.Fatalf("%+v is more than %+v", both, one)
			}
		}
	})
}

func TestFacetsSayAllThatTheyPermit(t *testing.T) {
	moment := func(at Time) string { return at.String() }
	for want, c := range map[string]struct {
		kind  Kind
		facet Facet
	}{
		"list, read and write": {KindFolder, Facet{}},
		"list and read, only below docs, 1 use, at most 2 in 1m, until 1970-01-01T00:00:00.009Z, and the giver decides each use": {
			KindFolder, Facet{Mode: ReadOnly, Below: "docs", Uses: 1, Rate: Rate{2, 60}, Until: 9, Ask: true},
		},
		"read, 3 uses": {KindFile, Facet{Uses: 3}},
		"make GET and HEAD requests to a below /v1": {KindSecret, Facet{Methods: "GET HEAD", Only: "a", Below: "v1"}},
		"make GET requests to a and b":              {KindSecret, Facet{Methods: "GET POST", Only: "a b", Mode: ReadOnly}},
		"call all tools":                            {KindTool, Facet{}},
		"call a and b only":                         {KindTool, Facet{Only: "a b"}},
		"nothing":                                   {KindTool, Facet{Only: Nothing}},
		"all":                                       {KindAgent, Facet{}},
		"ask only, 2 uses":                          {KindAgent, Facet{Mode: AskOnly, Uses: 2}},
	} {
		if got := c.facet.Words(c.kind, moment); got != want {
			t.Errorf("%+v of a %s says %q, not %q", c.facet, c.kind, got, want)
		}
	}
}

func TestMalformedFacetsAreRefused(t *testing.T) {
	for _, f := range []Facet{
		{Below: "../a"}, {Below: "/a"}, {Below: "a/"}, {Below: "a//b"}, {Below: "a/../b"}, {Below: "."}, {Below: "a\x00"}, {Below: "a\\b"}, {Only: "b a"}, {Only: "a a"}, {Only: " a"},
		{Methods: "GET  HEAD"}, {Rate: Rate{1, 0}}, {Rate: Rate{0, 1}}, {Rate: Rate{MaxRate + 1, 1}},
	} {
		wantCode(t, f.Check(), fault.InvalidArgument, f.Below)
		encoded := Ref{Target: testID(1), Kind: KindFolder, Facet: f}.AppendMsgpack(nil)
		if _, err := DecodeValue(encoded); err == nil {
			t.Errorf("%+v is decoded", f)
		}
	}
	for kind, f := range map[Kind]Facet{KindAgent: {Ask: true}, KindFile: {Below: "a"}, KindFolder: {Only: "a"}, KindTool: {Methods: "GET"}, KindSecret: {Mode: AskOnly}} {
		wantCode(t, f.CheckFor(kind), fault.InvalidArgument, string(kind))
	}
}

// permitted returns the uses that a facet permits, over all kinds, times and counts in which facets of someFacet differ.
func permitted(f Facet) (all [120]bool) {
	i := 0
	for _, use := range []Use{UseRead, UseAsk, UseSend, UseGive} {
		for at := range Time(5) {
			for used := range uint32(6) {
				all[i] = f.Permits(use, at+1, used) == nil
				i++
			}
		}
	}
	return all
}

func TestNarrowingNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := someFacet().Draw(t, "f"), someFacet().Draw(t, "g")
		byF, byG, byBoth := permitted(f), permitted(g), permitted(f.Narrow(g))
		for i, may := range byBoth {
			if may != (byF[i] && byG[i]) {
				t.Fatalf("%+v within %+v is %+v: case %d is %t, of the two %t and %t", f, g, f.Narrow(g), i, may, byF[i], byG[i])
			}
		}
	})
}

func TestNarrowingIsIdempotentCommutativeAndAssociative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g, h := someFacet().Draw(t, "f"), someFacet().Draw(t, "g"), someFacet().Draw(t, "h")
		switch {
		case f.Narrow(f) != f || f.Narrow(Facet{}) != f || (Facet{}).Narrow(f) != f:
			t.Fatalf("%+v is changed by itself or the full facet", f)
		case f.Narrow(g).Narrow(g) != f.Narrow(g):
			t.Fatalf("%+v narrowed twice by %+v", f, g)
		case f.Narrow(g) != g.Narrow(f):
			t.Fatalf("%+v, but %+v", f.Narrow(g), g.Narrow(f))
		case f.Narrow(g).Narrow(h) != f.Narrow(g.Narrow(h)):
			t.Fatalf("%+v, but %+v", f.Narrow(g).Narrow(h), f.Narrow(g.Narrow(h)))
		case f.Narrow(g).IsFull() != (f.IsFull() && g.IsFull()):
			t.Fatalf("%+v", f.Narrow(g))
		}
	})
}

func TestFacetPermits(t *testing.T) {
	for _, c := range []struct {
		facet Facet
		use   Use
		at    Time
		used  uint32
		may   bool
	}{
		{Facet{}, UseSend, 1 << 60, 1 << 31, true},
		{Facet{Mode: AskOnly}, UseAsk, 1, 0, true},
		{Facet{Mode: AskOnly}, UseSend, 1, 0, false},
		{Facet{Mode: AskOnly}, UseRead, 1, 0, true},
		{Facet{Mode: AskOnly}, UseGive, 1, 0, true},
		{Facet{Mode: ReadOnly}, UseRead, 1, 0, true},
		{Facet{Mode: ReadOnly}, UseAsk, 1, 0, false},
		{Facet{Mode: ReadOnly}, UseSend, 1, 0, false},
		{Facet{Until: 10}, UseSend, 9, 0, true},
		{Facet{Until: 10}, UseSend, 10, 0, false},
		{Facet{Until: 10}, UseRead, 11, 0, false},
		{Facet{Uses: 2}, UseAsk, 1, 1, true},
		{Facet{Uses: 2}, UseAsk, 1, 2, false},
		{Facet{Uses: 2}, UseGive, 1, 2, false},
		{Facet{Uses: 2}, UseRead, 1, 2, true},
	} {
		err := c.facet.Permits(c.use, c.at, c.used)
		if (err == nil) != c.may || err != nil && fault.CodeOf(err) != fault.NotPermitted {
			t.Errorf("%+v, %s at %d after %d: %v", c.facet, c.use, c.at, c.used, err)
		}
	}
}

func TestWiderOrdersFacets(t *testing.T) {
	ordered := []Facet{
		{}, {Until: 9}, {Until: 5}, {Uses: 3}, {Uses: 3, Until: 9}, {Uses: 1}, {Mode: AskOnly}, {Mode: AskOnly, Uses: 2}, {Mode: ReadOnly}, {Mode: "everything"},
	}
	for i, f := range ordered {
		for j, g := range ordered {
			if f.Wider(g) != (i < j) {
				t.Errorf("%+v before %+v: %t", f, g, f.Wider(g))
			}
		}
	}
}

func TestUnknownModePermitsNothing(t *testing.T) {
	unknown := Facet{Mode: "everything"}
	for _, f := range []Facet{unknown, unknown.Narrow(Facet{Mode: ReadOnly}), Facet{Mode: ReadOnly}.Narrow(unknown)} {
		for _, use := range []Use{UseRead, UseAsk, UseSend, UseGive} {
			wantCode(t, f.Permits(use, 1, 0), fault.NotPermitted, string(use))
		}
	}
}

func TestUnknownFacetsAreRefused(t *testing.T) {
	for _, m := range []Mode{Full, AskOnly, ReadOnly} {
		if err := (Facet{Mode: m}).Check(); err != nil {
			t.Error(err)
		}
	}
	wantCode(t, Facet{Mode: "everything"}.Check(), fault.InvalidArgument, "everything")
}
