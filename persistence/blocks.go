package persistence

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
)

// inspector checks the heads of the records in the embedded server's blocks before the server reads them. The server
// trusts the number in a record, and allocates room for all numbers up to it. The contents are checked by the chain.
type inspector struct {
	mu     sync.Mutex
	blocks []inspected
}

type inspected struct {
	path  string
	first uint64 // the number of its first record; 0 if it has none
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
	in := &inspector{}
	for _, path := range paths {
		first, err := firstRecord(path)
		if err != nil {
			return nil, readOnly("the journal's files cannot be read", err)
		}
		in.blocks = append(in.blocks, inspected{path: path, first: first})
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

func firstRecord(path string) (number uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	var head [recordHead]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		return 0, err
	}
	return binary.LittleEndian.Uint64(head[4:]), nil
}

// check checks each block with records from first to last, once. CORRUPT_LOG names the first record with a wrong
// number.
func (in *inspector) check(first, last uint64) error {
	if in == nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	next := func(i int) uint64 {
		if i+1 < len(in.blocks) {
			return in.blocks[i+1].first
		}
		return 0
	}
	from, found := slices.BinarySearchFunc(in.blocks, first, func(b inspected, n uint64) int {
		switch {
		case b.first < n:
			return -1
		case b.first > n:
			return 1
		}
		return 0
	})
	if !found {
		from = max(from-1, 0)
	}
	for i := from; i < len(in.blocks) && (in.blocks[i].first <= last || i == from); i++ {
		if b := &in.blocks[i]; !b.done {
			if err := checkBlock(b.path, b.first, next(i)); err != nil {
				return err
			}
			b.done = true
		}
	}
	return nil
}

// checkBlock checks that a block's records are numbered from first up to the first record of the next block. It accepts
// an incomplete record at the end of the last block, which the server truncates: a process ended during the write.
func checkBlock(path string, first, next uint64) error {
	want := first
	whole, err := eachRecord(path, func(number uint64) error {
		if number != want {
			return lost(want, "is missing: the record in its place has number %d", number)
		}
		want++
		return nil
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
		if err := fn(binary.LittleEndian.Uint64(head[4:])); err != nil {
			return false, err
		}
		if _, err := r.Discard(int(length - recordHead)); err != nil {
			return false, readOnly("the journal's files cannot be read", err)
		}
		at += length
	}
	return true, nil
}

// In a stream that drops old records, numbers may be missing, and a record may stand for one that was removed.
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
		_, err := eachRecord(path, func(number uint64) error {
			if number&removedRecord != 0 {
				return nil
			}
			if number <= last && last > 0 || last > 0 && number-last > farthestJump {
				return errFarOff
			}
			last = number
			return nil
		})
		if err != nil {
			return false
		}
	}
	return true
}
