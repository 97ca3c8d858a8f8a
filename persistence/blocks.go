package persistence

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
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
// So an older block is checked before the server reads it, and before a copy shares the file with it. What is in the
// records is no business of this file: the chain of commits checks that.
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
	stream string

	mu     sync.Mutex // guards done of the blocks
	blocks []inspected
}

type inspected struct {
	path  string
	first uint64 // the number of its first record; 0 if it has none
	done  bool
}

// inspect returns an inspector of a stream's blocks in a folder.
func inspect(stream, folder string) (*inspector, error) {
	paths, err := blocksIn(folder)
	if err != nil {
		return nil, err
	}
	in := &inspector{stream: stream}
	for _, path := range paths {
		b := inspected{path: path}
		_, err := eachRecord(path, func(r record) error {
			if r.isRemoved() {
				return nil
			}
			b.first = r.number()
			return errEnd
		})
		if err != nil && !errors.Is(err, errEnd) {
			return nil, err
		}
		in.blocks = append(in.blocks, b)
	}
	return in, nil
}

// check checks each block with records from first to last, once. CORRUPT_LOG names the first record that is wrong.
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
	end, fit, err := checkBlock(in.stream, b.path)
	switch {
	case err != nil || next == 0: // a process may have ended while it wrote the last record of all, and the server cuts that
	case !fit:
		err = lost(end, "is damaged: its record is not whole")
	case end != 0 && end != next:
		err = lost(end, "is missing: the next block begins with %d", next)
	}
	b.done = err == nil
	return err
}

// checkBlock checks that a block's records are whole, and numbered in order. It returns the number behind the last, and
// whether the block ends with it.
func checkBlock(stream, path string) (end uint64, fit bool, err error) {
	sum := sha256.Sum256([]byte(stream + "-" + strings.TrimSuffix(filepath.Base(path), blockSuffix)))
	h, err := highwayhash.New64(sum[:])
	if err != nil {
		return 0, false, err
	}
	first := false // the first record is damaged, and so may be its number
	fit, err = eachRecord(path, func(r record) error {
		switch whole, number := r.isWhole(h), r.number(); {
		case first:
			return lost(number-1, "is damaged: its record is not whole")
		case !whole && end > 0:
			return lost(end, "is damaged: its record is not whole")
		case !whole:
			first = true
		case r.isRemoved():
		case end > 0 && number != end:
			return lost(end, "is missing: the record in its place has number %d", number)
		default:
			end = number + 1
		}
		return nil
	})
	return end, fit && !first, err
}

// record is one record of a block, whose lengths fit it.
type record []byte

func (r record) number() uint64 { return binary.LittleEndian.Uint64(r[4:]) &^ removedRecord }

// isRemoved reports whether a record stands for one that was removed.
func (r record) isRemoved() bool { return binary.LittleEndian.Uint64(r[4:])&removedRecord != 0 }

// isWhole checks the hash of a record, as the server does.
func (r record) isWhole(h hash.Hash) bool {
	end, subject := len(r)-recordHash, recordHead+int(binary.LittleEndian.Uint16(r[20:]))
	body := subject
	if binary.LittleEndian.Uint32(r)&^recordLength != 0 {
		body += 4 // the length of the headers is not hashed
	}
	if body > end {
		return false
	}
	h.Reset()
	for _, part := range [][]byte{r[4:20], r[recordHead:subject], r[body:end]} {
		_, _ = h.Write(part) // it never fails
	}
	return string(h.Sum(nil)) == string(r[end:])
}

// errEnd ends the reading of records.
var errEnd = errors.New("no more is read")

// eachRecord calls fn with each record of a block, which is good until fn returns.
// It reports whether the lengths of all records fit. A block that is gone has left with what is archived.
func eachRecord(path string, fn func(r record) error) (fit bool, err error) {
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
	in := bufio.NewReaderSize(f, 64<<10)
	var r record
	for at := int64(0); at < info.Size(); {
		head, err := in.Peek(recordHead)
		if err != nil {
			return false, nil
		}
		length := int64(binary.LittleEndian.Uint32(head) & recordLength)
		if length < recordHead+recordHash+int64(binary.LittleEndian.Uint16(head[20:])) || at+length > info.Size() {
			return false, nil
		}
		at += length
		r = slices.Grow(r[:0], int(length))[:length]
		if _, err := io.ReadFull(in, r); err != nil {
			return false, readOnly("the journal's files cannot be read", err)
		}
		if err := fn(r); err != nil {
			return false, err
		}
	}
	return true, nil
}
