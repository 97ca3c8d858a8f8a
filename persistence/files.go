package persistence

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley"
)

// Files are kept in a stream beside the journal, on the same server and with the same replicas. A file is named by the SHA-256
// of its content, so that it is kept once, whoever stores it and under which names. Its content is in pieces, one message
// each. Its head is stored when all pieces are on disk, and has their digests. A file is there once it has a head:
//
//	…FILES.NODE.DIGEST.0       the first 128 KiB
//	…FILES.NODE.DIGEST.1       and those that follow
//	…FILES.NODE.DIGEST.head    size, digests of the pieces, and their digest
//
// Storing a file again checks what is there, writes the pieces that are lost or damaged, and makes the head new. A sweep removes
// heads that are old and not wanted, and pieces without a head.
//
// After a kill the embedded server reads the blocks of the stream. It cuts one at a damaged record, with the pieces behind it, up
// to 8 MiB. Each file that has lost a piece is then named when it is opened, and by CheckFiles.
const (
	MaxFile      = 32 << 20  // bytes of a file
	MaxFilePiece = 128 << 10 // bytes of each piece but the last

	piecesAtOnce = 8 // that are on their way to the server together

	fileMagic = "PLYFILE\x01"
	headPiece = "head"
)

// FileDigest is the SHA-256 of a file's content.
type FileDigest [sha256.Size]byte

// String returns the digest in 64 hexadecimal digits.
func (d FileDigest) String() string { return hex.EncodeToString(d[:]) }

// StoredFile is a file that is kept.
type StoredFile struct {
	Digest FileDigest
	Size   int64
	At     time.Time // when it was last stored
}

// fileHead is the head of a file.
type fileHead struct {
	StoredFile
	pieces []FileDigest // of its pieces, in their order
}

// encode returns the bytes of the head that are stored.
func (h *fileHead) encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte(fileMagic), uint64(h.Size))
	for _, p := range h.pieces {
		b = append(b, p[:]...)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// decodeFileHead decodes the head of a file. It fails for one that is damaged.
func decodeFileHead(digest FileDigest, b []byte) (*fileHead, error) {
	const fixed = len(fileMagic) + 8 + sha256.Size
	end := len(b) - sha256.Size
	if len(b) < fixed || !bytes.HasPrefix(b, []byte(fileMagic)) || sha256.Sum256(b[:end]) != [sha256.Size]byte(b[end:]) {
		return nil, errors.New("its head is damaged")
	}
	h := &fileHead{StoredFile: StoredFile{Digest: digest, Size: int64(binary.BigEndian.Uint64(b[len(fileMagic):]))}}
	if h.Size < 0 || h.Size > MaxFile || (end-len(fileMagic)-8) != piecesOfSize(h.Size)*sha256.Size {
		return nil, errors.New("its head is damaged")
	}
	for p := b[len(fileMagic)+8 : end]; len(p) > 0; p = p[sha256.Size:] {
		h.pieces = append(h.pieces, FileDigest(p))
	}
	return h, nil
}

// piecesOfSize returns the number of pieces of a file.
func piecesOfSize(size int64) int { return int((size + MaxFilePiece - 1) / MaxFilePiece) }

// files is the store of files. It is safe for concurrent use.
type files struct {
	o    *Options
	log  *slog.Logger
	line func() *link

	storing sync.RWMutex // held for reading while a file is stored, and for writing while one is removed
}

func (o *Options) filesName() string   { return "PARLEY_FILES_" + o.Node.String() }
func (o *Options) filesPrefix() string { return "PARLEY.FILES." + o.Node.String() + "." }

func (o *Options) fileSubject(d FileDigest, piece string) string {
	return o.filesPrefix() + d.String() + "." + piece
}

// noFile returns NO_SUCH_FILE for a file that is not kept.
func noFile(d FileDigest) error {
	return parley.Refuse(parley.NoSuchFile, "the content of file %s is not kept here", d).
		WithHint("it was removed since no message refers to it, or is lost; ask its sender to send it again")
}

// damagedFile returns FILE_DAMAGED for a file.
func damagedFile(d FileDigest, format string, args ...any) error {
	return parley.Refuse(parley.FileDamaged, "file %s is damaged: %s", d, fmt.Sprintf(format, args...)).
		WithHint("to send or store the same file again makes it whole; else restore a backup into a new folder")
}

// StoreFile stores a file of at most MaxFile bytes, which r has whole. It returns once the file is on disk. It fails with
// INVALID_ARGUMENT if r has other content than that of the digest. A file that is there is made whole and counts as stored now.
func (f *files) StoreFile(ctx context.Context, digest FileDigest, size int64, r io.ReaderAt) error {
	if size < 0 || size > MaxFile {
		return parley.Refuse(parley.TooLarge, "a file has %d MiB at most", MaxFile>>20)
	}
	f.storing.RLock()
	defer f.storing.RUnlock()
	var task *besides
	if f.o.URL == "" { // else what hangs is no disk of this node
		watched, end := f.o.slow.beside()
		defer end()
		task = watched
	}
	err := f.o.step(StepFile, func() error { return storeFile(ctx, f.line(), task, digest, size, r) })
	if err != nil && parley.CodeOf(err) == parley.Internal {
		err = f.o.slow.named(readOnly("the file cannot be stored", err))
	}
	return err
}

// storeFile is StoreFile.
func storeFile(ctx context.Context, l *link, task *besides, digest FileDigest, size int64, r io.ReaderAt) error {
	s, err := makeFiles(ctx, l)
	if err != nil {
		return err
	}
	h := &fileHead{StoredFile: StoredFile{Digest: digest, Size: size}}
	whole := sha256.New()
	if _, err := io.Copy(whole, io.NewSectionReader(r, 0, size)); err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	if FileDigest(whole.Sum(nil)) != digest {
		return parley.Refuse(parley.InvalidArgument, "the content is not that of file %s", digest)
	}
	kept, err := s.head(ctx, digest)
	if err != nil && parley.CodeOf(err) != parley.NoSuchFile && parley.CodeOf(err) != parley.FileDamaged {
		return err
	}
	var sent []jetstream.PubAckFuture
	for i := range piecesOfSize(size) {
		piece := make([]byte, min(size-int64(i)*MaxFilePiece, MaxFilePiece))
		if _, err := r.ReadAt(piece, int64(i)*MaxFilePiece); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the file: %w", err)
		}
		h.pieces = append(h.pieces, sha256.Sum256(piece))
		if kept != nil {
			if _, err := s.piece(ctx, kept, i); err == nil {
				continue
			}
		}
		ack, err := l.js.PublishAsync(l.o.fileSubject(digest, strconv.Itoa(i)), piece)
		if err != nil {
			return err
		}
		if sent = append(sent, ack); len(sent) == piecesAtOnce {
			if err := awaitStored(ctx, sent); err != nil {
				return err
			}
			task.step()
			sent = sent[:0]
		}
	}
	if err := awaitStored(ctx, sent); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if _, err := l.js.Publish(ctx, l.o.fileSubject(digest, headPiece), h.encode()); err != nil {
		return err
	}
	if l.files != nil {
		task.step()
		return l.files.flush()
	}
	return nil
}

// awaitStored blocks until the server has acknowledged all messages. An embedded server does not answer where it cannot write.
func awaitStored(ctx context.Context, sent []jetstream.PubAckFuture) error {
	late := time.NewTimer(answerTimeout)
	defer late.Stop()
	for _, ack := range sent {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		case <-late.C:
			return nats.ErrTimeout
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// fileStream is the stream of the files.
type fileStream struct {
	jetstream.Stream
	*link
}

// makeFiles returns the stream of the files, and makes it if there is none.
func makeFiles(ctx context.Context, l *link) (*fileStream, error) {
	s, err := l.js.Stream(ctx, l.o.filesName())
	if err == nil {
		return &fileStream{s, l}, nil
	}
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, err
	}
	if err := l.prepare(ctx, l.o.filesName()); err != nil {
		return nil, err
	}
	s, err = l.js.CreateStream(ctx, jetstream.StreamConfig{
		Name:              l.o.filesName(),
		Subjects:          []string{l.o.filesPrefix() + ">"},
		Description:       "files of a Parley node, by their digests",
		Storage:           jetstream.FileStorage,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		MaxBytes:          -1,
		MaxMsgsPerSubject: 1,
		Replicas:          l.o.Replicas, // its leader is asked: a copy of the stream may lack what was just stored
	})
	if err != nil {
		return nil, err
	}
	return &fileStream{s, l}, l.o.flushBeside()
}

// openFiles returns the stream of the files, or nil if there is none.
func openFiles(ctx context.Context, l *link) (*fileStream, error) {
	s, err := l.js.Stream(ctx, l.o.filesName())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, unreachable(err)
	}
	return &fileStream{s, l}, nil
}

// head reads the head of a file. It fails with NO_SUCH_FILE, or FILE_DAMAGED.
func (s *fileStream) head(ctx context.Context, digest FileDigest) (*fileHead, error) {
	m, err := s.GetLastMsgForSubject(ctx, s.o.fileSubject(digest, headPiece))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, noFile(digest)
	}
	if err != nil {
		return nil, unreachable(err)
	}
	h, err := decodeFileHead(digest, m.Data)
	if err != nil {
		return nil, damagedFile(digest, "%v", err)
	}
	h.At = m.Time
	return h, nil
}

// piece reads a piece of a file, and checks it. It fails with FILE_DAMAGED.
func (s *fileStream) piece(ctx context.Context, h *fileHead, i int) ([]byte, error) {
	m, err := s.GetLastMsgForSubject(ctx, s.o.fileSubject(h.Digest, strconv.Itoa(i)))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, damagedFile(h.Digest, "piece %d of %d is missing", i+1, len(h.pieces))
	}
	if err != nil {
		return nil, unreachable(err)
	}
	if sha256.Sum256(m.Data) != h.pieces[i] {
		return nil, damagedFile(h.Digest, "piece %d of %d was changed", i+1, len(h.pieces))
	}
	return m.Data, nil
}

// FileAt returns the bytes of a file from an offset on, MaxFilePiece of them at most, and the size of the file. There are none
// at its end. It fails with NO_SUCH_FILE, and with FILE_DAMAGED if these bytes are lost.
func (f *files) FileAt(ctx context.Context, digest FileDigest, offset int64) ([]byte, int64, error) {
	l := f.line()
	s, err := openFiles(ctx, l)
	if err != nil {
		return nil, 0, err
	}
	if s == nil {
		return nil, 0, noFile(digest)
	}
	h, err := s.head(ctx, digest)
	if err != nil {
		return nil, 0, err
	}
	if offset < 0 || offset >= h.Size {
		return nil, h.Size, nil
	}
	piece, err := s.piece(ctx, h, int(offset/MaxFilePiece))
	if err != nil {
		return nil, h.Size, err
	}
	return piece[offset%MaxFilePiece:], h.Size, nil
}

// Files returns the files that are kept, in the order of their digests. Those whose heads are damaged have no size.
func (f *files) Files(ctx context.Context) ([]StoredFile, error) {
	all, _, err := listFiles(ctx, f.line())
	return all, err
}

// listFiles returns the files that are kept, and the digests of which there are pieces without a head.
func listFiles(ctx context.Context, l *link) (all []StoredFile, headless []FileDigest, err error) {
	s, err := openFiles(ctx, l)
	if s == nil || err != nil {
		return nil, nil, err
	}
	in, err := s.Info(ctx, jetstream.WithSubjectFilter(l.o.filesPrefix()+">"))
	if err != nil {
		return nil, nil, unreachable(err)
	}
	hasHead := map[FileDigest]bool{}
	for subject := range in.State.Subjects {
		digits, piece, _ := strings.Cut(strings.TrimPrefix(subject, l.o.filesPrefix()), ".")
		var d FileDigest
		if n, err := hex.Decode(d[:], []byte(digits[:min(len(digits), 2*len(d))])); err != nil || n != len(d) {
			continue // the subjects are the node's own
		}
		hasHead[d] = hasHead[d] || piece == headPiece
	}
	for d, has := range hasHead {
		if !has {
			headless = append(headless, d)
			continue
		}
		h, err := s.head(ctx, d)
		switch parley.CodeOf(err) {
		case "":
			all = append(all, h.StoredFile)
		case parley.FileDamaged:
			all = append(all, StoredFile{Digest: d})
		case parley.NoSuchFile: // it was removed meanwhile
		default:
			return nil, nil, err
		}
	}
	slices.SortFunc(all, func(a, b StoredFile) int { return bytes.Compare(a.Digest[:], b.Digest[:]) })
	return all, headless, nil
}

// CheckFile reads all of a file. It fails with NO_SUCH_FILE and FILE_DAMAGED.
func (f *files) CheckFile(ctx context.Context, digest FileDigest) error {
	_, err := readFile(ctx, f.line(), digest)
	return err
}

// readFile returns the content of a file, and checks it.
func readFile(ctx context.Context, l *link, digest FileDigest) ([]byte, error) {
	s, err := openFiles(ctx, l)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, noFile(digest)
	}
	h, err := s.head(ctx, digest)
	if err != nil {
		return nil, err
	}
	content := make([]byte, 0, h.Size)
	for i := range h.pieces {
		piece, err := s.piece(ctx, h, i)
		if err != nil {
			return nil, err
		}
		content = append(content, piece...)
	}
	if sha256.Sum256(content) != digest {
		return nil, damagedFile(digest, "its pieces are not of it")
	}
	return content, nil
}

// CheckFiles reads all files. It returns their number, and an error for each that is damaged; err is why it cannot read on.
func (f *files) CheckFiles(ctx context.Context) (whole int, damaged []error, err error) {
	all, err := f.Files(ctx)
	if err != nil {
		return 0, nil, err
	}
	for _, file := range all {
		err := f.CheckFile(ctx, file.Digest)
		switch parley.CodeOf(err) {
		case "":
			whole++
		case parley.FileDamaged:
			damaged = append(damaged, err)
		case parley.NoSuchFile: // it was removed meanwhile
		default:
			return whole, damaged, err
		}
	}
	return whole, damaged, nil
}

// SweepFiles removes the files that were last stored before a time and that are not wanted, and pieces that a process which
// ended has left. It returns the number of files removed.
func (f *files) SweepFiles(ctx context.Context, before time.Time, isWanted func(FileDigest) bool) (removed int, err error) {
	all, headless, err := listFiles(ctx, f.line())
	if err != nil {
		return 0, err
	}
	for _, file := range all {
		if isWanted(file.Digest) || !file.At.Before(before) {
			continue
		}
		gone, err := f.remove(ctx, file.Digest, before)
		if err != nil {
			return removed, err
		}
		if gone {
			removed++
		}
	}
	for _, d := range headless {
		if _, err := f.remove(ctx, d, before); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// remove removes a file that was not stored since a time: first its head, so that it is not there without its pieces.
func (f *files) remove(ctx context.Context, digest FileDigest, before time.Time) (bool, error) {
	f.storing.Lock()
	defer f.storing.Unlock()
	l := f.line()
	s, err := openFiles(ctx, l)
	if s == nil || err != nil {
		return false, err
	}
	h, err := s.head(ctx, digest)
	if err == nil && !h.At.Before(before) {
		return false, nil
	}
	if code := parley.CodeOf(err); err != nil && code != parley.NoSuchFile && code != parley.FileDamaged {
		return false, err
	}
	err = f.o.step(StepRemoveFile, func() error {
		return cmp.Or(s.Purge(ctx, jetstream.WithPurgeSubject(l.o.fileSubject(digest, headPiece))),
			s.Purge(ctx, jetstream.WithPurgeSubject(l.o.fileSubject(digest, "*"))))
	})
	if err != nil {
		return false, readOnly("a file cannot be removed", err)
	}
	return true, nil
}
