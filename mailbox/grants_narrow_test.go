package mailbox_test

import (
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// newThreeAgents returns a harness with host, fae and eve. Agent fae has the name eve for a grant of the host with a facet.
func newThreeAgents(t *testing.T, facet capabilities.Facet) *mailboxtest.Harness {
	t.Helper()
	v := mailboxtest.New(t)
	for _, name := range []string{"host", "fae", "eve"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Must("host", mailbox.CopyName{From: "eve", To: "given", Facet: facet})
	v.Must("host", mailbox.PostMessage{To: "fae", Post: parley.Post{Text: "take @eve:given"}})
	v.Deliver(false)
	v.Must("fae", mailbox.AdoptName{Message: capabilities.FormNumber(0), Edge: "eve"})
	return v
}

var text = []events.Field{{Name: "f"}}

func TestReplyKeepsAskOnlyFacet(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{Mode: capabilities.AskOnly})
	if _, err := v.Decide("fae", mailbox.PostMessage{To: "eve", Post: parley.Post{Text: "hello"}}); parley.CodeOf(err) != parley.NotPermitted {
		t.Fatal(err)
	}
	v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "eve", Description: "d", Fields: text}}) // fae's message 1
	if evs, err := v.Decide("fae", mailbox.PostMessage{Reply: capabilities.FormNumber(1), Post: parley.Post{Text: "hello"}}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("the reply is accepted: %v, %v", evs, err)
	}
	if evs, err := v.Decide("fae", mailbox.PostMessage{To: "@mail/1/@to", Post: parley.Post{Text: "hello"}}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("sent by @mail/1/@to: %v, %v", evs, err)
	}
}

func TestAdoptedRecipientKeepsFacet(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{Uses: 1, Until: 100})
	v.Must("fae", mailbox.PostMessage{To: "eve", Post: parley.Post{Text: "first"}}) // fae's message 1
	v.Must("fae", mailbox.AdoptName{Message: capabilities.FormNumber(1), Edge: "@to", Name: "more"})
	if evs, err := v.Decide("fae", mailbox.PostMessage{To: "more", Post: parley.Post{Text: "second"}}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("used twice: %v, %v", evs, err)
	}
}

func TestRevocationCoversGrantsInAnswers(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{})
	v.Add("bob")
	v.Apply("bob", &events.NameBound{Name: "fae", Value: capabilities.Reference(mailbox.AgentRef(v.States["fae"].ID))})
	v.Must("bob", mailbox.RequestForm{Kind: events.Request, Form: parley.Form{To: "fae", Description: "which agent?", Name: "got"}})
	v.Deliver(false)
	c, _, err := v.States["fae"].DraftAnswer(mailbox.Reply{Form: capabilities.FormNumber(1), Answer: parley.Answer{Texts: []events.FieldText{{Name: "value", Text: "eve"}}}}, v.Now, v.NewID)
	if err != nil {
		t.Fatal(err)
	}
	v.Must("bob", c) // fae does not have the outcome yet
	v.Must("host", mailbox.RevokeCapability{Grant: v.States["host"].Grants.All()[0].ID})
	v.DeliverItem("host", v.States["host"].Outbox.Items()[0]) // the revocation comes before the outcome
	v.Deliver(false)
	if g := v.States["fae"].Grants.All(); len(g) != 1 || g[0].Revoked == 0 {
		t.Errorf("fae's grant, derived from a revoked one, is valid: %+v", g)
	}
	if evs, err := v.Decide("bob", mailbox.PostMessage{To: "got", Post: parley.Post{Text: "hello"}}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("sent by it: %v, %v", evs, err)
	}
}

func TestDecideIsDeterministic(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{})
	v.Must("fae", mailbox.CopyName{From: "eve", To: "less", Facet: capabilities.Facet{Mode: capabilities.ReadOnly}})
	eve := v.States["eve"].ID.String()
	codes := map[parley.Code]int{}
	for range 100 {
		_, err := v.States["fae"].Decide(mailbox.PostMessage{To: eve, Post: parley.Post{Text: "hello"}}, v.Now, v.NewID)
		codes[parley.CodeOf(err)]++
	}
	if len(codes) != 1 {
		t.Errorf("the same command gives %v", codes)
	}
}
