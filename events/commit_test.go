package events

import (
	"errors"
	"reflect"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
)

func testID(n byte) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID{15: n}, Node: capabilities.NodeOf([32]byte{31: 7})}
}

func testCommit(t testing.TB) *Commit {
	t.Helper()
	body, err := Append(nil,
		Recorded{At: 1_700_000_000_000, Event: &NameBound{Name: "a", Value: capabilities.Int(5)}},
		Recorded{At: 1_700_000_000_001, Event: &FormRequested{Number: 3, ID: testID(1), From: testID(2), To: testID(3),
			Description: "d", Fields: []Field{{Name: "f", Label: "F", Type: Select, Options: []Option{{Value: "v"}}}}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return &Commit{Number: 9, Prev: Hash{1}, At: 1_700_000_000_002, Node: capabilities.NodeOf([32]byte{31: 7}), Sections: []Section{
		{Mailbox: testID(2), First: 4, Count: 2, Summary: Summary{Open: 1, Outbox: 2, Deadline: 77}, Body: body},
		{Mailbox: testID(3), First: 1, Count: 0, Body: []byte{}},
	}}
}

func TestFrameRoundTrip(t *testing.T) {
	c := testCommit(t)
	frame, hash, err := c.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, gotHash, err := DecodeCommit(frame)
	if err != nil {
		t.Fatal(err)
	}
	if gotHash != hash || !reflect.DeepEqual(got, c) {
		t.Fatalf("got  %+v\nwant %+v", got, c)
	}
	evs, err := got.Sections[0].Events()
	if err != nil {
		t.Fatal(err)
	}
	if f := evs[1].Event.(*FormRequested); f.Fields[0].Options[0].Value != "v" || f.From != testID(2) {
		t.Fatalf("got %+v", f)
	}
}

func TestDamagedFrameIsRefused(t *testing.T) {
	frame, _, err := testCommit(t).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range frame {
		if _, _, err := DecodeCommit(frame[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		for bit := range 8 {
			bad := append([]byte(nil), frame...)
			bad[n] ^= 1 << bit
			if _, _, err := DecodeCommit(bad); !errors.Is(err, ErrDamaged) {
				t.Fatalf("byte %d bit %d flipped: %v", n, bit, err)
			}
		}
	}
}

func TestHeadOfAFrameIsThatOfItsCommit(t *testing.T) {
	c := Commit{Number: 7, Prev: Hash{1}, At: 5, Node: capabilities.NodeOf([32]byte{2})}
	for range 3 {
		c.Sections = append(c.Sections, Section{Mailbox: capabilities.ID{Node: c.Node}, First: 1, Count: 1, Body: []byte("body")})
	}
	frame, _, err := c.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, hash, err := DecodeCommit(frame)
	if err != nil {
		t.Fatal(err)
	}
	head, same, err := DecodeHead(frame)
	if err != nil || same != hash {
		t.Fatalf("%v, %v; want %v", same, err, hash)
	}
	if whole.Sections = nil; !reflect.DeepEqual(head, whole) {
		t.Fatalf("got %+v, want %+v", head, whole)
	}
	for i := range frame {
		frame[i] ^= 1
		if _, _, err := DecodeHead(frame); err == nil {
			t.Fatalf("byte %d was changed, and nobody noticed", i)
		}
		frame[i] ^= 1
	}
}
