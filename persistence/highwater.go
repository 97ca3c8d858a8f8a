package persistence

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"parley"
	"parley/capabilities"
	"parley/internal/regular"
	"parley/persistence/archive"
)

// highWater is the file with the last durable commit, by which a log that was cut is detected. It has two slots that
// are written in turn, since a torn write can damage one. Its lock excludes other processes.
type highWater struct {
	file *os.File
	node capabilities.NodeID
	next int // the slot to write
	size int // of the file, in bytes
	last Mark
}

// HighWaterFile is the name of the file in the folder of a journal. It is locked while the journal is open.
const HighWaterFile = "high-water"

const (
	slotMagic  = "PLYMARK\x01"
	slotSize   = 8 + 8 + 32 + 16
	slotStride = 4096 // slots are in different sectors
	markSize   = slotStride + slotSize
)

// openHighWater locks and reads the file. A file that does not exist is the zero mark. One with no readable slot is
// CORRUPT_LOG.
func openHighWater(folder string, node capabilities.NodeID) (*highWater, error) {
	path := filepath.Join(folder, HighWaterFile)
	f, err := regular.OpenOrCreate(path)
	if err != nil {
		return nil, readOnly("the high-water mark cannot be opened", err)
	}
	if err := lockFile(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, parley.Refuse(parley.AlreadyRunning, "another process has this journal open").
			WithHint("stop it first")
	}
	h := &highWater{file: f, node: node}
	if err := h.read(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return h, nil
}

func (h *highWater) read() error {
	raw := make([]byte, markSize)
	n, err := h.file.ReadAt(raw, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return readOnly("the high-water mark cannot be read", err)
	}
	if h.size = n; n == 0 {
		return nil
	}
	bad := 0
	for slot := range 2 {
		if s := raw[slot*slotStride:][:slotSize]; [16]byte(s[48:]) == h.sum(s[:48]) {
			if err := archive.CheckFormat(s, slotMagic); err != nil {
				return newer("the high-water mark", err)
			}
		}
		m, used, ok := h.decode(raw[slot*slotStride:][:slotSize])
		if used && !ok {
			bad++
		}
		if ok && m.Number >= h.last.Number {
			h.last, h.next = m, 1-slot
		}
	}
	if bad == 2 || bad == 1 && h.last.Number == 0 {
		return parley.Refuse(parley.CorruptLog, "the high-water mark is damaged: whether the log's last commits are there cannot be known").
			WithHint("if you trust the log, remove the file high-water from the node's folder")
	}
	return nil
}

func (h *highWater) decode(slot []byte) (m Mark, used, ok bool) {
	if [slotSize]byte(slot) == [slotSize]byte{} {
		return m, false, false
	}
	if string(slot[:8]) != slotMagic || [16]byte(slot[48:]) != h.sum(slot[:48]) {
		return m, true, false
	}
	m.Number = binary.BigEndian.Uint64(slot[8:])
	copy(m.Hash[:], slot[16:48])
	return m, true, true
}

func (h *highWater) sum(slot []byte) [16]byte {
	all := sha256.Sum256(append(h.node.Bytes(), slot...))
	return [16]byte(all[:16])
}

// write stores the mark on disk.
func (h *highWater) write(m Mark) error {
	if m == h.last {
		return nil
	}
	slot := make([]byte, 0, slotSize)
	slot = append(slot, slotMagic...)
	slot = binary.BigEndian.AppendUint64(slot, m.Number)
	slot = append(slot, m.Hash[:]...)
	sum := h.sum(slot)
	slot = append(slot, sum[:]...)
	if h.size < markSize {
		if err := h.file.Truncate(markSize); err != nil {
			return fmt.Errorf("write the high-water mark: %w", err)
		}
		h.size = markSize
	}
	if _, err := h.file.WriteAt(slot, int64(h.next*slotStride)); err != nil {
		return fmt.Errorf("write the high-water mark: %w", err)
	}
	if err := syncData(h.file); err != nil {
		return fmt.Errorf("flush the high-water mark: %w", err)
	}
	h.last, h.next = m, 1-h.next
	return nil
}

func (h *highWater) close() error { return closeLocked(h.file) }

// markEvery bounds the time for which the high-water mark is behind the log.
const markEvery = 20 * time.Millisecond

// marker writes the high-water mark after commits, until ctx ends.
func (j *Journal) marker(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.marks:
		}
		if err := j.writeMark(); err != nil {
			j.log.Warn("the high-water mark is behind", "error", err)
		}
		timer.Reset(markEvery)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// writeMark writes the last commit as the high-water mark. Its failure does not fail the journal: the commit is
// durable, and only a loss of the newest commits would go unnoticed.
func (j *Journal) writeMark() error {
	j.marking.Lock()
	defer j.marking.Unlock()
	return j.o.step(StepMark, func() error { return j.high.write(j.lastCommit().Mark) })
}
