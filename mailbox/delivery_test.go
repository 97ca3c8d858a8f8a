package mailbox

import (
	"testing"

	"parley/capabilities"
	"parley/events"
)

// What Decide returns must be readable again, or the mailbox is lost at the next start.
func TestWhatIsPostedCanBeReadAgain(t *testing.T) {
	v := newHarness(t)
	v.add("host")
	v.add("fae")
	deep := "1"
	for range 31 {
		deep = "[" + deep + "]"
	}
	v.must("fae", RequestForm{To: "SELF", Description: "d", Fields: []events.Field{{Name: "f", Pattern: []byte(`{"type":"array"}`)}}})
	value, err := capabilities.ParseJSON([]byte(deep))
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := v.states["fae"].DraftAnswer(Reply{Form: capabilities.FormNumber(0), Values: map[string]capabilities.Value{"f": value}}, v.now, v.id)
	if err != nil {
		t.Fatal(err)
	}
	v.must("fae", c)
	evs, err := v.states["fae"].Decide(PostMessage{To: "HOST", Text: "see @it:@mail/0"}, v.now, v.id)
	if err != nil {
		return // refused: that is fine
	}
	body, err := events.Append(nil, events.Recorded{At: 1, Event: evs[0]})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Decode(body, 1); err != nil {
		t.Errorf("decided and written, but: %v", err)
	}
}

func TestAReceiptThatComesTwiceIsForOneParcel(t *testing.T) {
	v := newHarness(t)
	for _, name := range []string{"host", "fae", "bob", "eve"} {
		v.add(name)
	}
	v.introduce()
	v.must("fae", RequestForm{To: "HOST", Description: "d", Fields: text})
	v.deliver(false)
	hand := func(to string) OutboxItem {
		c, home, err := v.states["host"].DraftForward(capabilities.FormNumber(0), to, v.now)
		if err != nil {
			t.Fatal(err)
		}
		v.must(v.names[home], c)
		return OutboxItem{Kind: events.OutboxForwarded, Subject: c.Form, To: v.states["host"].ID}
	}
	p := hand("bob")
	v.carry("fae", p) // and its ack is on its way, twice
	hand("eve")
	v.must("fae", RecordDelivery{Items: []OutboxItem{p}})
	v.must("fae", RecordDelivery{Items: []OutboxItem{p}})
	v.deliver(false)
	if n := len(v.states["host"].Mail.All()[0].Form.Forwarded); n != 2 {
		t.Errorf("the host knows of %d of its 2 forwards", n)
	}
}

func TestAnEmptyDeliveryIsRefused(t *testing.T) {
	v := three(t, capabilities.Facet{})
	v.must("fae", RequestForm{To: "HOST", Description: "d", Fields: text})
	id := v.states["fae"].Mail.All()[1].ID()
	for _, c := range []Command{RecordOutcome{Form: id}, RemoteOutcome{RecordOutcome: RecordOutcome{Form: id}}, AcceptDelivery{}, RemoteDelivery{}} {
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%T: %v", c, p)
				}
			}()
			if evs, err := v.states["fae"].Decide(c, v.now, v.id); err == nil && len(evs) != 0 {
				t.Errorf("%T: %v", c, evs)
			}
		}()
	}
}
