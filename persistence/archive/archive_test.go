package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
)

var rewrite = flag.Bool("rewrite", false, "write the files in testdata")

func testNode(n byte) capabilities.NodeID { return capabilities.NodeOf([32]byte{31: n}) }

// chain returns the frames of commits behind a mark, and the mark of the last.
func chain(t testing.TB, after Mark, n int) ([][]byte, Mark) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, after.Number))
	list := make([][]byte, n)
	for i := range list {
		at := capabilities.Time(1_000_000 + after.Number)
		body, err := events.Append(nil, events.Recorded{At: at, Event: &events.NameBound{Name: fmt.Sprint("name-", r.Uint64())}})
		if err != nil {
			t.Fatal(err)
		}
		c := events.Commit{Number: after.Number + 1, Prev: after.Hash, At: at, Node: testNode(1), Sections: []events.Section{{
			Mailbox: capabilities.ID{ULID: ulid.ULID{15: 1}, Node: testNode(1)}, First: after.Number + 1, Count: 1, Body: body,
		}}}
		frame, hash, err := c.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		list[i], after = frame, Mark{Number: c.Number, Hash: hash}
	}
	return list, after
}

// write writes a segment of frames behind a mark.
func write(t testing.TB, path string, after Mark, frames [][]byte) Segment {
	t.Helper()
	w, err := Create(path, testNode(1), after)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		if err := w.Add(after.Number+uint64(i)+1, f); err != nil {
			t.Fatal(err)
		}
	}
	s, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openSegment(t testing.TB, path string, want Segment) *Reader {
	t.Helper()
	r, err := Open(path, want)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestSegmentHasItsFrames(t *testing.T) {
	t.Parallel()
	before, after := chain(t, Mark{}, 300)
	frames, end := chain(t, after, 8000)
	path := filepath.Join(t.TempDir(), "segment")
	s := write(t, path, after, frames)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Segment{First: 301, Last: 8300, After: after, End: end, From: 1_000_300, To: 1_008_299, Bytes: info.Size(), Digest: s.Digest}
	if s != want {
		t.Fatalf("the segment is %+v, want %+v", s, want)
	}
	if back := SegmentOf(after, s.Record()); back != s {
		t.Errorf("its record has %+v", back)
	}
	r := openSegment(t, path, s)
	if r.Segment() != s || r.Node() != testNode(1) || len(r.foot.blocks) < 3 {
		t.Fatalf("read %+v of node %s in %d blocks", r.Segment(), r.Node(), len(r.foot.blocks))
	}
	if err := r.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{301, 8300, 302, 5000, 4999, 301, 8299} {
		if f, err := r.Frame(n); err != nil || !bytes.Equal(f, frames[n-301]) {
			t.Errorf("commit %d: %v", n, err)
		}
	}
	for _, n := range []uint64{0, 300, 8301} {
		if _, err := r.Frame(n); err == nil || errors.Is(err, ErrDamaged) {
			t.Errorf("commit %d, which is not in it: %v", n, err)
		}
	}
	next := uint64(400)
	err = r.Each(t.Context(), 400, 8200, func(n uint64, f []byte) error {
		if n != next || !bytes.Equal(f, frames[n-301]) {
			t.Fatalf("commit %d in place of %d", n, next)
		}
		next++
		return nil
	})
	if err != nil || next != 8201 {
		t.Errorf("read up to %d: %v", next, err)
	}
	stop := errors.New("stop")
	if err := r.Each(t.Context(), 0, 1<<63, func(uint64, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("after an error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
	if write(t, path, Mark{}, before).First != 1 {
		t.Error("the first segment does not begin with commit 1")
	}
	if r, err := Open(path, s); !errors.Is(err, ErrDamaged) {
		t.Errorf("another segment: %v, %v", r, err)
	}
	if _, err := Open(path+"x", s); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no segment: %v", err)
	}
}

func TestWriterRefusesWhatDoesNotFollow(t *testing.T) {
	t.Parallel()
	frames, end := chain(t, Mark{}, 3)
	folder := t.TempDir()
	for name, add := range map[string]func(w *Writer) error{
		"a gap":         func(w *Writer) error { return w.Add(2, frames[1]) },
		"another place": func(w *Writer) error { return w.Add(1, frames[1]) },
		"damage":        func(w *Writer) error { return w.Add(1, append(bytes.Clone(frames[0]), 0)) },
		"nothing":       func(w *Writer) error { _, err := w.Close(); return err },
	} {
		w, err := Create(filepath.Join(folder, "segment"), testNode(1), Mark{})
		if err != nil {
			t.Fatal(err)
		}
		if add(w) == nil {
			t.Errorf("%s was accepted", name)
		}
		w.Discard()
	}
	for name, from := range map[string]struct {
		node  capabilities.NodeID
		after Mark
	}{"another chain": {testNode(1), Mark{Number: 0, Hash: events.Hash{1}}}, "another node": {testNode(2), Mark{}}, "a repetition": {testNode(1), end}} {
		w, err := Create(filepath.Join(folder, "segment"), from.node, from.after)
		if err != nil {
			t.Fatal(err)
		}
		if w.Add(1, frames[0]) == nil {
			t.Errorf("%s was accepted", name)
		}
		w.Discard()
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// small returns the bytes of a segment of three blocks.
func small(t testing.TB) ([]byte, Segment) {
	t.Helper()
	frames, _ := chain(t, Mark{}, 9)
	path := filepath.Join(t.TempDir(), "segment")
	w, err := Create(path, testNode(1), Mark{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		err = w.Add(uint64(i)+1, f)
		if err == nil && i%3 == 2 && i < 8 {
			err = w.endBlock()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b, s
}

// check opens the bytes of a segment and reads all of it.
func check(b []byte, want Segment) error {
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), want)
	if err != nil {
		return err
	}
	return r.Verify(context.Background())
}

func TestEveryFlipAndCutIsFound(t *testing.T) {
	t.Parallel()
	b, s := small(t)
	if err := check(b, s); err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for _, bit := range []byte{1, 0x80} {
			b[i] ^= bit
			if err := check(b, s); !errors.Is(err, ErrDamaged) {
				t.Errorf("byte %d of %d: %v", i, len(b), err)
			}
			if err := check(b, Segment{}); !errors.Is(err, ErrDamaged) {
				t.Errorf("byte %d of %d, without a record: %v", i, len(b), err)
			}
			b[i] ^= bit
		}
		if err := check(b[:i], Segment{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at byte %d: %v", i, err)
		}
	}
	if err := check(append(bytes.Clone(b), 0), Segment{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte more: %v", err)
	}
}

func TestDamageNamesTheBlockAndLeavesTheOthers(t *testing.T) {
	t.Parallel()
	b, s := small(t)
	path := filepath.Join(t.TempDir(), s.Name())
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), s)
	if err != nil {
		t.Fatal(err)
	}
	b[r.foot.blocks[1].offset+10] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r = openSegment(t, path, s)
	_, err = r.Frame(5)
	want := "segment 00000000000000000001-00000000000000000009.segment, block 2 with commits 4 to 6: damaged segment: its digest is another"
	if !errors.Is(err, ErrDamaged) || err.Error() != want {
		t.Errorf("the damaged block: %v", err)
	}
	for _, n := range []uint64{3, 7} {
		if _, err := r.Frame(n); err != nil {
			t.Errorf("a block beside it: %v", err)
		}
	}
}

// reseal corrects the digests of a segment that was changed, as one would who wants it to be taken for another.
func reseal(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < len(magic)+tailSize {
		return b
	}
	tail := b[len(b)-tailSize:]
	size, err := footerSize(int64(len(b)), tail)
	if err != nil {
		return b
	}
	foot := b[int64(len(b)-tailSize)-size : len(b)-tailSize]
	f, err := decodeFooter(foot, sha256.Sum256(foot), int64(len(b)))
	if err != nil {
		return b
	}
	for i, e := range f.blocks {
		digest := sha256.Sum256(b[e.offset : e.offset+int64(e.size)])
		copy(foot[headerSize+i*entrySize+44:], digest[:])
	}
	digest := sha256.Sum256(foot)
	copy(tail, digest[:])
	return b
}

func TestAForgedSegmentIsNotTheRecordedOne(t *testing.T) {
	t.Parallel()
	b, s := small(t)
	if err := check(reseal(b), s); err != nil {
		t.Fatal(err)
	}
	whole := bytes.Clone(b)
	for i := len(magic); i < len(b)-tailSize; i++ {
		b[i] ^= 1
		forged := reseal(b)
		if err := check(forged, s); !errors.Is(err, ErrDamaged) && !bytes.Equal(forged, whole) {
			t.Errorf("byte %d of %d: %v", i, len(b), err)
		}
		_ = check(forged, Segment{}) // it may be whole, and does not panic
		b[i] ^= 1
	}
}

func TestNamesSortAsSegmentsDo(t *testing.T) {
	t.Parallel()
	list := []Segment{{First: 1, Last: 9}, {First: 10, Last: 99}, {First: 100, Last: 1 << 63}}
	var names []string
	for _, s := range list {
		first, last, ok := ParseName(s.Name())
		if !ok || first != s.First || last != s.Last {
			t.Errorf("%s: %d, %d, %v", s.Name(), first, last, ok)
		}
		names = append(names, s.Name())
	}
	if !slices.IsSorted(names) {
		t.Errorf("%q", names)
	}
	for _, other := range []string{"", "1-2.segment", list[0].Name() + ".tmp", list[0].Name() + "x", "x" + list[0].Name()} {
		if _, _, ok := ParseName(other); ok {
			t.Errorf("%q is a name", other)
		}
	}
}

// golden is a segment as the first release writes it. From then on it is kept for ever and never written again.
const golden = "testdata/format-1.segment"

func TestTheFirstFormatIsRead(t *testing.T) {
	t.Parallel()
	b, s := small(t)
	if *rewrite {
		if err := os.WriteFile(golden, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := openSegment(t, golden, Segment{})
	if got := r.Segment(); got.After != s.After || got.End.Number != s.End.Number || got.From != s.From || got.To != s.To {
		t.Errorf("it is %+v, want %+v", got, s)
	}
	if err := r.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func FuzzSegment(f *testing.F) {
	b, _ := small(f)
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add([]byte(magic + magic))
	huge := bytes.Clone(b)
	for i := len(huge) - tailSize - entrySize; i < len(huge)-tailSize-64; i++ {
		huge[i] = 0xff
	}
	f.Add(huge)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, reseal(b)} {
			r, err := NewReader(bytes.NewReader(b), int64(len(b)), Segment{})
			if err != nil {
				continue
			}
			next := r.seg.First
			err = r.Each(t.Context(), 0, math.MaxUint64, func(n uint64, frame []byte) error {
				if c, _, err := events.DecodeHead(frame); err != nil || n != next || c.Number != n {
					t.Errorf("commit %d: %v", n, err)
				}
				next++
				return nil
			})
			if err == nil && next != r.seg.Last+1 {
				t.Errorf("read up to %d of %d", next-1, r.seg.Last)
			}
		}
	})
}
