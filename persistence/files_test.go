package persistence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"parley"
)

// content returns bytes that no other seed has.
func content(seed uint64, size int) (FileDigest, []byte) {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b) // it never fails
	return sha256.Sum256(b), b
}

func storeContent(t testing.TB, j *Journal, b []byte) FileDigest {
	t.Helper()
	d := FileDigest(sha256.Sum256(b))
	if err := j.StoreFile(t.Context(), d, int64(len(b)), bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	return d
}

// readContent reads a file as its readers do.
func readContent(ctx context.Context, j *Journal, d FileDigest) ([]byte, error) {
	var b []byte
	for {
		piece, size, err := j.FileAt(ctx, d, int64(len(b)))
		if err != nil || len(piece) == 0 {
			return b, errors.Join(err, sizeIs(size, b, err))
		}
		b = append(b, piece...)
	}
}

func sizeIs(size int64, b []byte, err error) error {
	if err == nil && size != int64(len(b)) {
		return errors.New("the size is another")
	}
	return nil
}

func wantContent(t testing.TB, j *Journal, d FileDigest, want []byte) {
	t.Helper()
	got, err := readContent(t.Context(), j, d)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("file %s: %d bytes of %d, %v", d, len(got), len(want), err)
	}
}

func TestStoredFilesAreReadAgain(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	all := map[FileDigest][]byte{}
	for i, size := range []int{0, 1, MaxFilePiece - 1, MaxFilePiece, MaxFilePiece + 1, 5*MaxFilePiece + 7} {
		d, b := content(uint64(i), size)
		if storeContent(t, j, b) != d {
			t.Fatal("the digest is another")
		}
		all[d] = b
	}
	check := func(j *Journal) {
		t.Helper()
		for d, b := range all {
			wantContent(t, j, d, b)
		}
		if kept, err := j.Files(t.Context()); err != nil || len(kept) != len(all) {
			t.Errorf("%d files, %v", len(kept), err)
		}
	}
	check(j)
	closeJournal(t, j)
	j = open(t, o)
	check(j)
	if r, err := j.Verify(t.Context()); err != nil || r.Files != len(all) || len(r.Damaged) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	missing, _ := content(99, 10)
	_, err := readContent(t.Context(), j, missing)
	wantCode(t, err, parley.NoSuchFile)
}

// TestFileIsKeptOnce stores one content several times.
func TestFileIsKeptOnce(t *testing.T) {
	j := open(t, testOptions(t))
	_, b := content(1, 3*MaxFilePiece)
	d := storeContent(t, j, b)
	s, err := openFiles(t.Context(), j.connection())
	if err != nil {
		t.Fatal(err)
	}
	before := s.CachedInfo().State
	for range 3 {
		storeContent(t, j, b)
	}
	after, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.State.Msgs != before.Msgs || after.State.LastSeq != before.LastSeq+3 { // the head alone
		t.Errorf("%d messages up to %d, before %d up to %d", after.State.Msgs, after.State.LastSeq, before.Msgs, before.LastSeq)
	}
	wantContent(t, j, d, b)
}

func TestOtherContentIsRefused(t *testing.T) {
	j := open(t, testOptions(t))
	d, b := content(1, 1000)
	b[7] ^= 1
	wantCode(t, j.StoreFile(t.Context(), d, int64(len(b)), bytes.NewReader(b)), parley.InvalidArgument)
	wantCode(t, j.StoreFile(t.Context(), d, MaxFile+1, bytes.NewReader(b)), parley.TooLarge)
	if _, err := readContent(t.Context(), j, d); parley.CodeOf(err) != parley.NoSuchFile {
		t.Error(err)
	}
}

// TestDamagedFileIsNamed loses and changes pieces and heads. Each damaged file is named, and the others are whole. Storing the
// content again makes it whole.
func TestDamagedFileIsNamed(t *testing.T) {
	j := open(t, testOptions(t))
	var digests []FileDigest
	var contents [][]byte
	for i := range 5 {
		_, b := content(uint64(i), 2*MaxFilePiece+i)
		digests, contents = append(digests, storeContent(t, j, b)), append(contents, b)
	}
	l := j.connection()
	s, err := openFiles(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	purge := func(i int, piece string) {
		t.Helper()
		if err := s.Purge(t.Context(), jetstream.WithPurgeSubject(l.o.fileSubject(digests[i], piece))); err != nil {
			t.Fatal(err)
		}
	}
	put := func(i int, piece string, b []byte) {
		t.Helper()
		if _, err := l.js.Publish(t.Context(), l.o.fileSubject(digests[i], piece), b); err != nil {
			t.Fatal(err)
		}
	}
	purge(0, "1")
	put(1, "0", contents[1][1:MaxFilePiece])
	put(2, headPiece, []byte(fileMagic+"nonsense"))
	purge(3, headPiece)
	for i, want := range []parley.Code{parley.FileDamaged, parley.FileDamaged, parley.FileDamaged, parley.NoSuchFile, ""} {
		if _, err := readContent(t.Context(), j, digests[i]); parley.CodeOf(err) != want {
			t.Errorf("file %d: %v", i, err)
		}
	}
	r, err := j.Verify(t.Context())
	if err != nil || r.Files != 1 || len(r.Damaged) != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, b := range contents {
		wantContent(t, j, storeContent(t, j, b), b)
	}
}

// TestFilesOutliveKill has a copy of the journal's files as a kill leaves them, with the store's index and without.
func TestFilesOutliveKill(t *testing.T) {
	base := testOptions(t)
	j := open(t, base)
	_, b := content(1, 3*MaxFilePiece)
	d := storeContent(t, j, b)
	for i, unsound := range []bool{false, true} {
		o := copyJournal(t, base)
		if unsound {
			if err := os.Remove(filepath.Join(blockFolderOf(&o, o.filesName()), serverState)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		k := open(t, o)
		wantContent(t, k, d, b)
		wantContent(t, k, storeContent(t, k, []byte("another "+strconv.Itoa(i))), []byte("another "+strconv.Itoa(i)))
		closeJournal(t, k)
	}
}

// TestKilledStoreLeavesNoFile fails a store before its end. The pieces are swept.
func TestKilledStoreLeavesNoFile(t *testing.T) {
	j := open(t, testOptions(t))
	d, b := content(1, 4*MaxFilePiece)
	cut := io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
	ctx, cancel := context.WithCancel(t.Context())
	storeContent(t, j, []byte("the stream is there"))
	l := j.connection()
	for i := range 3 {
		if _, err := l.js.Publish(ctx, l.o.fileSubject(d, strconv.Itoa(i)), b[i*MaxFilePiece:(i+1)*MaxFilePiece]); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := j.StoreFile(ctx, d, int64(len(b)), cut); err == nil {
		t.Error("a store that was given up succeeded")
	}
	_, err := readContent(t.Context(), j, d)
	wantCode(t, err, parley.NoSuchFile)
	if _, err := j.SweepFiles(t.Context(), time.Time{}, func(FileDigest) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if _, headless, err := listFiles(t.Context(), l); err != nil || len(headless) > 0 {
		t.Errorf("%d are left, %v", len(headless), err)
	}
	storeContent(t, j, b)
	wantContent(t, j, d, b)
}

// TestSweepKeepsWhatIsWanted sweeps files: those wanted and those stored since then stay.
func TestSweepKeepsWhatIsWanted(t *testing.T) {
	j := open(t, testOptions(t))
	_, wanted := content(1, 10)
	_, old := content(2, MaxFilePiece+1)
	a, b := storeContent(t, j, wanted), storeContent(t, j, old)
	sweep := func(before time.Time) int {
		t.Helper()
		n, err := j.SweepFiles(t.Context(), before, func(d FileDigest) bool { return d == a })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := sweep(time.Now().Add(-time.Hour)); n != 0 {
		t.Errorf("%d new files were removed", n)
	}
	if n := sweep(time.Now().Add(time.Hour)); n != 1 {
		t.Errorf("%d files were removed", n)
	}
	wantContent(t, j, a, wanted)
	_, err := readContent(t.Context(), j, b)
	wantCode(t, err, parley.NoSuchFile)
	if all, headless, err := listFiles(t.Context(), j.connection()); len(all) != 1 || len(headless) != 0 || err != nil {
		t.Errorf("%d files, %d without a head, %v", len(all), len(headless), err)
	}
}

// TestBackupHasFiles restores backups: a file, and a folder of parts. A damaged file is left out, and the others are there.
func TestBackupHasFiles(t *testing.T) {
	_, j, w, _ := archivedJournal(t)
	_, one := content(1, 2*MaxFilePiece+5)
	_, lost := content(2, 2*MaxFilePiece)
	_, two := content(3, 77)
	a := storeContent(t, j, one)
	folder := filepath.Join(t.TempDir(), "parts")
	addPart := func() {
		t.Helper()
		if _, err := AddPart(folder, testNode(1), func(after Mark, to io.Writer) error { return j.BackupAfter(t.Context(), after, to) }); err != nil {
			t.Fatal(err)
		}
	}
	addPart()
	b, c := storeContent(t, j, two), storeContent(t, j, lost)
	w.write(t, j, 2, 2)
	addPart()
	l := j.connection()
	s, err := openFiles(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context(), jetstream.WithPurgeSubject(l.o.fileSubject(c, "1"))); err != nil {
		t.Fatal(err)
	}
	var whole, parted bytes.Buffer
	if err := j.Backup(t.Context(), &whole); err != nil {
		t.Fatal(err)
	}
	parts, err := Parts(folder, testNode(1))
	if err != nil || len(parts) != 2 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	all, err := OpenParts(parts, testNode(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parted.ReadFrom(all); err != nil {
		t.Fatal(err)
	}
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"file": whole.Bytes(), "folder": parted.Bytes()} {
		o := smallFiles(t)
		if err := Restore(t.Context(), o, bytes.NewReader(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		k := open(t, o)
		wantContent(t, k, a, one)
		wantContent(t, k, b, two)
		if _, err := readContent(t.Context(), k, c); (name == "file") != (parley.CodeOf(err) == parley.NoSuchFile) {
			t.Errorf("%s: the lost file: %v", name, err)
		}
		closeJournal(t, k)
	}
	at := bytes.Index(whole.Bytes(), one[100:200])
	bad := bytes.Clone(whole.Bytes())
	bad[at] ^= 1
	wantCode(t, Restore(t.Context(), smallFiles(t), bytes.NewReader(bad)), parley.CorruptLog)
}
