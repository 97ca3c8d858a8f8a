package peers

import (
	"reflect"
	"testing"

	"github.com/oklog/ulid/v2"
)

// FuzzPacket decodes any bytes as each kind of packet but mail. A decoded packet equals the one decoded from its encoding.
func FuzzPacket(f *testing.F) {
	for _, x := range []any{
		AckPacket{Acks: []Ack{{Status: AckAccepted}, {Status: AckRefused, Code: "NOT_PERMITTED", Text: "no"}}},
		AcceptPacket{Invitation: ulid.ULID{1}, Secret: "s", Host: ulid.ULID{2}, Hints: []string{"nats://a:1"}, Stamp: 7},
		WelcomePacket{Code: "EXPIRED", Text: "late", Host: ulid.ULID{2}, Grant: ulid.ULID{3}, Hints: []string{"tls://a:1"}, Stamp: 7},
		AddressPacket{Hints: []string{"nats://a:1", "nats://b:2"}, Stamp: 7},
	} {
		body, err := WritePacket(x)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		again[AckPacket](t, body)
		again[AcceptPacket](t, body)
		again[WelcomePacket](t, body)
		again[AddressPacket](t, body)
	})
}

// again decodes a packet, and once more from its encoding.
func again[T any](t *testing.T, body []byte) {
	t.Helper()
	x, err := ReadPacket[T](body)
	if err != nil {
		return
	}
	written, err := WritePacket(x)
	if err != nil {
		t.Fatal(err)
	}
	y, err := ReadPacket[T](written)
	if err != nil || !reflect.DeepEqual(x, y) {
		t.Errorf("%+v came back as %+v, %v", x, y, err)
	}
}
