package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
)

// Mailbox is a mailbox in a checkpoint: its entry in the journal's index, and its state, after the last archived commit.
type Mailbox struct {
	ID      ulid.ULID
	Version uint64
	Last    uint64 // the last commit with its events
	Summary events.Summary
	Note    string // its newest
	Steps   []byte // its commits, as the journal's index keeps them
	State   []byte
}

// A checkpoint begins with a magic number. Blocks of mailboxes follow, in the order of their IDs and compressed by
// zstd. A footer ends it, and a tail like that of a segment. The footer has the node's key, the last archived commit
// and three counts. For each block it has the ID of the first mailbox, the sizes, and the digest of the compressed
// bytes.
const (
	checkpointMagic  = "PLYCHKP\x01"
	checkpointSuffix = ".checkpoint"
	checkpointHeader = 32 + markSize + 8 + 8 + 8
	checkpointEntry  = 16 + 4 + 4 + 4 + 32
	checkpointTail   = 32 + 4 + len(checkpointMagic)
	checkpointBlock  = 256 << 10 // bytes of mailboxes at least, if there are more
	maxMailbox       = 1 << 30
)

// CheckpointName returns the file name of the checkpoint after a commit.
func CheckpointName(number uint64) string { return fmt.Sprintf("%020d%s", number, checkpointSuffix) }

// IsCheckpoint reports whether a file name is one of a checkpoint.
func IsCheckpoint(name string) bool { return filepath.Ext(name) == checkpointSuffix }

// CheckpointWriter writes a checkpoint. It is not safe for concurrent use.
type CheckpointWriter struct {
	path      string
	file      *os.File
	zstd      *zstd.Encoder
	head      []byte // of the footer, without the counts
	blocks    []byte // of the footer
	size      int64
	raw       []byte
	room      []byte
	first     ulid.ULID // of raw
	count     uint32    // in raw
	last      ulid.ULID
	mailboxes uint64
}

// CreateCheckpoint begins the checkpoint of a node after a commit. The file has a temporary name until Close.
func CreateCheckpoint(path string, node capabilities.NodeID, end Mark) (*CheckpointWriter, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("create a checkpoint: %w", err)
	}
	f, err := regular.Create(path + temporary)
	if err != nil {
		return nil, fmt.Errorf("create a checkpoint: %w", err)
	}
	w := &CheckpointWriter{path: path, file: f, zstd: enc, head: appendMark(append([]byte(nil), node.Bytes()...), end)}
	if err := w.write([]byte(checkpointMagic)); err != nil {
		w.Discard()
		return nil, err
	}
	return w, nil
}

func (w *CheckpointWriter) write(b []byte) error {
	if _, err := w.file.Write(b); err != nil {
		return fmt.Errorf("write a checkpoint: %w", err)
	}
	w.size += int64(len(b))
	return nil
}

// Add adds a mailbox. The mailboxes come in the order of their IDs.
func (w *CheckpointWriter) Add(m Mailbox) error {
	if w.mailboxes > 0 && w.last.Compare(m.ID) >= 0 || m.Version == 0 {
		return fmt.Errorf("checkpoint: mailbox %s of version %d is out of order", m.ID, m.Version)
	}
	if size := len(m.Note) + len(m.State) + len(m.Steps); size > maxMailbox {
		return fmt.Errorf("checkpoint: mailbox %s has %d bytes", m.ID, size)
	}
	if w.count == 0 {
		w.first = m.ID
	}
	w.raw = append(w.raw, m.ID[:]...)
	for _, n := range [...]uint64{
		m.Version, m.Last, uint64(m.Summary.Open), uint64(m.Summary.Waiting), uint64(m.Summary.Outbox), uint64(m.Summary.Deadline),
		uint64(len(m.Note)), uint64(len(m.Steps)), uint64(len(m.State)),
	} {
		w.raw = binary.AppendUvarint(w.raw, n)
	}
	w.raw = append(append(append(w.raw, m.Note...), m.Steps...), m.State...)
	w.last = m.ID
	w.mailboxes++
	w.count++
	if len(w.raw) < checkpointBlock {
		return nil
	}
	return w.endBlock()
}

func (w *CheckpointWriter) endBlock() error {
	w.room = w.zstd.EncodeAll(w.raw, w.room[:0])
	be := binary.BigEndian
	w.blocks = append(w.blocks, w.first[:]...)
	w.blocks = be.AppendUint32(w.blocks, w.count)
	w.blocks = be.AppendUint32(w.blocks, uint32(len(w.room)))
	w.blocks = be.AppendUint32(w.blocks, uint32(len(w.raw)))
	digest := sha256.Sum256(w.room)
	w.blocks = append(w.blocks, digest[:]...)
	w.raw, w.count = w.raw[:0], 0
	return w.write(w.room)
}

// Close seals the checkpoint of so many events and sections: it is on disk under its name. It returns the digest and
// the size. After an error the checkpoint is discarded.
func (w *CheckpointWriter) Close(evs, sections uint64) (events.Hash, int64, error) {
	digest, err := w.seal(evs, sections)
	if err != nil {
		w.Discard()
		return events.Hash{}, 0, err
	}
	return digest, w.size, nil
}

func (w *CheckpointWriter) seal(evs, sections uint64) (events.Hash, error) {
	if w.count > 0 {
		if err := w.endBlock(); err != nil {
			return events.Hash{}, err
		}
	}
	be := binary.BigEndian
	foot := w.head
	for _, n := range [...]uint64{evs, sections, w.mailboxes} {
		foot = be.AppendUint64(foot, n)
	}
	foot = append(foot, w.blocks...)
	digest := events.Hash(sha256.Sum256(foot))
	size := len(foot)
	foot = append(foot, digest[:]...)
	foot = be.AppendUint32(foot, uint32(size))
	err := w.write(append(foot, checkpointMagic...))
	if err == nil {
		err = w.file.Sync()
	}
	if err == nil {
		err = w.file.Close()
	}
	if err == nil {
		err = os.Rename(w.path+temporary, w.path)
	}
	if err == nil {
		err = SyncFolder(filepath.Dir(w.path))
	}
	if err != nil {
		return digest, fmt.Errorf("write a checkpoint: %w", err)
	}
	return digest, nil
}

// Discard ends the writing of a checkpoint that was not closed, and removes the file.
func (w *CheckpointWriter) Discard() {
	_ = w.file.Close() // it is removed
	_ = os.Remove(w.path + temporary)
}

// Checkpoint reads a checkpoint. It is safe for concurrent use.
type Checkpoint struct {
	file             *os.File
	zstd             *zstd.Decoder
	node             capabilities.NodeID
	end              Mark
	events, sections uint64
	mailboxes        uint64
	blocks           []checkpointRange

	mu     sync.Mutex // holds recent
	recent [recentBlocks]recentMailboxes
	turn   int
}

// checkpointRange is a block of a checkpoint.
type checkpointRange struct {
	first     ulid.ULID
	offset    int64
	count     uint32
	size, raw uint32
	digest    events.Hash
}

// recentMailboxes are the mailboxes of a block; nil is none.
type recentMailboxes struct {
	block int
	list  []Mailbox
}

// OpenCheckpoint opens a checkpoint with a digest. It fails with ErrDamaged for any other file, and with
// fs.ErrNotExist if there is none.
func OpenCheckpoint(path string, want events.Hash) (*Checkpoint, error) {
	f, err := regular.Open(path, os.O_RDONLY)
	if errors.Is(err, regular.ErrNot) {
		err = damaged("%s is not a regular file", filepath.Base(path))
	}
	if err != nil {
		return nil, fmt.Errorf("open a checkpoint: %w", err)
	}
	c := &Checkpoint{file: f}
	if err = c.open(want); err == nil {
		c.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxMailbox), zstd.WithDecodeAllCapLimit(true))
	}
	if err != nil {
		_ = f.Close() // it was only read
		return nil, fmt.Errorf("open checkpoint %s: %w", filepath.Base(path), err)
	}
	return c, nil
}

func (c *Checkpoint) open(want events.Hash) error {
	info, err := c.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size < int64(len(checkpointMagic)+checkpointHeader+checkpointTail) {
		return damaged("it has %d bytes", size)
	}
	head, tail := make([]byte, len(checkpointMagic)), make([]byte, checkpointTail)
	if err := readAt(c.file, head, 0); err != nil {
		return err
	}
	if err := readAt(c.file, tail, size-int64(len(tail))); err != nil {
		return err
	}
	if string(head) == string(tail[36:]) { // else one of them is damaged
		if err := CheckFormat(head, checkpointMagic); err != nil {
			return err
		}
	}
	foot := int64(binary.BigEndian.Uint32(tail[32:]))
	start := size - int64(len(tail)) - foot
	if string(head) != checkpointMagic || string(tail[36:]) != checkpointMagic || events.Hash(tail) != want || foot < checkpointHeader || start < int64(len(checkpointMagic)) ||
		(foot-checkpointHeader)%checkpointEntry != 0 {
		return damaged("it is not the recorded one, or not whole")
	}
	b := make([]byte, foot)
	if err := readAt(c.file, b, start); err != nil {
		return err
	}
	if events.Hash(sha256.Sum256(b)) != want {
		return damaged("its digest is another")
	}
	return c.decodeFooter(b, start)
}

// decodeFooter decodes the footer that begins at an offset.
func (c *Checkpoint) decodeFooter(b []byte, start int64) error {
	be := binary.BigEndian
	c.node, c.end = capabilities.NodeOf([32]byte(b)), markAt(b[32:])
	counts := b[32+markSize:]
	c.events, c.sections, c.mailboxes = be.Uint64(counts), be.Uint64(counts[8:]), be.Uint64(counts[16:])
	offset, all := int64(len(checkpointMagic)), uint64(0)
	for e := b[checkpointHeader:]; len(e) > 0; e = e[checkpointEntry:] {
		r := checkpointRange{
			first: ulid.ULID(e[:16]), offset: offset, count: be.Uint32(e[16:]), size: be.Uint32(e[20:]), raw: be.Uint32(e[24:]),
			digest: events.Hash(e[28:]),
		}
		n := len(c.blocks)
		if r.count == 0 || uint64(r.raw) < uint64(r.count)*16 || r.raw > maxMailbox+2*checkpointBlock || n > 0 && c.blocks[n-1].first.Compare(r.first) >= 0 {
			return damaged("block %d of its footer", n+1)
		}
		offset += int64(r.size)
		all += uint64(r.count)
		c.blocks = append(c.blocks, r)
	}
	if offset != start || all != c.mailboxes {
		return damaged("its blocks end at byte %d with %d mailboxes", offset, all)
	}
	return nil
}

// Node returns the node of the checkpoint.
func (c *Checkpoint) Node() capabilities.NodeID { return c.node }

// End returns the commit after which the mailboxes have their states.
func (c *Checkpoint) End() Mark { return c.end }

// Events returns the number of events up to End.
func (c *Checkpoint) Events() uint64 { return c.events }

// Sections returns the number of sections up to End.
func (c *Checkpoint) Sections() uint64 { return c.sections }

// Mailboxes returns the number of mailboxes.
func (c *Checkpoint) Mailboxes() uint64 { return c.mailboxes }

// Close closes the file. Later reads fail.
func (c *Checkpoint) Close() error { return c.file.Close() }

// Find returns a mailbox, and false if it has no events up to End. Its slices are not to be changed.
func (c *Checkpoint) Find(id ulid.ULID) (Mailbox, bool, error) {
	i := sort.Search(len(c.blocks), func(i int) bool { return c.blocks[i].first.Compare(id) > 0 }) - 1
	if i < 0 {
		return Mailbox{}, false, nil
	}
	list, err := c.block(i)
	if err != nil {
		return Mailbox{}, false, err
	}
	at, found := sort.Find(len(list), func(i int) int { return id.Compare(list[i].ID) })
	if !found {
		return Mailbox{}, false, nil
	}
	return list[at], true, nil
}

// block returns the mailboxes of a block, which it keeps for a while unless they are large.
func (c *Checkpoint) block(i int) ([]Mailbox, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.recent {
		if r.list != nil && r.block == i {
			return r.list, nil
		}
	}
	list, err := c.read(i)
	if err == nil && c.blocks[i].raw <= 2*checkpointBlock {
		c.recent[c.turn] = recentMailboxes{block: i, list: list}
		c.turn = (c.turn + 1) % recentBlocks
	}
	return list, err
}

// Each calls fn with all mailboxes in the order of their IDs. It stops at an error and returns it.
func (c *Checkpoint) Each(fn func(m Mailbox) error) error {
	for i := range c.blocks {
		list, err := c.read(i)
		if err != nil {
			return err
		}
		for _, m := range list {
			if err := fn(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads the mailboxes of a block and checks its digest.
func (c *Checkpoint) read(i int) ([]Mailbox, error) {
	b := &c.blocks[i]
	wrong := func(what string) error {
		return fmt.Errorf("checkpoint, block %d from mailbox %s: %w", i+1, b.first, damaged("%s", what))
	}
	packed := make([]byte, b.size)
	if err := readAt(c.file, packed, b.offset); err != nil {
		return nil, fmt.Errorf("checkpoint, block %d: %w", i+1, err)
	}
	if events.Hash(sha256.Sum256(packed)) != b.digest {
		return nil, wrong("its digest is another")
	}
	raw, err := c.zstd.DecodeAll(packed, make([]byte, 0, b.raw))
	if err != nil || len(raw) != int(b.raw) {
		return nil, wrong("it cannot be unpacked")
	}
	list := make([]Mailbox, 0, b.count)
	for len(list) < int(b.count) {
		m, rest, err := takeMailbox(raw)
		if err != nil || len(list) > 0 && list[len(list)-1].ID.Compare(m.ID) >= 0 {
			return nil, wrong("its mailboxes cannot be read")
		}
		list, raw = append(list, m), rest
	}
	if len(raw) > 0 || list[0].ID != b.first {
		return nil, wrong("its mailboxes are others")
	}
	return list, nil
}

var errCut = errors.New("cut")

// takeMailbox splits the first mailbox off a block.
func takeMailbox(raw []byte) (m Mailbox, rest []byte, err error) {
	if len(raw) < len(m.ID) {
		return m, nil, errCut
	}
	copy(m.ID[:], raw)
	raw = raw[len(m.ID):]
	var n [9]uint64
	for i := range n {
		v, size := binary.Uvarint(raw)
		if size <= 0 {
			return m, nil, errCut
		}
		n[i], raw = v, raw[size:]
	}
	note, steps, state, left := n[6], n[7], n[8], uint64(len(raw))
	if note > left || steps > left-note || state > left-note-steps || n[0] == 0 {
		return m, nil, errCut
	}
	m.Version, m.Last = n[0], n[1]
	m.Summary = events.Summary{Open: uint32(n[2]), Waiting: uint32(n[3]), Outbox: uint32(n[4]), Deadline: capabilities.Time(n[5])}
	m.Note, raw = string(raw[:note]), raw[note:]
	m.Steps, raw = raw[:steps:steps], raw[steps:]
	m.State, raw = raw[:state:state], raw[state:]
	return m, raw, nil
}
