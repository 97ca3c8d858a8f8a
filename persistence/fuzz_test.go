package persistence

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/persistence/archive"
)

// testCommits returns a log of n commits of three mailboxes, as commits and as frames.
func testCommits(t testing.TB, n int) (all []*events.Commit, frames [][]byte, last Mark) {
	t.Helper()
	versions := map[int]uint64{}
	for i := range n {
		c := &events.Commit{Number: uint64(i) + 1, Prev: last.Hash, At: 1, Node: testNode(1)}
		for nth := range i%3 + 1 {
			body, err := events.Append(nil, events.Recorded{At: 1, Event: &events.NameBound{Name: "n", Value: capabilities.Int(int64(i))}})
			if err != nil {
				t.Fatal(err)
			}
			versions[nth]++
			c.Sections = append(c.Sections, events.Section{
				Mailbox: mailboxID(nth), First: versions[nth], Count: 1, Summary: events.Summary{Open: uint32(nth)}, Note: "note", Body: body,
			})
		}
		frame, hash, err := c.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		all, frames, last = append(all, c), append(frames, frame), Mark{Number: c.Number, Hash: hash}
	}
	return all, frames, last
}

// savedIndex returns the snapshot of the index of n commits.
func savedIndex(t testing.TB, n int) []byte {
	t.Helper()
	all, _, last := testCommits(t, n)
	x := newIndex(testNode(1))
	for _, c := range all {
		if err := x.add(c); err != nil {
			t.Fatal(err)
		}
	}
	d := &directory{node: testNode(1), index: x, head: head{Mark: last}}
	_, copied := d.copyIndex()
	var b bytes.Buffer
	if err := copied.write(&b, last); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzIndex reads a saved index to which whoever wrote it gave a right checksum.
func FuzzIndex(f *testing.F) {
	for _, n := range []int{1, 4, 900} { // the last has milestones
		f.Add(savedIndex(f, n))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if end := len(b) - sha256.Size; end > indexHeader {
			sum := sha256.Sum256(b[:end])
			b = append(slices.Clone(b[:end]), sum[:]...)
		}
		x, at, err := decodeIndex(testNode(1), b)
		if err != nil {
			if !errors.Is(err, errIndexDamaged) {
				t.Error(err)
			}
			return
		}
		for _, e := range x.order[:min(len(x.order), 50)] {
			if x.entries.get(e.id) != e {
				t.Fatalf("mailbox %s is not found", e.id)
			}
			e.trail().between(1, math.MaxUint64)
			e.trail().with([]uint64{1, e.version/2 + 1})
			e.trail().versionAt(at.Number)
		}
		d := &directory{node: testNode(1), index: x, head: head{Mark: at}}
		_, copied := d.copyIndex()
		var out bytes.Buffer
		if err := copied.write(&out, at); err != nil {
			t.Fatal(err)
		}
		if again, mark, err := decodeIndex(testNode(1), out.Bytes()); err != nil || mark != at || !again.equal(x) {
			t.Errorf("it is another index when it is written again: %v", err)
		}
	})
}

// TestClaimedLengthsTakeNoMemory reads a saved index and backups that claim more than they have.
func TestClaimedLengthsTakeNoMemory(t *testing.T) {
	const size = 1 << 20
	index := func(claims ...uint64) []byte {
		b := appendVarints(slices.Clone(savedIndex(t, 1)[:indexHeader]), claims...)
		b = append(b, make([]byte, size)...)
		sum := sha256.Sum256(b)
		return append(b, sum[:]...)
	}
	entries := index(0, 0, size-100, 0, 0)
	marks := index(append(append([]uint64{0, 0, 1, 0, 0}, make([]uint64, 16+7)...), size-100)...)
	node, most := string(testNode(1).Bytes()), string(binary.BigEndian.AppendUint32(nil, maxBackedUp))
	for what, read := range map[string]func() error{
		"entries":    func() error { _, _, err := decodeIndex(testNode(1), entries); return err },
		"milestones": func() error { _, _, err := decodeIndex(testNode(1), marks); return err },
		"a manifest": func() error {
			_, err := openBackup(strings.NewReader(archivedBackupMagic+node+most+"x"), testNode(1))
			return err
		},
		"a frame": func() error {
			r, err := openBackup(strings.NewReader(backupMagic+node+most+"x"), testNode(1))
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.readFrames(func(Mark, []byte) error { return nil }, nil)
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		if !errors.Is(err, errIndexDamaged) && parley.CodeOf(err) != parley.CorruptLog {
			t.Errorf("%s: %v", what, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 14*size {
			t.Errorf("%s took %d bytes", what, took)
		}
	}
}

// backupOf returns the frames of a backup behind a header, with the end of the last.
func backupOf(header []byte, frames [][]byte, last Mark) []byte {
	var b bytes.Buffer
	out := bufio.NewWriter(&b)
	_, _ = out.Write(header) // Flush returns the error, and a buffer has none
	for _, frame := range frames {
		_ = writeSized(out, frame)
	}
	_, _ = out.Write(trailer(last))
	_ = out.Flush()
	return b.Bytes()
}

// partOf returns the part of a backup with the commits behind one.
func partOf(frames [][]byte, after, last Mark) []byte {
	header := append([]byte(partMagic), testNode(1).Bytes()...)
	header = binary.BigEndian.AppendUint64(header, after.Number)
	return backupOf(append(header, after.Hash[:]...), frames, last)
}

// FuzzBackup reads a backup, up to its end or to the files of its archive.
func FuzzBackup(f *testing.F) {
	_, frames, last := testCommits(f, 3)
	node := string(testNode(1).Bytes())
	f.Add(backupOf([]byte(backupMagic+node), frames, last))
	m := (&archive.Manifest{Node: testNode(1), Recorded: true, End: Mark{Number: 9}, CheckpointBytes: 5}).Encode()
	f.Add(backupOf([]byte(archivedBackupMagic+node), [][]byte{m}, last))
	f.Add([]byte(archivedBackupMagic + node + "\x04\x00\x00\x00"))
	f.Add([]byte(backupMagic + node + "\x04\x00\x00\x00"))
	file := sha256.Sum256([]byte("file"))
	withFile := append([]byte(filesBackupMagic+node), 0x80, 0, 0, 4)
	f.Add(backupOf(append(append(withFile, file[:]...), "file"...), frames, last))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := openBackup(bytes.NewReader(b), testNode(1))
		if err == nil {
			if r.manifest != nil && (r.manifest.Node != testNode(1) || !r.manifest.Recorded) {
				t.Fatalf("the archive is %+v", r.manifest)
			}
			err = readBackup(t, r)
		}
		if code := parley.CodeOf(err); err != nil && code != parley.CorruptLog && code != parley.InvalidArgument {
			t.Errorf("refused with %v", err)
		}
	})
}

// readBackup reads the frames of a backup, and checks that they follow each other.
func readBackup(t *testing.T, r *backupReader) error {
	next := uint64(1)
	if r.manifest != nil {
		next = r.manifest.End.Number + 1
	}
	last, err := r.readFrames(func(m Mark, _ []byte) error {
		if m.Number != next {
			t.Fatalf("commit %d follows commit %d", m.Number, next-1)
		}
		next++
		return nil
	}, func(digest FileDigest, content []byte) error {
		if sha256.Sum256(content) != digest {
			t.Fatalf("file %s has other content", digest)
		}
		return nil
	})
	if err == nil && last.Number+1 != next {
		t.Errorf("it ends with commit %d, and was read up to %d", last.Number, next-1)
	}
	return err
}

// FuzzParts reads a folder with two parts of a backup, and all of it as one backup.
func FuzzParts(f *testing.F) {
	_, frames, last := testCommits(f, 4)
	_, _, middle := testCommits(f, 2)
	first, second := partOf(frames[:2], Mark{}, middle), partOf(frames[2:], middle, last)
	f.Add(first, second)
	f.Add(first, first)
	f.Add(partOf(nil, Mark{}, Mark{}), second)
	f.Add([]byte(baseMagic+string(first[len(baseMagic):])), second)
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, first, second []byte) {
		for name, b := range map[string][]byte{"1" + partSuffix: first, "2" + partSuffix: second} {
			if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		parts, err := Parts(folder, testNode(1))
		var in io.ReadCloser
		if err == nil {
			in, err = OpenParts(parts, testNode(1))
		}
		if err == nil {
			var r *backupReader
			if r, err = openBackup(in, testNode(1)); err == nil {
				err = readBackup(t, r)
			}
			if closed := in.Close(); closed != nil {
				t.Error(closed)
			}
		}
		if code := parley.CodeOf(err); err != nil && code != parley.CorruptLog && code != parley.InvalidArgument {
			t.Errorf("refused with %v", err)
		}
	})
}
