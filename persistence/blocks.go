package persistence

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/minio/highwayhash"

	"parley"
)

// This file is all that knows how the embedded server's blocks look inside. The server trusts them too much:
//
//	it makes room for all numbers up to that of a record     one changed bit, and it allocates until it is killed
//	it cuts a block that it reads at a record that is bad    a look at a damaged log loses the commits behind it
//
// So the lengths and numbers of an older block are read before the server reads it. Its hashes are read before a copy
// shares the file with it. What is in the records is no business of this file: the chain of commits checks that.
//
// A record begins with its length, its number, a time, and the length of its subject. The highest bit of its length is
// set if it has headers. It ends with a hash. A record may stand for one that was removed.
const (
	recordHead    = 4 + 8 + 8 + 2
	recordHash    = 8
	recordLength  = 1<<31 - 1
	removedRecord = 1<<63 | 1<<62
)

const blockSuffix = ".blk"

// newestBlocks is the number of a stream's blocks that can hold the last write.
const newestBlocks = 2

// blocksIn returns the paths of the blocks in a folder, oldest first. A folder that does not exist has none. It fails with
// CORRUPT_LOG for any other file that the server would take for a block: 012.blk in place of 12.blk.
func blocksIn(folder string) ([]string, error) {
	there, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, readOnly("the journal's folder cannot be read", err)
	}
	var paths []string
	for _, e := range there {
		if !strings.HasSuffix(e.Name(), blockSuffix) {
			continue
		}
		path := filepath.Join(folder, e.Name())
		if n, err := strconv.Atoi(strings.TrimSuffix(e.Name(), blockSuffix)); err != nil || n < 0 || strconv.Itoa(n)+blockSuffix != e.Name() || !e.Type().IsRegular() {
			return nil, parley.Refuse(parley.CorruptLog, "the file %s among those of the journal is none of them", e.Name()).
				WithHint("move it away, if something else than the node has put it there: %s", path)
		}
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int { // by number: 9.blk, 10.blk
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return paths, nil
}

// inspector checks the blocks that were there when the server was started, each before the server reads it.
type inspector struct {
	mu     sync.Mutex // guards done of the blocks
	blocks []inspected
}

type inspected struct {
	path  string
	first uint64 // the number of its first record; 0 if it has none
	done  bool
}

// inspect returns an inspector of the blocks in a folder.
func inspect(folder string) (*inspector, error) {
	paths, err := blocksIn(folder)
	if err != nil {
		return nil, err
	}
	in := &inspector{}
	for _, path := range paths {
		b := inspected{path: path}
		if _, err := eachRecord(path, func(number uint64, _ []byte) error {
			b.first = number
			return errEnd
		}, false); err != nil && !errors.Is(err, errEnd) {
			return nil, err
		}
		in.blocks = append(in.blocks, b)
	}
	return in, nil
}

// check checks each block with records from first to last, once. CORRUPT_LOG names the first record with a wrong
// number.
func (in *inspector) check(first, last uint64) error {
	if in == nil {
		return nil
	}
	from := max(0, sort.Search(len(in.blocks), func(i int) bool { return in.blocks[i].first > first })-1)
	for i := from; i < len(in.blocks) && (in.blocks[i].first <= last || i == from); i++ {
		next := uint64(0)
		if i+1 < len(in.blocks) {
			next = in.blocks[i+1].first
		}
		if err := in.checkOne(&in.blocks[i], next); err != nil {
			return err
		}
	}
	return nil
}

// checkOne checks a block, once. A reader of the whole log holds up the others for one block at most.
func (in *inspector) checkOne(b *inspected, next uint64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if b.done {
		return nil
	}
	err := checkBlock(b.path, next)
	b.done = err == nil
	return err
}

// checkBlock checks that a block's records are numbered in order, up to the first record of the next block. It accepts an
// incomplete record at the end of the last block, which the server cuts: a process ended during the write.
func checkBlock(path string, next uint64) error {
	first, want := uint64(0), uint64(0)
	whole, err := eachRecord(path, func(number uint64, _ []byte) error {
		switch {
		case want == 0:
			first, want = number, number+1
		case number == want:
			want++
		case want == first+1 && 1 < number && number < want: // the number of the first record was too high
			return lost(number-1, "is damaged: its record has number %d", first)
		default:
			return lost(want, "is missing: the record in its place has number %d", number)
		}
		return nil
	}, false)
	switch {
	case err != nil:
		return err
	case !whole && next != 0:
		return lost(want, "is damaged: its record is not whole")
	case next != 0 && want != 0 && next != want:
		return lost(want, "is missing: the next block begins with %d", next)
	}
	return nil
}

// errEnd ends the reading of records.
var errEnd = errors.New("no more is read")

// eachRecord calls fn with the number of each record of a block, but for those that stand for others. With whole, fn is
// also given the record's bytes, good until it returns. It reports whether the lengths of all records fit. A block that
// is gone has left with what is archived.
func eachRecord(path string, fn func(number uint64, record []byte) error, whole bool) (fit bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, readOnly("the journal's files cannot be read", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return false, readOnly("the journal's files cannot be read", err)
	}
	r := bufio.NewReaderSize(f, 64<<10)
	var record []byte
	for at := int64(0); at < info.Size(); {
		head, err := r.Peek(recordHead)
		if err != nil {
			return false, nil
		}
		length := int64(binary.LittleEndian.Uint32(head) & recordLength)
		number, subject := binary.LittleEndian.Uint64(head[4:]), int64(binary.LittleEndian.Uint16(head[20:]))
		if length < recordHead+subject+recordHash || at+length > info.Size() {
			return false, nil
		}
		at += length
		if whole {
			record = slices.Grow(record[:0], int(length))[:length]
			_, err = io.ReadFull(r, record)
		} else {
			_, err = r.Discard(int(length))
		}
		if err != nil {
			return false, readOnly("the journal's files cannot be read", err)
		}
		if !whole && number&removedRecord != 0 {
			continue
		}
		if err := fn(number, record); err != nil {
			return false, err
		}
	}
	return true, nil
}

// isWhole reports whether the server would find each record of a stream's block whole, and so not cut the block.
func isWhole(stream, path string) bool {
	sum := sha256.Sum256([]byte(stream + "-" + strings.TrimSuffix(filepath.Base(path), blockSuffix)))
	h, err := highwayhash.New64(sum[:])
	if err != nil {
		return false
	}
	fit, err := eachRecord(path, func(_ uint64, r []byte) error {
		end, body := len(r)-recordHash, recordHead+int(binary.LittleEndian.Uint16(r[20:])) // behind the subject
		headers := body
		if binary.LittleEndian.Uint32(r)&^recordLength != 0 {
			headers += 4 // their length is not hashed
		}
		if headers > end {
			return errEnd
		}
		h.Reset()
		for _, part := range [][]byte{r[4:20], r[recordHead:body], r[headers:end]} {
			_, _ = h.Write(part) // it never fails
		}
		if string(h.Sum(nil)) != string(r[end:]) {
			return errEnd
		}
		return nil
	}, true)
	return fit && err == nil
}
