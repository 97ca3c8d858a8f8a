package mailbox_test

import (
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// FuzzUnpack decides arbitrary deliveries from another node. A mailbox does not panic, and its events can be decoded.
func FuzzUnpack(f *testing.F) {
	v := mailboxtest.New(f)
	for _, name := range []string{"h@A", "a@A", "h@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("h@A", "h@B")
	v.OnRefusal = func(string, string, string) {}
	fields := []events.Field{{Name: "f"}, {Name: "who", Type: events.Capability}}
	asked := v.Must("h@A", mailbox.RequestForm{Form: parley.Form{To: "B", Description: "d", Fields: fields}})[0].(*events.FormRequested)
	v.Deliver(false)
	other := v.Must("h@B", mailbox.RequestForm{Form: parley.Form{To: "A", Description: "d", Fields: fields}})[0].(*events.FormRequested)
	v.Deliver(false)
	b, host := v.States["h@B"].ID, v.States["h@A"].ID
	grant := capabilities.Grant{ID: v.IDsOf("h@B")(), Target: host, Kind: capabilities.KindAgent, To: v.States["a@A"].ID, By: b}
	for kind, e := range map[events.OutboxKind]events.Event{
		events.OutboxCopy:       &events.MessagePosted{Message: v.IDsOf("h@B")(), From: b, To: host, Text: []events.Span{{Words: "hello"}, {Edge: "e", Value: capabilities.Reference(grant.Ref())}}},
		events.OutboxOutcome:    &events.FormAnswered{Form: other.ID, By: host, Values: capabilities.Record(map[string]capabilities.Value{"f": capabilities.Int(1)})},
		events.OutboxRevocation: &events.CapabilityRevoked{Grant: grant.ID, By: b, Date: 1},
		events.OutboxForwarded:  &events.FormForwarded{Form: other.ID, By: host, To: b},
		events.OutboxMint:       &events.CapabilityMinted{Grant: grant},
		events.OutboxAnswer:     &events.AnswerQueued{Form: asked.ID, Values: capabilities.Record(map[string]capabilities.Value{"f": capabilities.String("x")})},
		events.OutboxForward:    &events.FormForwarded{Form: asked.ID, By: b, To: grant.To, Via: grant.ID},
	} {
		body, err := events.Append(nil, events.Recorded{Event: e})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(kind), 1, body)
	}
	before := v.Snapshot("h@A")
	f.Fuzz(func(t *testing.T, kind uint8, count int, body []byte) {
		recorded, err := events.Decode(body, min(max(count, 0), 256))
		if err != nil {
			return
		}
		evs := make([]events.Event, len(recorded))
		for i, r := range recorded {
			evs[i] = r.Event
		}
		c, err := mailbox.Unpack(events.OutboxKind(kind), b, evs)
		if err != nil {
			return
		}
		s, err := mailbox.Restore(host, []byte(before))
		if err != nil {
			t.Fatal(err)
		}
		evs, err = s.Decide(c, 5, v.IDsOf("h@A"))
		if err != nil {
			if code := parley.CodeOf(err); code == parley.Internal {
				t.Fatal(err)
			}
			return
		}
		for _, e := range evs {
			stored, err := events.Append(nil, events.Recorded{At: 5, Event: e})
			if err != nil {
				t.Fatal(err)
			}
			again, err := events.Decode(stored, 1)
			if err != nil {
				t.Fatalf("%s cannot be read again: %v", events.Name(e), err)
			}
			if err := s.Apply(again[0]); err != nil {
				t.Fatal(err)
			}
		}
		encoded, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mailbox.Restore(host, encoded); err != nil {
			t.Fatal(err)
		}
	})
}
