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
		}
	})
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
