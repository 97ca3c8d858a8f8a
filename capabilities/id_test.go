package capabilities

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/oklog/ulid/v2"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"parley/internal/fault"
)

// The texts of a node and of a ULID.
const (
	nodeText = "NAAACAQDAQCQMBYIBEFAWDANBYHRAEISCMKBKFQXDAMRUGY4DUPB6CRG"
	ulidText = "01JZ9GQ1ZMTXJ8PDD0R5Y4K2HV"
)

func testNode() NodeID {
	var key [NodeKeySize]byte
	for i := range key {
		key[i] = byte(i)
	}
	return NodeOf(key)
}

func testID(n byte) ID { return ID{ULID: ulid.ULID{15: n}, Node: testNode()} }

func wantCode(t testing.TB, err error, code fault.Code, what string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("%.200s: got %v, want %s", what, err, code)
	}
}

func someID() *rapid.Generator[ID] {
	return rapid.Custom(func(t *rapid.T) ID {
		var id ID
		copy(id.ULID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "ulid"))
		id.Node = NodeOf([32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "node")))
		return id
	})
}

func TestIDTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := someID().Draw(t, "id")
		got, err := ParseID(id.String())
		if err != nil || got != id {
			t.Fatalf("%s: got %s, %v", id, got, err)
		}
		node, err := ParseNodeID(id.Node.String())
		if err != nil || node != id.Node {
			t.Fatalf("%s: got %s, %v", id.Node, node, err)
		}
	})
}

func TestIDEncodingRoundTrip(t *testing.T) {
	for _, id := range []ID{{}, testID(0), testID(255)} {
		b, err := msgpack.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		got := testID(9)
		if err := msgpack.Unmarshal(b, &got); err != nil || got != id {
			t.Errorf("msgpack of %s: got %s, %v", id, got, err)
		}
		doc, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		got = testID(9)
		if err := json.Unmarshal(doc, &got); err != nil || got != id {
			t.Errorf("JSON %s: got %s, %v", doc, got, err)
		}
	}
}

func TestMalformedIDsAreRefused(t *testing.T) {
	if id, err := ParseID(ulidText + "@" + nodeText); err != nil || id.String() != ulidText+"@"+nodeText || id.Node != testNode() {
		t.Fatalf("a valid ID: %v, %v", id, err)
	}
	flipped := nodeText[:20] + "A" + nodeText[21:]
	for what, s := range map[string]string{
		"empty":                  "",
		"no node":                ulidText,
		"an empty node":          ulidText + "@",
		"an empty ULID":          "@" + nodeText,
		"a ULID in lower case":   strings.ToLower(ulidText) + "@" + nodeText,
		"a ULID with 25 letters": ulidText[1:] + "@" + nodeText,
		"a ULID with 27 letters": "0" + ulidText + "@" + nodeText,
		"a ULID with an I":       "01JZ9GQ1ZMTXJ8PDD0R5Y4K2HI@" + nodeText,
		"a ULID that overflows":  "8" + strings.Repeat("Z", 25) + "@" + nodeText,
		"a node in lower case":   ulidText + "@" + strings.ToLower(nodeText),
		"a wrong checksum":       ulidText + "@" + flipped,
		"a user's key":           ulidText + "@U" + nodeText[1:],
		"a node with 55 letters": ulidText + "@" + nodeText[:55],
		"a node with a newline":  ulidText + "@" + nodeText[:55] + "\n",
		"two nodes":              ulidText + "@" + nodeText + "@" + nodeText,
		"a leading space":        " " + ulidText + "@" + nodeText,
		"invalid UTF-8":          "\xff\xfe@" + nodeText,
		"a megabyte":             strings.Repeat("0", 1<<20) + "@" + nodeText,
	} {
		_, err := ParseID(s)
		wantCode(t, err, fault.InvalidArgument, what)
		if e := fault.AsError(err); len(e.Message) > 600 {
			t.Errorf("%s: a message of %d bytes", what, len(e.Message))
		}
	}
}

func TestIDsOfOtherExtensionsAreRefused(t *testing.T) {
	good, err := msgpack.Marshal(testID(1))
	if err != nil {
		t.Fatal(err)
	}
	otherType, short := bytes.Clone(good), bytes.Clone(good[:len(good)-1])
	otherType[2] = 9
	for what, b := range map[string][]byte{"another type": otherType, "cut short": short, "a string": {0xa1, 'x'}} {
		var id ID
		if err := msgpack.Unmarshal(b, &id); err == nil {
			t.Errorf("%s: got %s", what, id)
		}
	}
}

func TestIDsAreOrderedByULIDFirst(t *testing.T) {
	a, b := testID(1), testID(2)
	b.Node = NodeID{}
	c := a
	key := c.Node.Key()
	key[0] = 1
	c.Node = NodeOf(key)
	if a.Compare(b) >= 0 || b.Compare(a) <= 0 || a.Compare(a) != 0 || a.Compare(c) >= 0 {
		t.Fatalf("%d %d %d %d", a.Compare(b), b.Compare(a), a.Compare(a), a.Compare(c))
	}
}

// FuzzParseID checks that each ID has one text.
func FuzzParseID(f *testing.F) {
	f.Add(ulidText + "@" + nodeText)
	f.Add("7ZZZZZZZZZZZZZZZZZZZZZZZZZ@" + nodeText)
	f.Add("8ZZZZZZZZZZZZZZZZZZZZZZZZZ@" + nodeText)
	f.Add("@")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err == nil && id.String() != s {
			t.Fatalf("%q is parsed as %s", s, id)
		}
		if e, ok := errors.AsType[*fault.Error](err); err != nil && (!ok || e.Code != fault.InvalidArgument) {
			t.Fatalf("%q: %v", s, err)
		}
	})
}

func TestNodeIDsAreComparedByTheirKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([][NodeKeySize]byte{{}, {1}, {2}, {31: 1}})
		a, b := keys.Draw(t, "a"), keys.Draw(t, "b")
		if NodeOf(a).Key() != a || !bytes.Equal(NodeOf(a).Bytes(), a[:]) {
			t.Fatalf("%x has another key", a)
		}
		if (NodeOf(a) == NodeOf(b)) != (a == b) || NodeOf(a).Compare(NodeOf(b)) != bytes.Compare(a[:], b[:]) {
			t.Fatalf("%x and %x", a, b)
		}
	})
	if NodeOf([NodeKeySize]byte{}) != (NodeID{}) {
		t.Error("the zero key is not that of the zero NodeID")
	}
}

// TestTextOfANodeIsThatOfNkeys compares the text of random keys with that of package nkeys.
func TestTextOfANodeIsThatOfNkeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var key [NodeKeySize]byte
		copy(key[:], rapid.SliceOfN(rapid.Byte(), NodeKeySize, NodeKeySize).Draw(t, "key"))
		want, err := nkeys.Encode(nkeys.PrefixByteServer, key[:])
		if got := NodeOf(key).String(); err != nil || got != string(want) {
			t.Fatalf("%s, want %s (%v)", got, want, err)
		}
	})
}

func BenchmarkIDText(b *testing.B) {
	id := ID{Node: NodeOf([NodeKeySize]byte{1, 2, 3})}
	text := make([]byte, 0, IDTextSize)
	for b.Loop() {
		text = id.Append(text[:0])
	}
}

// TestNodeIDsAreReadAsByTheLibrary changes each letter of a key's text.
func TestNodeIDsAreReadAsByTheLibrary(t *testing.T) {
	key := testNode().String()
	if n, err := ParseNodeID(key); err != nil || n != testNode() {
		t.Fatal(n, err)
	}
	for i := range key {
		for _, c := range []byte("A7NZ2018a-") {
			other := key[:i] + string(c) + key[i+1:]
			_, err := nkeys.Decode(nkeys.PrefixByteServer, []byte(other))
			if _, own := ParseNodeID(other); (own == nil) != (err == nil) {
				t.Errorf("%s: %v, and the library says %v", other, own, err)
			}
		}
	}
}
