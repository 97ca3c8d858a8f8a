package mailbox

import (
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// three makes host, fae and eve; fae holds eve by a grant of the host's with this facet, under the name eve.
func three(t *testing.T, facet capabilities.Facet) *harness {
	t.Helper()
	v := newHarness(t)
	for _, name := range []string{"host", "fae", "eve"} {
		v.add(name)
	}
	v.introduce()
	v.must("host", CopyName{From: "eve", To: "given", Facet: facet})
	v.must("host", PostMessage{To: "fae", Text: "take @eve:given"})
	v.deliver(false)
	v.must("fae", AdoptName{Message: capabilities.FormNumber(0), Edge: "eve"})
	return v
}

var text = []events.Field{{Name: "f"}}

func TestAnAskOnlyReferenceDoesNotGrowByReplying(t *testing.T) {
	v := three(t, capabilities.Facet{Mode: capabilities.AskOnly})
	if _, err := v.decide("fae", PostMessage{To: "eve", Text: "hello"}); parley.CodeOf(err) != parley.NotPermitted {
		t.Fatal(err)
	}
	v.must("fae", RequestForm{To: "eve", Description: "d", Fields: text}) // fae's message 1
	if evs, err := v.decide("fae", PostMessage{Reply: capabilities.FormNumber(1), Text: "hello"}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("sent all the same: %v, %v", evs, err)
	}
	if evs, err := v.decide("fae", PostMessage{To: "@mail/1/@to", Text: "hello"}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("sent by @mail/1/@to: %v, %v", evs, err)
	}
}

func TestALimitedReferenceDoesNotGrowByAdoptingTo(t *testing.T) {
	v := three(t, capabilities.Facet{Uses: 1, Until: 100})
	v.must("fae", PostMessage{To: "eve", Text: "the one"}) // fae's message 1
	v.must("fae", AdoptName{Message: capabilities.FormNumber(1), Edge: "@to", Name: "more"})
	if evs, err := v.decide("fae", PostMessage{To: "more", Text: "and another"}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("used twice: %v, %v", evs, err)
	}
}

func TestWhatIsGivenInAnAnswerFallsWithWhatItCameFrom(t *testing.T) {
	v := three(t, capabilities.Facet{})
	v.add("bob")
	v.apply("bob", &events.NameBound{Name: "fae", Value: capabilities.Reference(agentRef(v.states["fae"].ID))})
	v.must("bob", RequestForm{To: "fae", Description: "whom do you know?", Kind: events.Request, Result: "got"})
	v.deliver(false)
	c, _, err := v.states["fae"].DraftAnswer(Reply{Form: capabilities.FormNumber(1), Texts: []events.FieldText{{Name: "value", Text: "eve"}}}, v.now, v.id)
	if err != nil {
		t.Fatal(err)
	}
	v.must("bob", c) // the answer is home, and fae has yet to hear so
	v.must("host", RevokeCapability{Grant: v.states["host"].Grants.All()[0].ID})
	v.carry("host", v.states["host"].Outbox.Items()[0]) // the revocation comes first, and then the outcome
	v.deliver(false)
	if g := v.states["fae"].Grants.All(); len(g) != 1 || g[0].Revoked == 0 {
		t.Errorf("fae's grant, derived from a revoked one, lives on: %+v", g)
	}
	if evs, err := v.decide("bob", PostMessage{To: "got", Text: "hello"}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("sent by it: %v, %v", evs, err)
	}
}

func TestDecideGivesTheSameEachTime(t *testing.T) {
	v := three(t, capabilities.Facet{})
	v.must("fae", CopyName{From: "eve", To: "less", Facet: capabilities.Facet{Mode: capabilities.ReadOnly}})
	eve := v.states["eve"].ID.String()
	codes := map[parley.Code]int{}
	for range 100 {
		_, err := v.states["fae"].Decide(PostMessage{To: eve, Text: "hello"}, v.now, v.id)
		codes[parley.CodeOf(err)]++
	}
	if len(codes) != 1 {
		t.Errorf("the same command gives %v", codes)
	}
}
