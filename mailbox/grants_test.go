package mailbox_test

import (
	"testing"

	"parley"
	"parley/capabilities"

	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestRevocationCoversGrantsToSelf revokes a grant of which its holder has sent itself a derived one.
func TestRevocationCoversGrantsToSelf(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"host", "fae", "eve"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Must("host", mailbox.PostMessage{To: "fae", Post: parley.Post{Text: "this is @eve"}})
	v.Deliver(false)
	v.Must("fae", mailbox.PostMessage{To: "SELF", Post: parley.Post{Text: "remember @eve:@mail/0/eve"}})
	v.Must("fae", mailbox.AdoptName{Message: capabilities.FormNumber(1), Edge: "eve"})
	v.Must("fae", mailbox.PostMessage{To: "eve", Post: parley.Post{Text: "hello"}})
	v.Must("host", mailbox.RevokeCapability{Grant: v.States["host"].Grants.All()[0].ID})
	v.Deliver(false)
	for _, c := range []mailbox.Command{
		mailbox.PostMessage{To: "eve", Post: parley.Post{Text: "hello"}}, mailbox.PostMessage{To: "@mail/0/eve", Post: parley.Post{Text: "hello"}}, mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: "this is @eve"}},
		mailbox.PostMessage{To: capabilities.Locator{ID: v.States["eve"].ID}.String(), Post: parley.Post{Text: "hello"}},
		mailbox.BindName{Name: "again", Value: `{"$cap":"` + v.States["eve"].ID.String() + `","kind":"agent"}`},
	} {
		if evs, err := v.Decide("fae", c); parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("%+v: got %v, %v", c, evs, err)
		}
	}
	v.CheckReplay()
}
