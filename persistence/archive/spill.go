package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
)

// Spill holds the sections of commits in a temporary file, from which they are read mailbox by mailbox. It is not safe
// for concurrent use.
type Spill struct {
	file *os.File
	out  *bufio.Writer
	size int64
	last map[ulid.ULID]int64 // the offset of the last record of each mailbox
}

// A record of a spill has the offset of the mailbox's previous record, or -1. It also has the number of its commit. The
// first version and the count of its events follow, then the length of its body, and the body.
const spillHead = 8 + 8 + 8 + 4 + 4

// CreateSpill creates the file of a spill. The file never has to be on disk.
func CreateSpill(path string) (*Spill, error) {
	f, err := regular.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create a spill: %w", err)
	}
	return &Spill{file: f, out: bufio.NewWriterSize(f, 1<<20), last: map[ulid.ULID]int64{}}, nil
}

// Add adds the sections of a commit. The commits come in order.
func (s *Spill) Add(c *events.Commit) error {
	for i := range c.Sections {
		section := &c.Sections[i]
		if section.Count == 0 {
			continue
		}
		before, ok := s.last[section.Mailbox.ULID]
		if !ok {
			before = -1
		}
		var head [spillHead]byte
		be := binary.BigEndian
		be.PutUint64(head[:], uint64(before))
		be.PutUint64(head[8:], c.Number)
		be.PutUint64(head[16:], section.First)
		be.PutUint32(head[24:], section.Count)
		be.PutUint32(head[28:], uint32(len(section.Body)))
		_, err := s.out.Write(head[:])
		if err == nil {
			_, err = s.out.Write(section.Body)
		}
		if err != nil {
			return fmt.Errorf("write a spill: %w", err)
		}
		s.last[section.Mailbox.ULID] = s.size
		s.size += int64(spillHead + len(section.Body))
	}
	return nil
}

// Each calls fn with the sections of a mailbox and the numbers of their commits. They are in the order in which they
// were added. It stops at an error and returns it. No section may be added afterwards.
func (s *Spill) Each(mailbox capabilities.ID, fn func(commit uint64, section events.Section) error) error {
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("write a spill: %w", err)
	}
	at, ok := s.last[mailbox.ULID]
	if !ok {
		return nil
	}
	var offsets []int64
	var head [spillHead]byte
	be := binary.BigEndian
	for ; at >= 0; at = int64(be.Uint64(head[:])) {
		offsets = append(offsets, at)
		if _, err := s.file.ReadAt(head[:8], at); err != nil {
			return fmt.Errorf("read a spill: %w", noEOF(err))
		}
	}
	for i := len(offsets) - 1; i >= 0; i-- {
		if _, err := s.file.ReadAt(head[:], offsets[i]); err != nil {
			return fmt.Errorf("read a spill: %w", noEOF(err))
		}
		section := events.Section{
			Mailbox: mailbox, First: be.Uint64(head[16:]), Count: be.Uint32(head[24:]), Body: make([]byte, be.Uint32(head[28:])),
		}
		if _, err := s.file.ReadAt(section.Body, offsets[i]+spillHead); err != nil {
			return fmt.Errorf("read a spill: %w", noEOF(err))
		}
		if err := fn(be.Uint64(head[8:]), section); err != nil {
			return err
		}
	}
	return nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close removes the file.
func (s *Spill) Close() error {
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
