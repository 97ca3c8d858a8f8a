package mailbox_test

import (
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestPostedValuesCanBeDecoded posts a deeply nested value. A mailbox whose events cannot be decoded would not load again.
func TestPostedValuesCanBeDecoded(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	deep := "1"
	for range 31 {
		deep = "[" + deep + "]"
	}
	v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "SELF", Description: "d", Fields: []events.Field{{Name: "f", Pattern: []byte(`{"type":"array"}`)}}}})
	value, err := capabilities.ParseJSON([]byte(deep))
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := v.States["fae"].DraftAnswer(mailbox.Reply{Form: capabilities.FormNumber(0), Answer: parley.Answer{Values: map[string]capabilities.Value{"f": value}}}, v.Now, v.NewID)
	if err != nil {
		t.Fatal(err)
	}
	v.Must("fae", c)
	evs, err := v.States["fae"].Decide(mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: "see @it:@mail/0"}}, v.Now, v.NewID)
	if err != nil {
		return // it may be refused
	}
	body, err := events.Append(nil, events.Recorded{At: 1, Event: evs[0]})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Decode(body, 1); err != nil {
		t.Errorf("a decided event cannot be decoded: %v", err)
	}
}

func TestRepeatedAckRemovesOneItem(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"host", "fae", "bob", "eve"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d", Fields: text}})
	v.Deliver(false)
	forward := func(to string) mailbox.OutboxItem {
		c, home, err := v.States["host"].DraftForward(capabilities.FormNumber(0), to, v.Now)
		if err != nil {
			t.Fatal(err)
		}
		v.Must(v.NameOf[home], c)
		return mailbox.OutboxItem{Kind: events.OutboxForwarded, Subject: c.Form, To: v.States["host"].ID}
	}
	p := forward("bob")
	v.DeliverItem("fae", p) // its acknowledgement comes twice
	forward("eve")
	v.Must("fae", mailbox.RecordDelivery{Items: []mailbox.OutboxItem{p}})
	v.Must("fae", mailbox.RecordDelivery{Items: []mailbox.OutboxItem{p}})
	v.Deliver(false)
	if n := len(v.Messages("host")[0].Form.Forwarded()); n != 2 {
		t.Errorf("the host knows of %d of its 2 forwards", n)
	}
}

func TestEmptyDeliveryIsRefused(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{})
	v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d", Fields: text}})
	id := v.Messages("fae")[1].ID()
	for _, c := range []mailbox.Command{mailbox.RecordOutcome{Form: id}, mailbox.RemoteOutcome{RecordOutcome: mailbox.RecordOutcome{Form: id}}, mailbox.AcceptDelivery{}, mailbox.RemoteDelivery{}} {
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%T: %v", c, p)
				}
			}()
			if evs, err := v.States["fae"].Decide(c, v.Now, v.NewID); err == nil && len(evs) != 0 {
				t.Errorf("%T: %v", c, evs)
			}
		}()
	}
}
