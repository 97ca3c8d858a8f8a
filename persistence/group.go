package persistence

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
)

// A group is a file with the sections of a range of commits, those of each mailbox together. A commit of a busy node has
// the sections of a hundred mailboxes, so whoever reads one mailbox from commits reads a hundred times too much. From a
// group it reads what is the mailbox's, with one access to the disk for each 16 KiB.
//
// For example, commits 7 and 8 with sections of mailboxes A and B:
//
//	7: A1 B1    8: B2 A2 A3    become    A: 7 A1, 8 A2, 8 A3    B: 7 B1, 8 B2
//
// A group is derived from the log. One that is missing, damaged, or of another log costs time only. It is never flushed:
// what a power cut leaves of it has the wrong sum.
//
//	header: magic, node, first commit, last commit, its hash, number of blocks, bytes of the blocks
//	table:  for each block, by mailbox and commit: mailbox, first commit, offset, length, sum
//	sum of header and table
//	blocks: for each section: commit, first version, number of events, length of the body, as varints; the body
type group struct {
	path   string
	file   *os.File
	first  uint64
	last   Mark
	rows   int   // of the table
	body   int64 // offset of the blocks
	index  []key // every indexed-th row of the table
}

// key orders the rows of a table.
type key struct {
	mailbox ulid.ULID
	commit  uint64 // of the first section
}

func (k key) compare(l key) int {
	return cmp.Or(k.mailbox.Compare(l.mailbox), cmp.Compare(k.commit, l.commit))
}

// indexed is the distance of rows whose keys are in memory, and the number of rows that are read at once.
const indexed = 64

const (
	groupMagic  = "PLYGRUP\x01"
	groupHeader = 8 + 32 + 8 + 8 + sha256.Size + 8 + 8
	groupRow    = 16 + 8 + 8 + 4 + groupSum
	groupSum    = 8 // bytes of a digest that tell chance damage
	groupBlock  = 16 << 10
	groupFolder = "groups"
)

var errGroupDamaged = errors.New("the group is damaged")

// row is the table's row of a block, which has sections of one mailbox.
type row struct {
	key
	at     uint64 // offset behind the table
	length  uint32
	sum     [groupSum]byte
}

// groupName returns the name of the file of a group, which sorts as the groups do.
func groupName(first, last uint64) string { return fmt.Sprintf("%020d-%020d", first, last) }

// writeGroup writes the group of consecutive commits, the last of which has a hash, to a folder.
func writeGroup(folder string, node capabilities.NodeID, commits []*events.Commit, hash events.Hash) (err error) {
	first, last := commits[0].Number, commits[len(commits)-1].Number
	path := filepath.Join(folder, groupName(first, last))
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	rows, blocks := groupSections(commits)
	size := uint64(0)
	for i := range blocks {
		size += uint64(len(blocks[i]))
	}
	head := make([]byte, 0, groupHeader+groupRow*len(rows)+sha256.Size)
	head = append(append(head, groupMagic...), node.Bytes()...)
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

// groupSections returns the blocks of commits, with their rows.
func groupSections(commits []*events.Commit) (rows []row, blocks [][]byte) {
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
		r.length, r.sum = uint32(len(b)), [groupSum]byte(sum[:])
		at += uint64(len(b))
	}
	var b []byte
	for i, p := range places {
		s := p.section
		// A commit's sections of a mailbox stay in one block, which is found by the commit.
		fresh := i == 0 || places[i-1].section.Mailbox != s.Mailbox || len(b) >= groupBlock && places[i-1].commit != p.commit
		if fresh {
			end()
			rows, blocks, b = append(rows, row{key: key{s.Mailbox.ULID, p.commit}, at: at}), append(blocks, nil), nil
		}
		b = appendVarints(b, p.commit, s.First, uint64(s.Count), uint64(len(s.Body)))
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
	r.sum = [groupSum]byte(b[36:])
}

// openGroup opens the group in a file, and checks its header and table. It does not check that the group is of the same
// log: its last commit tells.
func openGroup(path string, node capabilities.NodeID) (g *group, err error) {
	f, err := os.Open(path)
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
	var header [groupHeader]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return nil, errGroupDamaged
	}
	g = &group{path: path, file: f, first: binary.BigEndian.Uint64(header[40:]), last: Mark{Number: binary.BigEndian.Uint64(header[48:])}}
	g.last.Hash = events.Hash(header[56:])
	rows, size := binary.BigEndian.Uint64(header[88:]), binary.BigEndian.Uint64(header[96:])
	if string(header[:8]) != groupMagic || string(header[8:40]) != string(node.Bytes()) ||
		rows > uint64(info.Size())/groupRow || uint64(info.Size()) != groupHeader+rows*groupRow+sha256.Size+size {
		return nil, errGroupDamaged
	}
	head := make([]byte, groupHeader+rows*groupRow+sha256.Size)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, errGroupDamaged
	}
	g.rows, g.body = int(rows), int64(len(head))
	if end := len(head) - sha256.Size; sha256.Sum256(head[:end]) != [sha256.Size]byte(head[end:]) {
		return nil, errGroupDamaged
	}
	for at := groupHeader; at < len(head)-sha256.Size; at += indexed * groupRow {
		var r row
		r.decode(head[at:])
		g.index = append(g.index, r.key)
	}
	return g, nil
}

// find returns the rows of a mailbox's blocks that may have sections of commits first to last.
func (g *group) find(mailbox ulid.ULID, first, last uint64) (found []row, err error) {
	begin := sort.Search(len(g.index), func(i int) bool { return g.index[i].compare(key{mailbox, first}) > 0 })
	end := key{mailbox, last}
	b := make([]byte, indexed*groupRow)
	for at := max(begin-1, 0) * indexed; at < g.rows; at += indexed {
		b = b[:min(indexed, g.rows-at)*groupRow]
		if _, err := g.file.ReadAt(b, groupHeader+int64(at)*groupRow); err != nil {
			return nil, err
		}
		for rest := b; len(rest) > 0; rest = rest[groupRow:] {
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

// numbered is a section with the number of its commit.
type numbered struct {
	commit uint64
	events.Section
}

// sections returns the sections of a mailbox in commits of the group, which ascend. It fails with errGroupDamaged if one
// of the commits has none.
func (g *group) sections(mailbox capabilities.ID, commits []uint64) (found []numbered, err error) {
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
	found = slices.DeleteFunc(found, func(s numbered) bool {
		_, wanted := slices.BinarySearch(commits, s.commit)
		return !wanted
	})
	different := 0
	for i := range found {
		if i == 0 || found[i].commit != found[i-1].commit {
			different++
		}
	}
	if different != len(commits) {
		return nil, errGroupDamaged
	}
	return found, nil
}

func (g *group) block(r row) ([]byte, error) {
	b := make([]byte, min(r.length, embeddedPayload+groupBlock))
	if _, err := g.file.ReadAt(b, g.body+int64(r.at)); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); [groupSum]byte(sum[:]) != r.sum {
		return nil, errGroupDamaged
	}
	return b, nil
}

// appendBlock appends the sections of a block.
func appendBlock(all []numbered, mailbox capabilities.ID, b []byte) ([]numbered, error) {
	for len(b) > 0 {
		var cells [4]uint64
		for i := range cells {
			n := 0
			if cells[i], n = binary.Uvarint(b); n <= 0 {
				return nil, errGroupDamaged
			}
			b = b[n:]
		}
		size := cells[3]
		if size > uint64(len(b)) || cells[2] > math.MaxUint32 {
			return nil, errGroupDamaged
		}
		all = append(all, numbered{cells[0], events.Section{Mailbox: mailbox, First: cells[1], Count: uint32(cells[2]), Body: b[:size:size]}})
		b = b[size:]
	}
	return all, nil
}
