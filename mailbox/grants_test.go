package mailbox

import (
	"testing"

	"parley"
	"parley/capabilities"
)

// What an agent gives itself is derived like any other delegation.
func TestRevokingCutsWhatTheHolderGaveItself(t *testing.T) {
	v := newHarness(t)
	for _, name := range []string{"host", "fae", "eve"} {
		v.add(name)
	}
	v.introduce()
	v.must("host", PostMessage{To: "fae", Text: "meet @eve"})
	v.deliver(false)
	v.must("fae", PostMessage{To: "SELF", Text: "remember @eve:@mail/0/eve"})
	v.must("fae", AdoptName{Message: capabilities.FormNumber(1), Edge: "eve"})
	v.must("fae", PostMessage{To: "eve", Text: "hello"})
	v.must("host", RevokeCapability{Grant: v.states["host"].Grants.All()[0].ID})
	v.deliver(false)
	for _, c := range []Command{
		PostMessage{To: "eve", Text: "hello"}, PostMessage{To: "@mail/0/eve", Text: "hello"}, PostMessage{To: "HOST", Text: "meet @eve"},
		PostMessage{To: capabilities.Locator{ID: v.states["eve"].ID}.String(), Text: "hello"},
		BindName{Name: "again", Value: `{"$cap":"` + v.states["eve"].ID.String() + `","kind":"agent"}`},
	} {
		if evs, err := v.decide("fae", c); parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("%+v: got %v, %v", c, evs, err)
		}
	}
	v.checkReplay()
}
