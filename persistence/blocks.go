package persistence

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/minio/highwayhash"
)

// inspector checks the heads of the records in the embedded server's blocks before the server reads them. The server
// trusts the number in a record, and allocates room for all numbers up to it. The contents are checked by the chain.
type inspector struct {
	mu     sync.Mutex // guards done of the blocks
	blocks []inspected
	begin  uint64 // the largest number that the first record may have
}

type inspected struct {
	path  string
	first uint64 // the number of its first record; 0 if it has none
	at    int64  // the time of that record, in Unix nanoseconds
	done  bool
}

// A record begins with its length, its number, a time, and the length of its subject. The highest bit of its length is
// set if it has headers. It ends with a hash.
const (
	recordHead   = 4 + 8 + 8 + 2
	recordHash   = 8
	recordLength = 1<<31 - 1
)

// inspect returns an inspector of the blocks in a folder.
func inspect(folder string) (*inspector, error) {
	paths, err := blocksIn(folder)
	if err != nil {
		return nil, err
	}
	in := &inspector{begin: 1}
	for _, path := range paths {
		first, at, err := firstRecord(path)
		if err != nil {
			return nil, readOnly("the journal's files cannot be read", err)
		}
		in.blocks = append(in.blocks, inspected{path: path, first: first, at: at})
	}
	return in, nil
}

// checkNewest checks the blocks that the server reads when it starts.
func (in *inspector) checkNewest() error {
	for i := max(0, len(in.blocks)-newestBlocks); i < len(in.blocks); i++ {
		if first := in.blocks[i].first; first > 0 {
			if err := in.check(first, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOlder checks that all blocks but the newest are whole.
func (in *inspector) checkOlder(stream string) error {
	for i := 0; i < len(in.blocks)-newestBlocks; i++ {
		next := in.blocks[i].first
		whole, err := in.eachFrame(i, stream, func(r record) error {
			next = r.number + 1
			return nil
		})
		if err == nil && !whole {
			err = lost(next, "is damaged: its record is not whole")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// blockNumber returns the number in the name of a block.
func blockNumber(path string) (int, error) {
	return strconv.Atoi(strings.TrimSuffix(filepath.Base(path), blockSuffix))
}

func firstRecord(path string) (number uint64, at int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	var head [recordHead]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, 0, nil
		}
		return 0, 0, err
	}
	return binary.LittleEndian.Uint64(head[4:]), int64(binary.LittleEndian.Uint64(head[12:])), nil
}

// check checks each block with records from first to last, once. CORRUPT_LOG names the first record with a wrong
// number.
func (in *inspector) check(first, last uint64) error {
	if in == nil {
		return nil
	}
	next := func(i int) uint64 {
		if i+1 < len(in.blocks) {
			return in.blocks[i+1].first
		}
		return 0
	}
	from := max(0, sort.Search(len(in.blocks), func(i int) bool { return in.blocks[i].first > first })-1)
	for i := from; i < len(in.blocks) && (in.blocks[i].first <= last || i == from); i++ {
		if err := in.checkOne(&in.blocks[i], next(i)); err != nil {
			return err
		}
	}
	return nil
}

// checkOne checks a block, once. A reader of the whole log holds up the others for one block at most.
func (in *inspector) checkOne(b *inspected, next uint64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if b.done || b.first == 0 && next == 0 { // the newest had no records then: a process was killed when it had made it
		return nil
	}
	err := checkBlock(b.path, b.first, next)
	b.done = err == nil
	return err
}

// checkBlock checks that a block's records are numbered from first up to the first record of the next block. It accepts
// an incomplete record at the end of the last block, which the server truncates: a process ended during the write.
func checkBlock(path string, first, next uint64) error {
	want := first
	whole, err := eachRecord(path, func(number uint64) error {
		switch {
		case number == want:
			want++
			return nil
		case want == first+1 && 1 < number && number < want: // the number of the first record was too high
			return lost(number-1, "is damaged: its record has number %d", first)
		}
		return lost(want, "is missing: the record in its place has number %d", number)
	})
	switch {
	case err != nil:
		return err
	case !whole && next != 0:
		return lost(want, "is damaged: its record is not whole")
	case next != 0 && next != want:
		return lost(want, "is missing: the next block begins with %d", next)
	}
	return nil
}

// eachRecord calls fn with the number of each record of a block. It reports whether all of them are whole.
func eachRecord(path string, fn func(number uint64) error) (whole bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, readOnly("the journal's files cannot be read", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	return eachRecordOf(f, func(_ int64, _ int, number uint64) error { return fn(number) })
}

// eachRecordOf calls fn with the place, the length and the number of each record of an open block.
func eachRecordOf(f *os.File, fn func(at int64, length int, number uint64) error) (whole bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, readOnly("the journal's files cannot be read", err)
	}
	r := bufio.NewReaderSize(f, 64<<10)
	for at := int64(0); at < info.Size(); {
		var head [recordHead]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return false, nil
		}
		length := int64(binary.LittleEndian.Uint32(head[:]) & recordLength)
		subject := int64(binary.LittleEndian.Uint16(head[20:]))
		if length < recordHead+subject+recordHash || at+length > info.Size() {
			return false, nil
		}
		if err := fn(at, int(length), binary.LittleEndian.Uint64(head[4:])); err != nil {
			return false, err
		}
		if _, err := r.Discard(int(length - recordHead)); err != nil {
			return false, readOnly("the journal's files cannot be read", err)
		}
		at += length
	}
	return true, nil
}

// In a stream that drops old records, numbers may be missing. A record may stand for one that was removed.
const (
	farthestJump  = 1 << 20
	removedRecord = 1<<63 | 1<<62
)

var errFarOff = errors.New("a record's number is far off")

// isSound reports whether the server may use its index of a stream that drops old records. Without the index the server
// checks every record, and skips those that are damaged.
func isSound(folder string) bool {
	paths, err := blocksIn(folder)
	if err != nil {
		return false
	}
	last := uint64(0)
	for _, path := range paths {
		whole, err := eachRecord(path, func(number uint64) error {
			if number&removedRecord != 0 {
				return nil
			}
			if number <= last && last > 0 || last > 0 && number-last > farthestJump {
				return errFarOff
			}
			last = number
			return nil
		})
		if err != nil || !whole {
			return false
		}
	}
	return true
}

// The server's index of a stream, in its oldest format that all later servers read. A server that does not accept it
// reads all blocks.
const (
	stateMagic   = 11
	stateVersion = 1
)

var errNoState = errors.New("the state of the journal cannot be derived from its blocks")

// deriveState returns the server's index of the journal. It is made from the heads of the blocks and the whole of the
// newest. It takes the place of the one that a killed process has not written. Without it the server would read all
// blocks. It fails if the newest blocks are not whole, which the server repairs.
func (in *inspector) deriveState(stream, subject string) ([]byte, error) {
	n := len(in.blocks)
	if n == 0 || in.blocks[0].first == 0 || in.blocks[0].first > in.begin {
		return nil, errNoState
	}
	number, err := blockNumber(in.blocks[0].path)
	if err != nil {
		return nil, errNoState
	}
	lowest, highest := uint64(number), uint64(number+n-1)
	sizes, total := make([]uint64, n), uint64(0)
	for i, b := range in.blocks {
		info, err := os.Stat(b.path)
		if err != nil || filepath.Base(b.path) != strconv.Itoa(number+i)+blockSuffix || i > 0 && b.first <= in.blocks[i-1].first {
			return nil, errNoState
		}
		sizes[i] = uint64(info.Size())
		total += sizes[i]
	}
	var newest record
	for i := max(0, n-newestBlocks); i < n; i++ {
		next := in.blocks[i].first
		whole, err := in.eachFrame(i, stream, func(r record) error {
			if r.number != next {
				return errNoState
			}
			newest = r
			next++
			return nil
		})
		if err != nil || !whole {
			return nil, errNoState
		}
	}
	last, at := newest.number, newest.at
	count := last - in.blocks[0].first + 1
	base := in.blocks[0].at
	s := appendVarints([]byte{stateMagic, stateVersion}, count, total, in.blocks[0].first)
	s = binary.AppendVarint(s, base)
	s = appendVarints(s, last)
	s = binary.AppendVarint(s, at)
	s = appendVarints(s, 1, uint64(len(subject))) // one subject, with all messages
	s = append(s, subject...)
	s = appendVarints(s, count, lowest)
	if count > 1 {
		s = appendVarints(s, highest)
	}
	s = appendVarints(s, uint64(n))
	for i, b := range in.blocks {
		end, ended := last, at
		if i+1 < n {
			end, ended = in.blocks[i+1].first-1, in.blocks[i+1].at
		}
		s = appendVarints(s, lowest+uint64(i), sizes[i], b.first)
		s = binary.AppendVarint(s, b.at-base)
		s = appendVarints(s, end)
		s = binary.AppendVarint(s, ended-base)
		s = appendVarints(s, 0) // no record was removed
	}
	s = append(appendVarints(s, highest), newest.sum...)
	h := recordHasher(stream)
	_, _ = h.Write(s) // it never fails
	return h.Sum(s), nil
}

// recordHasher returns the hash of the server for a key.
func recordHasher(key string) hash.Hash64 {
	sum := sha256.Sum256([]byte(key))
	h, err := highwayhash.New64(sum[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	return h
}

// record is a message in a block.
type record struct {
	number uint64
	at     int64 // in Unix nanoseconds
	frame  []byte
	sum    []byte
}

// eachFrame calls fn with the records of the block at an index. It reports whether all of them are whole, and stops at
// the first that is not. The frames are good until fn returns.
func (in *inspector) eachFrame(i int, stream string, fn func(r record) error) (whole bool, err error) {
	b, err := os.ReadFile(in.blocks[i].path)
	if err != nil {
		return false, readOnly("the journal's files cannot be read", err)
	}
	h := recordHasher(blockKey(stream, in.blocks[i].path))
	for len(b) > 0 {
		r, rest, ok := nextRecord(b, h)
		if !ok {
			return false, nil
		}
		if err := fn(r); err != nil {
			return false, err
		}
		b = rest
	}
	return true, nil
}

// nextRecord splits the first record off a block, and checks its hash.
func nextRecord(b []byte, h hash.Hash64) (r record, rest []byte, ok bool) {
	if len(b) < recordHead+recordHash {
		return r, nil, false
	}
	length := binary.LittleEndian.Uint32(b)
	start := recordHead + int(binary.LittleEndian.Uint16(b[20:])) // after the subject
	end := int(length&recordLength) - recordHash
	if end < start || end+recordHash > len(b) {
		return r, nil, false
	}
	body, headers := start, 0
	if length&^recordLength != 0 { // the length of the headers is not hashed
		body += 4
		if end < body {
			return r, nil, false
		}
		headers = int(binary.LittleEndian.Uint32(b[start:]))
		if headers < 0 || headers > end-body {
			return r, nil, false
		}
	}
	h.Reset()
	for _, part := range [][]byte{b[4:20], b[recordHead:start], b[body:end]} {
		_, _ = h.Write(part) // it never fails
	}
	r = record{
		number: binary.LittleEndian.Uint64(b[4:]), at: int64(binary.LittleEndian.Uint64(b[12:])),
		frame: b[body+headers : end], sum: b[end : end+recordHash],
	}
	var sum [recordHash]byte
	return r, b[end+recordHash:], string(h.Sum(sum[:0])) == string(r.sum)
}

// frame returns the frame of a commit, read from its block without the server. It reports false if the inspector knows
// no block with the commit, or the record is not whole.
func (in *inspector) frame(stream string, number uint64) ([]byte, bool) {
	if in == nil {
		return nil, false
	}
	i := in.blockWith(number)
	if i < 0 {
		return nil, false
	}
	path := in.blocks[i].path
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // it was only read
	var bytes []byte
	_, err = eachRecordOf(f, func(at int64, length int, n uint64) error {
		if n != number {
			return nil
		}
		bytes = make([]byte, length)
		if _, err := f.ReadAt(bytes, at); err != nil {
			return err
		}
		return errEnd
	})
	if !errors.Is(err, errEnd) {
		return nil, false
	}
	r, _, ok := nextRecord(bytes, recordHasher(blockKey(stream, path)))
	return r.frame, ok && r.number == number
}

// blockWith returns the index of the only block that can have a commit; -1 if none can.
func (in *inspector) blockWith(number uint64) int {
	return sort.Search(len(in.blocks), func(i int) bool { return in.blocks[i].first == 0 || in.blocks[i].first > number }) - 1
}

// errEnd ends the reading of records.
var errEnd = errors.New("no more is read")

// blockKey returns the key of the hashes in a block.
func blockKey(stream, path string) string {
	return stream + "-" + strings.TrimSuffix(filepath.Base(path), blockSuffix)
}

// readFrames calls fn with the frames of commits from first on. It reads them from the blocks without the server, which
// takes several times as long. It stops at the first that is missing or not whole, and leaves that to the server. It
// fails with fn's error.
func readFrames(o *Options, first, last uint64, fn func(number uint64, bytes []byte) error) error {
	in, err := inspect(blockFolder(o))
	if err != nil {
		return err
	}
	next := first
	for i := range in.blocks {
		if i+1 < len(in.blocks) && in.blocks[i+1].first != 0 && in.blocks[i+1].first <= first {
			continue
		}
		whole, err := in.eachFrame(i, o.streamName(), func(r record) error {
			switch {
			case r.number < next:
				return nil
			case r.number > next || next > last:
				return errEnd
			}
			next++
			return fn(r.number, r.frame)
		})
		if errors.Is(err, errEnd) || err == nil && !whole {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
