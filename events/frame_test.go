package events

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
)

// forgedFrame returns a frame with a valid hash and any content: header and table cells as msgpack, then the bodies.
func forgedFrame(t testing.TB, bodies []byte, header ...any) []byte {
	t.Helper()
	buf := bytes.NewBufferString(frameMagic)
	enc := msgpack.NewEncoder(buf)
	enc.UseCompactInts(true)
	for _, x := range header {
		if raw, ok := x.(msgpack.RawMessage); ok {
			buf.Write(raw)
			continue
		}
		if err := enc.Encode(x); err != nil {
			t.Fatal(err)
		}
	}
	buf.Write(bodies)
	h := sha256.Sum256(buf.Bytes())
	buf.Write(h[:])
	return buf.Bytes()
}

func TestEmptyCommitRoundTrip(t *testing.T) {
	c := &Commit{Number: 1, At: goldenAt, Sections: []Section{}}
	frame, hash, err := c.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, gotHash, err := DecodeCommit(frame)
	if err != nil || gotHash != hash || !reflect.DeepEqual(got, c) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestCommitNumbersRoundTrip(t *testing.T) {
	c := &Commit{Number: math.MaxUint64, At: math.MinInt64, Sections: []Section{{
		First: math.MaxUint64, Count: math.MaxUint32, Summary: Summary{Open: math.MaxUint32, Outbox: math.MaxUint32, Deadline: math.MaxInt64}, Body: []byte{},
	}, {Summary: Summary{Deadline: math.MinInt64}, Body: []byte{1}}}}
	frame, _, err := c.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := DecodeCommit(frame); err != nil || !reflect.DeepEqual(got, c) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestFrameOfANewerFormatIsUnknown(t *testing.T) {
	for _, format := range []uint64{0, layoutFormat - 1, frameFormat + 1, 1 << 40} {
		_, _, err := DecodeCommit(forgedFrame(t, []byte("anything"), format))
		u, ok := errors.AsType[*UnknownError](err)
		if !ok || u.Version != format || errors.Is(err, ErrDamaged) {
			t.Errorf("format %d: %v", format, err)
		}
		if text := fmt.Sprintf("has format %d: this program knows formats %d to %d", format, layoutFormat, frameFormat); !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%v does not say: %s", err, text)
		}
	}
}

// TestNewKindOfEventRaisesTheFormat has the program know one kind of event less than the one that wrote a frame.
func TestNewKindOfEventRaisesTheFormat(t *testing.T) {
	frame, _, err := testCommit(t).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func(was uint64) { frameFormat = was }(frameFormat)
	frameFormat -= uint64(schemas[kindTokenRevoked].version)
	if _, _, err := DecodeCommit(frame); err == nil {
		t.Error("an earlier program reads the frame")
	}
}

// TestForgedFrameIsDamaged decodes frames with a valid hash and invalid content.
func TestForgedFrameIsDamaged(t *testing.T) {
	hash, node := make([]byte, 32), make([]byte, 32)
	table := func(cells ...any) []any {
		return append([]any{frameFormat, 1, hash, capabilities.Time(1), node}, cells...)
	}
	id, none := make([]byte, 16), []byte{}
	if _, _, err := DecodeCommit(forgedFrame(t, []byte("body"), table([]any{id, 1, 1, 4, 0, 0, 0, 0, none})...)); err != nil {
		t.Fatalf("a valid frame: %v", err)
	}
	for what, frame := range map[string][]byte{
		"a body past the end":                forgedFrame(t, []byte("body"), table([]any{id, 1, 1, 5, 0, 0, 0, 0, none})...),
		"a body before the end":              forgedFrame(t, []byte("body"), table([]any{id, 1, 1, 3, 0, 0, 0, 0, none})...),
		"a body of negative size":            forgedFrame(t, []byte("body"), table([]any{id, 1, 1, -1, 0, 0, 0, 0, none})...),
		"a body of 2^63":                     forgedFrame(t, []byte("body"), table([]any{id, 1, 1, uint64(1) << 63, 0, 0, 0, 0, none})...),
		"sizes that overflow in sum":         forgedFrame(t, []byte("body"), table([]any{id, 1, 1, int64(math.MaxInt64), 0, 0, 0, 0, none, id, 1, 1, int64(math.MaxInt64), 0, 0, 0, 0, none})...),
		"bodies without a table":             forgedFrame(t, []byte("body"), table([]any{})...),
		"a table of half a section":          forgedFrame(t, nil, table([]any{id, 1, 1, 0})...),
		"a table of 4 billion cells":         forgedFrame(t, nil, table(msgpack.RawMessage{0xdd, 0xff, 0xff, 0xff, 0xff})...),
		"a table of 7 million cells":         forgedFrame(t, nil, table(msgpack.RawMessage{0xdd, 0, 0x6a, 0xcf, 0xc0})...),
		"a mailbox that is too short":        forgedFrame(t, nil, table([]any{id[1:], 1, 1, 0, 0, 0, 0, 0, none})...),
		"a mailbox that is a number":         forgedFrame(t, nil, table([]any{7, 1, 1, 0, 0, 0, 0, 0, none})...),
		"a hash that is too short":           forgedFrame(t, nil, frameFormat, 1, hash[1:], capabilities.Time(1), node, []any{}),
		"a node that is too long":            forgedFrame(t, nil, frameFormat, 1, hash, capabilities.Time(1), append(node, 0), []any{}),
		"a time that is a number":            forgedFrame(t, nil, frameFormat, 1, hash, 1, node, []any{}),
		"a header cut short":                 forgedFrame(t, nil, frameFormat, 1),
		"nothing but a hash":                 forgedFrame(t, nil),
		"nothing":                            nil,
		"another magic, with the right hash": append([]byte("XXXX"), forgedFrame(t, nil, frameFormat)[4:]...),
	} {
		if c, _, err := DecodeCommit(frame); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
}

func TestEveryFrameHasItsOwnHash(t *testing.T) {
	seen := map[Hash]string{}
	for what, change := range map[string]func(*Commit){
		"as it is": func(*Commit) {}, "number": func(c *Commit) { c.Number++ }, "prev": func(c *Commit) { c.Prev[31]++ }, "time": func(c *Commit) { c.At++ },
		"node": func(c *Commit) { c.Node = capabilities.NodeOf([32]byte{31: 8}) }, "mailbox": func(c *Commit) { c.Sections[1].Mailbox = testID(9) }, "first": func(c *Commit) { c.Sections[0].First++ },
		"count": func(c *Commit) { c.Sections[0].Count++ }, "open": func(c *Commit) { c.Sections[0].Summary.Open++ }, "outbox": func(c *Commit) { c.Sections[0].Summary.Outbox++ },
		"deadline": func(c *Commit) { c.Sections[0].Summary.Deadline++ }, "body": func(c *Commit) { c.Sections[0].Body[9]++ }, "order": func(c *Commit) {
			c.Sections[0], c.Sections[1] = c.Sections[1], c.Sections[0]
		},
	} {
		c := testCommit(t)
		change(c)
		_, h, err := c.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[h]; twice {
			t.Errorf("%s and %s have the same hash", what, other)
		}
		seen[h] = what
	}
}

// FuzzDecodeCommit appends a valid hash to any content, so that the content is decoded.
func FuzzDecodeCommit(f *testing.F) {
	for _, c := range []*Commit{testCommit(f), goldenFrame(f), {Number: 1}} {
		frame, _, err := c.Encode(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame[len(frameMagic) : len(frame)-sha256.Size])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		sealed := append([]byte(frameMagic), content...)
		h := sha256.Sum256(sealed)
		c, _, err := DecodeCommit(append(sealed, h[:]...))
		if err != nil {
			if _, unknown := errors.AsType[*UnknownError](err); !unknown && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		frame, hash, err := c.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, gotHash, err := DecodeCommit(frame)
		if err != nil || gotHash != hash || !reflect.DeepEqual(again, c) {
			t.Fatalf("got %+v, %v, want %+v", again, err, c)
		}
	})
}

func commitOf64(b *testing.B) *Commit {
	c := &Commit{Number: 9, At: goldenAt, Node: testID(0).Node}
	for n := range byte(64) {
		c.Sections = append(c.Sections, Section{Mailbox: testID(n), First: 4, Count: 1, Summary: Summary{Open: 1, Outbox: 1}, Body: appended(b, fourFields())})
	}
	return c
}

func BenchmarkEncodeCommit(b *testing.B) {
	c := commitOf64(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.Encode(nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeCommit(b *testing.B) {
	frame, _, err := commitOf64(b).Encode(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := DecodeCommit(frame); err != nil {
			b.Fatal(err)
		}
	}
}
