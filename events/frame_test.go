package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
)

// forged returns a frame with a valid hash, and any values in its head and in its one section, before a body.
func forged(t testing.TB, head []any, section ...any) []byte {
	t.Helper()
	b := append([]byte(frameMagic), msgpcode.Bin8, 0)
	b = append(b, encodedAll(t, head...)...)
	b[headStart-1] = byte(len(b) - headStart)
	b = append(b, make([]byte, len(Blind{}))...)
	if content := encodedAll(t, section...); len(content) > 0 {
		b = append(binary.BigEndian.AppendUint32(append(b, msgpcode.Bin32), uint32(len(content))), content...)
	}
	return sealed(b)
}

// encodedAll encodes values one after the other, bytes of msgpack as they are.
func encodedAll(t testing.TB, values ...any) []byte {
	t.Helper()
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	for _, x := range values {
		if raw, ok := x.(msgpack.RawMessage); ok {
			buf.Write(raw)
		} else if err := enc.Encode(x); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

// sealed appends the hash to a frame. One that cannot be split gets a hash of all its bytes.
func sealed(b []byte) []byte {
	_, _, _, _, h, err := split(b)
	if err != nil {
		h = sha256.Sum256(b)
	}
	return append(b, h[:]...)
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
		_, _, err := DecodeCommit(forged(t, []any{format, "anything"}, "anything"))
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
	head := []any{frameFormat, 1, hash, capabilities.Time(1), node}
	id, none, body := make([]byte, 16), []byte{}, msgpack.RawMessage("body")
	if c, _, err := DecodeCommit(forged(t, head, id, 1, 1, 0, 0, 0, 0, none, body)); err != nil || string(c.Sections[0].Body) != "body" {
		t.Fatalf("a valid frame: %v", err)
	}
	bare := forged(t, head)
	bare = bare[:len(bare)-sha256.Size]
	for what, frame := range map[string][]byte{
		"a section past the end":      sealed(append(bytes.Clone(bare), msgpcode.Bin32, 0, 0, 0, 5, 'b', 'o', 'd', 'y')),
		"a section before the end":    sealed(append(bytes.Clone(bare), msgpcode.Bin32, 0, 0, 0, 3, 'b', 'o', 'd', 'y')),
		"a section of 4 GB":           sealed(append(bytes.Clone(bare), msgpcode.Bin32, 0xff, 0xff, 0xff, 0xff)),
		"a section of another form":   sealed(append(bytes.Clone(bare), msgpcode.Bin8, 4, 'b', 'o', 'd', 'y')),
		"a section of nothing":        sealed(append(bytes.Clone(bare), msgpcode.Bin32, 0, 0, 0, 0)),
		"half a section":              forged(t, head, id, 1, 1, 0),
		"a mailbox that is too short": forged(t, head, id[1:], 1, 1, 0, 0, 0, 0, none),
		"a mailbox that is a number":  forged(t, head, 7, 1, 1, 0, 0, 0, 0, none),
		"a hash that is too short":    forged(t, []any{frameFormat, 1, hash[1:], capabilities.Time(1), node}),
		"a node that is too long":     forged(t, []any{frameFormat, 1, hash, capabilities.Time(1), append(node, 0)}),
		"a time that is a number":     forged(t, []any{frameFormat, 1, hash, 1, node}),
		"a head cut short":            forged(t, []any{frameFormat, 1}),
		"a head that is too long":     forged(t, append(head, 1)),
		"a head past the end":         sealed(append([]byte(frameMagic), msgpcode.Bin8, 9, 1)),
		"nothing but a magic number":  sealed([]byte(frameMagic)),
		"nothing but a hash":          sealed(nil),
		"nothing":                     nil,
		"another magic":               sealed(append([]byte("XXXX"), bare[4:]...)),
	} {
		if c, _, err := DecodeCommit(frame); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
}

// TestSectionProvesItsCommit checks of commits with any sections that a section, the head and the other sections' hashes
// make the commit's hash, and that nothing else does: no other section, not the section in another place or twice, and
// not without one of the others.
func TestSectionProvesItsCommit(t *testing.T) {
	r := random{rand.New(rand.NewPCG(3, 4))}
	for range 200 {
		c := &Commit{Number: r.number(), At: capabilities.Time(r.number()), Prev: Hash{byte(r.Uint32())}, Node: testID(0).Node, Blind: Blind{byte(r.Uint32()), 1}, Sections: make([]Section, 1+r.IntN(40))}
		for i := range c.Sections {
			r.fill(reflect.ValueOf(&c.Sections[i].Summary).Elem())
			c.Sections[i].Mailbox, c.Sections[i].First, c.Sections[i].Note, c.Sections[i].Body = testID(byte(i)), r.number(), r.text(), []byte(r.text())
		}
		frame, want, err := c.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		head, blind, sections, n, _, err := checked(frame)
		if err != nil || n != len(c.Sections) {
			t.Fatal(n, err)
		}
		var contents [][]byte
		for len(sections) > 0 {
			var content []byte
			content, sections, _ = nextSection(sections)
			contents = append(contents, content)
		}
		// with is what a verifier computes who sees one section, and of the others only the hashes.
		with := func(shown []byte, at int, without int) Hash {
			sum := sha256.New()
			sum.Write(head)
			hidden := sha256.Sum256(blind[:])
			sum.Write(hidden[:])
			for i, content := range contents {
				if i == at {
					content = shown
				}
				mask := sha256.Sum256(binary.BigEndian.AppendUint64(blind[:len(blind):len(blind)], uint64(i)))
				h := sha256.Sum256(append(mask[:], content...))
				if i != without {
					sum.Write(h[:])
				}
			}
			return Hash(sum.Sum(nil))
		}
		at := r.IntN(n)
		if with(contents[at], at, -1) != want {
			t.Fatalf("section %d of %d does not prove the commit", at, n)
		}
		changed := bytes.Clone(contents[at])
		changed[r.IntN(len(changed))] ^= 1 << r.IntN(8)
		longer := append(bytes.Clone(contents[at]), 0)
		for what, h := range map[string]Hash{
			"a changed section": with(changed, at, -1), "a longer one": with(longer, at, -1), "a shorter one": with(contents[at][1:], at, -1),
			"no section": with(nil, at, -1), "the head as a section": with(head, at, -1), "one hash less": with(contents[at], at, r.IntN(n)),
		} {
			if h == want {
				t.Errorf("%s proves the commit", what)
			}
		}
		for i := range contents {
			if i != at && (with(contents[at], i, -1) == want || with(contents[i], at, -1) == want) {
				t.Errorf("section %d stands in for section %d", at, i)
			}
		}
	}
}

// TestSealIsTheHashOfEncode takes the hash off frames and puts it on again.
func TestSealIsTheHashOfEncode(t *testing.T) {
	for _, c := range []*Commit{testCommit(t), goldenFrame(t), {Number: 1}} {
		frame, want, err := c.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, head, h, err := Seal(bytes.Clone(frame[:len(frame)-sha256.Size]))
		if err != nil || h != want || !bytes.Equal(again, frame) || head.Number != c.Number {
			t.Errorf("commit %d: %s, %v", c.Number, h, err)
		}
	}
	if _, _, _, err := Seal([]byte(frameMagic)); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

func TestEveryFrameHasItsOwnHash(t *testing.T) {
	seen := map[Hash]string{}
	for what, change := range map[string]func(*Commit){
		"as it is": func(*Commit) {}, "number": func(c *Commit) { c.Number++ }, "prev": func(c *Commit) { c.Prev[31]++ }, "time": func(c *Commit) { c.At++ }, "blind": func(c *Commit) { c.Blind[15]++ },
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
		c, _, err := DecodeCommit(sealed(append([]byte(frameMagic), content...)))
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

func BenchmarkDecodeHead(b *testing.B) {
	frame, _, err := commitOf64(b).Encode(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := DecodeHead(frame); err != nil {
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
