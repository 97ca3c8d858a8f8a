package peers

import (
	"bytes"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// FuzzMailPacket decodes any bytes. A decoded packet equals the one decoded from its encoding, and all its parts are within
// bounds.
func FuzzMailPacket(f *testing.F) {
	node := capabilities.NodeOf([32]byte{31: 1})
	id := func(n byte) capabilities.ID { return capabilities.ID{ULID: ulid.ULID{15: n}, Node: node} }
	var l MailPacket
	for _, e := range []events.Event{
		&events.MessagePosted{Message: id(1), From: id(2), To: id(3), Text: []events.Span{{Words: "hello"}, {Edge: "e", Value: capabilities.Reference(capabilities.Ref{Target: id(4), Kind: capabilities.KindAgent, Grant: id(5)})}}},
		&events.FormRequested{ID: id(1), Promise: id(6), Resolver: id(7), From: id(2), To: id(3), Description: "d", Fields: []events.Field{{Name: "a", Type: events.Text, Required: true}}},
		&events.FormForwarded{Form: id(1), By: id(2), To: id(3)},
	} {
		p, err := PackItem(mailbox.OutboxItem{Kind: events.OutboxCopy, To: id(3)}, id(2), []events.Event{e})
		if err != nil {
			f.Fatal(err)
		}
		l.Items = append(l.Items, p)
		body, err := WritePacket(MailPacket{Items: []Item{p}, Introduced: []Introduction{{Node: node, Hints: []string{"nats://a:1"}, Stamp: 1}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	body, err := WritePacket(l)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add(append(bytes.Repeat([]byte{0x91}, 5000), 0xc0))                                            // nested
	f.Add(append([]byte{0x94, 0, 0, 0xc0, 0xdd, 1 << 6, 0, 0, 0}, bytes.Repeat([]byte{0xc0}, 9)...)) // a list that claims more elements than it has
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := ReadPacket[MailPacket](body)
		if err != nil || l.check() != nil {
			return
		}
		written, err := WritePacket(l)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadPacket[MailPacket](written)
		if err != nil || again.check() != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		for i, p := range l.Items {
			if q := again.Items[i]; q.Kind != p.Kind || q.From != p.From || q.To != p.To || q.Count != p.Count || !bytes.Equal(q.Body, p.Body) {
				t.Fatalf("%+v came back as %+v", p, q)
			}
			c, evs, err := p.unpack(node)
			if err == nil && (c == nil || len(evs) != p.Count) {
				t.Fatalf("%d events of %d make %T", len(evs), p.Count, c)
			}
		}
	})
}
