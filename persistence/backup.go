package persistence

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// A backup is a magic number, the node's key, each frame after its length, and at the end a length of zero, the number
// of commits and the hash of the last.
const (
	backupMagic   = "PLYBACK\x01"
	maxBackedUp   = 64 << 20 // a frame
	backupTrailer = 8 + 32
)

// Backup writes and checks the log up to its last commit at the time of the call. The journal keeps working. After an
// error the output is not a backup, and Restore refuses it.
func (j *Journal) Backup(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<20)
	end := j.lastCommit().mark
	_, err := out.WriteString(backupMagic)
	if err == nil {
		_, err = out.Write(j.o.Node.Bytes())
	}
	if err == nil {
		err = j.follow(ctx, end, func(_ *events.Commit, bytes []byte) error { return writeSized(out, bytes) })
	}
	if err == nil {
		_, err = out.Write(trailer(end))
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("back up the journal: %w", err)
	}
	return nil
}

// trailer returns the end of a backup: an empty frame, and the last commit.
func trailer(end mark) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 4, 4+backupTrailer), end.number)
	return append(b, end.hash[:]...)
}

func writeSized(out *bufio.Writer, bytes []byte) error {
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(bytes)))
	if _, err := out.Write(size[:]); err != nil {
		return err
	}
	_, err := out.Write(bytes)
	return err
}

// readBackup calls fn with each frame of a node's backup, and returns the last mark. No frame may be trusted before it
// returns without an error.
func readBackup(r io.Reader, node capabilities.NodeID, fn func(m mark, bytes []byte) error) (mark, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	var head [len(backupMagic) + capabilities.NodeKeySize]byte
	if _, err := io.ReadFull(in, head[:]); err != nil || string(head[:len(backupMagic)]) != backupMagic {
		return mark{}, notWhole(err, "this is not a backup of a journal")
	}
	if whose := capabilities.NodeOf([capabilities.NodeKeySize]byte(head[len(backupMagic):])); whose != node {
		return mark{}, parley.Refuse(parley.InvalidArgument, "the backup is of node %s", whose)
	}
	c := chainFrom(node, 1)
	for {
		bytes, err := readSized(in)
		if err != nil {
			return mark{}, notWhole(err, "the backup ends after commit %d, before its end", c.last.number)
		}
		if bytes == nil {
			return c.last, readTrailer(in, c.last)
		}
		if _, err := c.follow(c.last.number+1, bytes); err != nil {
			return mark{}, fmt.Errorf("read the backup: %w", err)
		}
		if err := fn(c.last, bytes); err != nil {
			return mark{}, err
		}
	}
}

// readSized reads a frame. It returns nil after the last one.
func readSized(in *bufio.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n == 0 {
		return nil, nil
	}
	if n > maxBackedUp {
		return nil, io.ErrUnexpectedEOF
	}
	bytes := make([]byte, n)
	_, err := io.ReadFull(in, bytes)
	return bytes, err
}

func readTrailer(in *bufio.Reader, last mark) error {
	var trailer [backupTrailer]byte
	if _, err := io.ReadFull(in, trailer[:]); err != nil {
		return notWhole(err, "the backup ends after commit %d, before its end", last.number)
	}
	if binary.BigEndian.Uint64(trailer[:]) != last.number || events.Hash(trailer[8:]) != last.hash {
		return notWhole(nil, "the backup's end is of another")
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return notWhole(err, "the backup goes on after its end")
	}
	return nil
}

// notWhole returns CORRUPT_LOG for a backup that is cut short, and any other error unchanged.
func notWhole(err error, format string, args ...any) error {
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read the backup: %w", err)
	}
	return parley.Refuse(parley.CorruptLog, format, args...).WithHint("use another backup")
}
