package archive_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
	"parley/persistence/archive"
)

func testKey() capabilities.NodeID { return capabilities.NodeOf([32]byte{31: 1}) }

// newCheckpoint writes a checkpoint and returns its path, digest and mailboxes.
func newCheckpoint(t testing.TB) (string, events.Hash, []archive.Mailbox) {
	t.Helper()
	path := filepath.Join(t.TempDir(), archive.CheckpointName(7))
	w, err := archive.CreateCheckpoint(path, testKey(), archive.Mark{Number: 7, Hash: events.Hash{7}})
	if err != nil {
		t.Fatal(err)
	}
	var all []archive.Mailbox
	for n := range 40 {
		m := archive.Mailbox{
			ID: ulid.ULID{15: byte(2 * n)}, Version: uint64(n + 1), Last: 7, Summary: events.Summary{Open: uint32(n), Deadline: 5},
			Note: fmt.Sprint("note ", n), Steps: []byte{7, byte(n)}, State: slices.Repeat([]byte(fmt.Sprint("state ", n)), 2000),
		}
		if err := w.Add(m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	digest, size, err := w.Close(100, 50)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != size {
		t.Fatalf("%d bytes: %v", size, err)
	}
	return path, digest, all
}

func sameMailbox(a, b archive.Mailbox) bool {
	return a.ID == b.ID && a.Version == b.Version && a.Last == b.Last && a.Summary == b.Summary && a.Note == b.Note && slices.Equal(a.Steps, b.Steps) && slices.Equal(a.State, b.State)
}

func TestCheckpointRoundTrip(t *testing.T) {
	path, digest, want := newCheckpoint(t)
	c, err := archive.OpenCheckpoint(path, digest)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it is only read
	if c.Node() != testKey() || c.End().Number != 7 || c.Events() != 100 || c.Sections() != 50 || c.Mailboxes() != uint64(len(want)) {
		t.Errorf("%v, %v, %d, %d, %d", c.Node(), c.End(), c.Events(), c.Sections(), c.Mailboxes())
	}
	var got []archive.Mailbox
	if err := c.Each(func(m archive.Mailbox) error { got = append(got, m); return nil }); err != nil || !slices.EqualFunc(got, want, sameMailbox) {
		t.Errorf("%d mailboxes, %v", len(got), err)
	}
	for n := range 80 {
		m, found, err := c.Find(ulid.ULID{15: byte(n)})
		if err != nil || found != (n%2 == 0) || found && !sameMailbox(m, want[n/2]) {
			t.Errorf("mailbox %d: found %v, version %d, %v", n, found, m.Version, err)
		}
	}
	if _, err := archive.OpenCheckpoint(path, events.Hash{1}); !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("another checkpoint: %v", err)
	}
}

// TestFirstFormatOfCheckpoints reads a file of the first format. From the first release on it is kept for ever and never
// written again.
func TestFirstFormatOfCheckpoints(t *testing.T) {
	const golden = "testdata/format-1.checkpoint"
	path, _, want := newCheckpoint(t)
	if flag.Lookup("rewrite").Value.String() == "true" {
		whole, err := os.ReadFile(path)
		if err = errors.Join(err, os.WriteFile(golden, whole, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	c, err := archive.OpenCheckpoint(golden, events.Hash(b[len(b)-44:]))
	if err != nil {
		t.Fatal(err)
	}
	var got []archive.Mailbox
	err = c.Each(func(m archive.Mailbox) error { got = append(got, m); return nil })
	if err = errors.Join(err, c.Close()); err != nil || !slices.EqualFunc(got, want, sameMailbox) {
		t.Errorf("%d mailboxes, %v", len(got), err)
	}
}

func TestDamagedCheckpointIsFound(t *testing.T) {
	path, digest, _ := newCheckpoint(t)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) error {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := archive.OpenCheckpoint(path, digest)
		if err != nil {
			return err
		}
		return errors.Join(c.Each(func(archive.Mailbox) error { return nil }), c.Close())
	}
	for at := 0; at < len(good); at += 7 {
		bad := slices.Clone(good)
		bad[at] ^= 0x10
		if err := read(bad); !errors.Is(err, archive.ErrDamaged) {
			t.Fatalf("a flip at byte %d of %d: %v", at, len(good), err)
		}
	}
	for _, n := range []int{0, 10, len(good) / 2, len(good) - 1} {
		if err := read(good[:n]); !errors.Is(err, archive.ErrDamaged) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
}

// TestForgedCheckpointTakesNoMemory opens a checkpoint whose footer says that its first block is 4 GiB large, and has the
// right digest for that.
func TestForgedCheckpointTakesNoMemory(t *testing.T) {
	path, _, _ := newCheckpoint(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const tail, head, raw = 32 + 4 + 8, 32 + 40 + 3*8, 16 + 4 + 4 // bytes behind the footer, before its blocks, and in a block before its size
	size := int(binary.BigEndian.Uint32(b[len(b)-12:]))
	foot := b[len(b)-tail-size : len(b)-tail]
	binary.BigEndian.PutUint32(foot[head+raw:], math.MaxUint32)
	digest := sha256.Sum256(foot)
	copy(b[len(b)-tail:], digest[:])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := archive.OpenCheckpoint(path, digest)
	if !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("it is opened: %v", err)
	}
	if c != nil {
		_ = c.Close() // it was only read
	}
}

// FuzzCheckpoint reads checkpoints that whoever wrote them gave a right digest.
func FuzzCheckpoint(f *testing.F) {
	path, _, _ := newCheckpoint(f)
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/format-1.checkpoint")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add(b[:60])
	const tail = 32 + 4 + 8
	path = filepath.Join(f.TempDir(), "fuzzed")
	f.Fuzz(func(t *testing.T, b []byte) {
		b = slices.Clone(b)
		var digest events.Hash
		if len(b) >= tail {
			foot := b[:len(b)-tail]
			size := min(int(binary.BigEndian.Uint32(b[len(b)-12:])), len(foot))
			digest = sha256.Sum256(foot[len(foot)-size:])
			copy(b[len(b)-tail:], digest[:])
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := archive.OpenCheckpoint(path, digest)
		if err != nil {
			if !errors.Is(err, archive.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		read := uint64(0)
		err = c.Each(func(m archive.Mailbox) error { read++; return nil })
		if err == nil && read != c.Mailboxes() || err != nil && !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("%d of %d mailboxes, %v", read, c.Mailboxes(), err)
		}
		if _, _, err := c.Find(ulid.ULID{15: 4}); err != nil && !errors.Is(err, archive.ErrDamaged) {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func testManifest() *archive.Manifest {
	mark := func(n uint64) archive.Mark { return archive.Mark{Number: n, Hash: events.Hash{byte(n)}} }
	return &archive.Manifest{
		Node: testKey(), After: mark(4), End: mark(9), Recorded: true, Checkpoint: events.Hash{1}, CheckpointBytes: 5,
		Segments: []archive.Segment{
			{First: 1, Last: 4, End: mark(4), From: 1, To: 2, Bytes: 100, Digest: events.Hash{2}},
			{First: 5, Last: 9, After: mark(4), End: mark(9), From: 2, To: 3, Bytes: 200, Digest: events.Hash{3}},
		},
	}
}

func TestManifestHasPlaces(t *testing.T) {
	m := testManifest()
	before := m.Encode()
	moved, err := m.WithPlace(0, "s3://logs/parley")
	if err != nil {
		t.Fatal(err)
	}
	got, err := archive.DecodeManifest(moved.Encode())
	if err != nil || !reflect.DeepEqual(got, moved) || got.PlaceOf(0) != "s3://logs/parley" {
		t.Errorf("%+v, %v", got, err)
	}
	if !bytes.Equal(m.Encode(), before) || m.PlaceOf(0) != "" || m.PlaceOf(99) != "" {
		t.Error("the manifest before has changed")
	}
	if back, err := moved.WithPlace(0, ""); err != nil || !bytes.Equal(back.Encode(), before) {
		t.Errorf("a manifest without places is not as it was: %v", err)
	}
	if _, err := m.WithPlace(0, strings.Repeat("x", 5000)); err == nil {
		t.Error("a long place was accepted")
	}
}

func TestManifestIsKeptTwice(t *testing.T) {
	folder, m := t.TempDir(), testManifest()
	if none, err := archive.ReadManifest(folder); none != nil || err != nil {
		t.Fatalf("%+v, %v", none, err)
	}
	for _, name := range []string{"manifest", "manifest.copy"} {
		if err := archive.WriteManifest(folder, m); err != nil {
			t.Fatal(err)
		}
		for _, damage := range []func(path string) error{
			os.Remove, func(path string) error { return os.Truncate(path, 20) },
		} {
			if err := damage(filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
			got, err := archive.ReadManifest(folder)
			if err != nil || got.End != m.End || !slices.Equal(got.Segments, m.Segments) || got.After != m.After || !got.Recorded {
				t.Fatalf("%s: %+v, %v", name, got, err)
			}
			if archive.IsKept(folder, m) {
				t.Fatalf("without %s it is said to be kept", name)
			}
			if err := archive.WriteManifest(folder, m); err != nil || !archive.IsKept(folder, m) {
				t.Fatalf("%s was not repaired: %v", name, err)
			}
		}
	}
	for _, name := range []string{"manifest", "manifest.copy"} {
		if err := os.Truncate(filepath.Join(folder, name), 20); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := archive.ReadManifest(folder); !errors.Is(err, archive.ErrDamaged) {
		t.Fatalf("both are damaged: %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(testManifest().Encode())
	if moved, err := testManifest().WithPlace(0, "/srv/archive"); err == nil {
		f.Add(moved.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := archive.DecodeManifest(b)
		if err == nil && !slices.Equal(m.Encode(), b) {
			t.Fatal("decoded to another manifest")
		}
		if err != nil && !errors.Is(err, archive.ErrDamaged) {
			t.Fatal(err)
		}
	})
}
