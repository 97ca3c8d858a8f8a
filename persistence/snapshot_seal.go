package persistence

import (
	"crypto/sha256"
	"encoding/binary"
)

// A snapshot is an object in the node's bucket under the mailbox's ULID: a header with its version and commit, the
// state, and a checksum.
const (
	snapshotMagic  = "PLYSNAP\x01"
	snapshotHeader = 8 + 8 + 8 + 32
)

func sealSnapshot(version uint64, at Mark, state []byte) []byte {
	b := make([]byte, 0, snapshotHeader+len(state)+sha256.Size)
	b = append(b, snapshotMagic...)
	b = binary.BigEndian.AppendUint64(b, version)
	b = binary.BigEndian.AppendUint64(b, at.Number)
	b = append(b, at.Hash[:]...)
	b = append(b, state...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func openSnapshot(b []byte) (version uint64, at Mark, state []byte, ok bool) {
	end := len(b) - sha256.Size
	if end < snapshotHeader || string(b[:8]) != snapshotMagic || sha256.Sum256(b[:end]) != [32]byte(b[end:]) {
		return 0, Mark{}, nil, false
	}
	at.Number = binary.BigEndian.Uint64(b[16:])
	copy(at.Hash[:], b[24:])
	return binary.BigEndian.Uint64(b[8:]), at, b[snapshotHeader:end:end], true
}
