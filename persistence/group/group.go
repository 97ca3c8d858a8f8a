package group

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
)

// File is an open group. It is safe for concurrent use.
type File struct {
	First uint64      // its first commit
	Last  events.Mark // its last commit, which tells of which log it is

	file  *os.File
	rows  int   // of the table
	body  int64 // offset of the blocks
	index []key // every indexed-th row of the table
}

// key orders the rows of a table.
type key struct {
	mailbox ulid.ULID
	commit  uint64 // of the first section
}

func (k key) compare(l key) int {
	return cmp.Or(k.mailbox.Compare(l.mailbox), cmp.Compare(k.commit, l.commit))
}

// indexed is the number of rows that are read at once. The keys of the first of them are in memory.
const indexed = 64

const (
	magic     = "PLYGRUP\x01"
	header    = 8 + 32 + 8 + 8 + sha256.Size + 8 + 8
	rowSize   = 16 + 8 + 8 + 4 + sumSize
	sumSize   = 8 // bytes of a digest that tell chance damage
	blockSize = 16 << 10
)

// ErrDamaged reports a file that is no group, or was changed.
var ErrDamaged = errors.New("the group is damaged")

// row is the table's row of a block, which has sections of one mailbox.
type row struct {
	key
	at     uint64 // offset behind the table
	length uint32
	sum    [sumSize]byte
}

// Name returns the name of the file of a group. The names sort as the groups do.
func Name(first, last uint64) string { return fmt.Sprintf("%020d-%020d", first, last) }

// Write writes the group of consecutive commits to a folder, which exists. The last commit has the hash. The group is under
// its Name when it is whole. Write changes nothing else there.
func Write(folder string, node capabilities.NodeID, commits []*events.Commit, hash events.Hash) (err error) {
	first, last := commits[0].Number, commits[len(commits)-1].Number
	path := filepath.Join(folder, Name(first, last))
	f, err := regular.Create(path + ".new")
	if err != nil {
		return err
	}
	rows, blocks := blocksOf(commits)
	size := uint64(0)
	for i := range blocks {
		size += uint64(len(blocks[i]))
	}
	head := make([]byte, 0, header+rowSize*len(rows)+sha256.Size)
	head = append(append(head, magic...), node.Bytes()...)
	head = binary.BigEndian.AppendUint64(head, first)
	head = binary.BigEndian.AppendUint64(head, last)
	head = append(head, hash[:]...)
	head = binary.BigEndian.AppendUint64(head, uint64(len(rows)))
	head = binary.BigEndian.AppendUint64(head, size)
	for i := range rows {
		head = rows[i].append(head)
	}
	sum := sha256.Sum256(head)
	w := bufio.NewWriterSize(f, 256<<10)
	_, _ = w.Write(append(head, sum[:]...)) // Flush returns the error
	for i := range blocks {
		_, _ = w.Write(blocks[i])
	}
	err = errors.Join(w.Flush(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// blocksOf returns the blocks of commits, with their rows.
func blocksOf(commits []*events.Commit) (rows []row, blocks [][]byte) {
	type place struct {
		commit  uint64
		section *events.Section
	}
	n := 0
	for _, c := range commits {
		n += len(c.Sections)
	}
	places := make([]place, 0, n)
	for _, c := range commits {
		for i := range c.Sections {
			if c.Sections[i].Count > 0 {
				places = append(places, place{c.Number, &c.Sections[i]})
			}
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return a.section.Mailbox.ULID.Compare(b.section.Mailbox.ULID) })
	at := uint64(0)
	end := func() {
		if len(blocks) == 0 {
			return
		}
		r, b := &rows[len(rows)-1], blocks[len(blocks)-1]
		sum := sha256.Sum256(b)
		r.length, r.sum = uint32(len(b)), [sumSize]byte(sum[:])
		at += uint64(len(b))
	}
	var b []byte
	for i, p := range places {
		s := p.section
		// A commit's sections of a mailbox stay in one block, which is found by the commit.
		fresh := i == 0 || places[i-1].section.Mailbox != s.Mailbox || len(b) >= blockSize && places[i-1].commit != p.commit
		if fresh {
			end()
			rows, blocks, b = append(rows, row{key: key{s.Mailbox.ULID, p.commit}, at: at}), append(blocks, nil), nil
		}
		for _, n := range [...]uint64{p.commit, s.First, uint64(s.Count), uint64(len(s.Body))} {
			b = binary.AppendUvarint(b, n)
		}
		b = append(b, s.Body...)
		blocks[len(blocks)-1] = b
	}
	end()
	return rows, blocks
}

func (r *row) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, r.mailbox[:]...), r.commit)
	b = binary.BigEndian.AppendUint64(b, r.at)
	b = binary.BigEndian.AppendUint32(b, r.length)
	return append(b, r.sum[:]...)
}

func (r *row) decode(b []byte) {
	r.mailbox = ulid.ULID(b[:16])
	r.commit = binary.BigEndian.Uint64(b[16:])
	r.at = binary.BigEndian.Uint64(b[24:])
	r.length = binary.BigEndian.Uint32(b[32:])
	r.sum = [sumSize]byte(b[36:])
}

// Open opens the group of a node in a file, and checks its header and table. It does not check that the group is of the same
// log: its last commit tells.
func Open(path string, node capabilities.NodeID) (g *File, err error) {
	f, err := regular.Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var fixed [header]byte
	if _, err := f.ReadAt(fixed[:], 0); err != nil {
		return nil, ErrDamaged
	}
	g = &File{file: f, First: binary.BigEndian.Uint64(fixed[40:]), Last: events.Mark{Number: binary.BigEndian.Uint64(fixed[48:])}}
	g.Last.Hash = events.Hash(fixed[56:])
	rows, size := binary.BigEndian.Uint64(fixed[88:]), binary.BigEndian.Uint64(fixed[96:])
	if string(fixed[:8]) != magic || string(fixed[8:40]) != string(node.Bytes()) ||
		rows > uint64(info.Size())/rowSize || uint64(info.Size()) != header+rows*rowSize+sha256.Size+size {
		return nil, ErrDamaged
	}
	head := make([]byte, header+rows*rowSize+sha256.Size)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, ErrDamaged
	}
	g.rows, g.body = int(rows), int64(len(head))
	if end := len(head) - sha256.Size; sha256.Sum256(head[:end]) != [sha256.Size]byte(head[end:]) {
		return nil, ErrDamaged
	}
	for at := header; at < len(head)-sha256.Size; at += indexed * rowSize {
		var r row
		r.decode(head[at:])
		g.index = append(g.index, r.key)
	}
	return g, nil
}

// find returns the rows of a mailbox's blocks that may have sections of commits first to last.
func (g *File) find(mailbox ulid.ULID, first, last uint64) (found []row, err error) {
	begin := sort.Search(len(g.index), func(i int) bool { return g.index[i].compare(key{mailbox, first}) > 0 })
	end := key{mailbox, last}
	b := make([]byte, indexed*rowSize)
	for at := max(begin-1, 0) * indexed; at < g.rows; at += indexed {
		b = b[:min(indexed, g.rows-at)*rowSize]
		if _, err := g.file.ReadAt(b, header+int64(at)*rowSize); err != nil {
			return nil, err
		}
		for rest := b; len(rest) > 0; rest = rest[rowSize:] {
			var r row
			switch r.decode(rest); {
			case r.compare(end) > 0:
				return found, nil
			case r.mailbox == mailbox && r.commit <= first:
				found = append(found[:0], r) // the earlier ones end before it
			case r.mailbox == mailbox:
				found = append(found, r)
			}
		}
	}
	return found, nil
}

// Section is a section with the number of its commit.
type Section struct {
	Commit uint64
	events.Section
}

// Sections returns the sections of a mailbox in commits of the group, which ascend. It fails with ErrDamaged if one
// of the commits has none.
func (g *File) Sections(mailbox capabilities.ID, commits []uint64) (found []Section, err error) {
	rows, err := g.find(mailbox.ULID, commits[0], commits[len(commits)-1])
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		b, err := g.block(r)
		if err != nil {
			return nil, err
		}
		if found, err = appendBlock(found, mailbox, b); err != nil {
			return nil, err
		}
	}
	found = slices.DeleteFunc(found, func(s Section) bool {
		_, wanted := slices.BinarySearch(commits, s.Commit)
		return !wanted
	})
	different := 0
	for i := range found {
		if i == 0 || found[i].Commit != found[i-1].Commit {
			different++
		}
	}
	if different != len(commits) {
		return nil, ErrDamaged
	}
	return found, nil
}

func (g *File) block(r row) ([]byte, error) {
	b := make([]byte, r.length) // the table has been checked
	if _, err := g.file.ReadAt(b, g.body+int64(r.at)); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); [sumSize]byte(sum[:]) != r.sum {
		return nil, ErrDamaged
	}
	return b, nil
}

// appendBlock appends the sections of a block.
func appendBlock(all []Section, mailbox capabilities.ID, b []byte) ([]Section, error) {
	for len(b) > 0 {
		var cells [4]uint64
		for i := range cells {
			n := 0
			if cells[i], n = binary.Uvarint(b); n <= 0 {
				return nil, ErrDamaged
			}
			b = b[n:]
		}
		size := cells[3]
		if size > uint64(len(b)) || cells[2] > math.MaxUint32 {
			return nil, ErrDamaged
		}
		all = append(all, Section{cells[0], events.Section{Mailbox: mailbox, First: cells[1], Count: uint32(cells[2]), Body: b[:size:size]}})
		b = b[size:]
	}
	return all, nil
}

// Close closes the file.
func (g *File) Close() error { return g.file.Close() }
