package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
)

// Manifest lists the files of an archive. It never changes: a new one takes its place.
type Manifest struct {
	Node            capabilities.NodeID
	After           Mark        // the last commit of the archive before
	End             Mark        // the last archived commit
	Recorded        bool        // whether the record of the archive is durable in the journal
	Checkpoint      events.Hash // its digest
	CheckpointBytes int64       // of its file
	Segments        []Segment   // from the first commit to End
	Places          []string    // of the segments, where their files were moved to; "" and none mean nowhere
}

// The manifest is kept twice, so that the damage of one file is repaired from the other. It is a magic, the node's key,
// the marks, a byte and the checkpoint. The number of segments, the segments and a checksum follow. Numbers are
// big-endian. One with places has the second magic, and behind the segments the place of each after its length.
const (
	manifestMagic   = "PLYARCH\x01"
	placesMagic     = "PLYARCH\x02"
	maxPlace        = 4 << 10
	manifestHeader  = len(manifestMagic) + 32 + 2*markSize + 1 + 32 + 8 + 4
	markSize        = 8 + 32
	manifestSegment = markSize + 8 + 8 + 8 + 32
	maxManifest     = 64 << 20
)

var manifestNames = [...]string{"manifest", "manifest.copy"}

func appendMark(b []byte, m Mark) []byte {
	b = binary.BigEndian.AppendUint64(b, m.Number)
	return append(b, m.Hash[:]...)
}

func markAt(b []byte) Mark {
	return Mark{Number: binary.BigEndian.Uint64(b), Hash: events.Hash(b[8:markSize])}
}

// Encode returns the bytes that DecodeManifest reads.
func (m *Manifest) Encode() []byte {
	be := binary.BigEndian
	hasPlaces := slices.ContainsFunc(m.Places, func(place string) bool { return place != "" })
	magic := manifestMagic
	if hasPlaces {
		magic = placesMagic
	}
	b := append(make([]byte, 0, manifestHeader+len(m.Segments)*manifestSegment+sha256.Size), magic...)
	b = append(b, m.Node.Bytes()...)
	b = appendMark(appendMark(b, m.After), m.End)
	recorded := byte(0)
	if m.Recorded {
		recorded = 1
	}
	b = append(b, recorded)
	b = append(b, m.Checkpoint[:]...)
	b = be.AppendUint64(b, uint64(m.CheckpointBytes))
	b = be.AppendUint32(b, uint32(len(m.Segments)))
	for _, s := range m.Segments {
		b = appendMark(b, s.End)
		b = be.AppendUint64(b, uint64(s.From))
		b = be.AppendUint64(b, uint64(s.To))
		b = be.AppendUint64(b, uint64(s.Bytes))
		b = append(b, s.Digest[:]...)
	}
	for i := range m.Segments {
		if hasPlaces {
			place := m.PlaceOf(i)
			b = append(be.AppendUint16(b, uint16(len(place))), place...)
		}
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// DecodeManifest reads the result of Encode. It fails with ErrDamaged for anything else.
func DecodeManifest(b []byte) (*Manifest, error) {
	end := len(b) - sha256.Size
	if end < manifestHeader || sha256.Sum256(b[:end]) != [32]byte(b[end:]) {
		return nil, damaged("the manifest is not whole")
	}
	if err := CheckFormat(b, placesMagic); err != nil {
		return nil, err
	}
	magic := string(b[:len(manifestMagic)])
	if magic != manifestMagic && magic != placesMagic {
		return nil, damaged("the manifest is of another program")
	}
	be := binary.BigEndian
	m := &Manifest{Node: capabilities.NodeOf([32]byte(b[len(manifestMagic):]))}
	at := b[len(manifestMagic)+32:]
	if at[2*markSize] > 1 {
		return nil, damaged("the manifest is of another program")
	}
	m.After, m.End, m.Recorded = markAt(at), markAt(at[markSize:]), at[2*markSize] == 1
	at = at[2*markSize+1:]
	m.Checkpoint, m.CheckpointBytes = events.Hash(at[:32]), int64(be.Uint64(at[32:]))
	n := uint64(be.Uint32(at[40:]))
	rest := b[manifestHeader:end]
	if n == 0 || n*manifestSegment > uint64(len(rest)) || magic == manifestMagic && n*manifestSegment < uint64(len(rest)) {
		return nil, damaged("the manifest has %d segments in %d bytes", n, len(rest))
	}
	if err := m.decodeSegments(rest[:n*manifestSegment]); err != nil {
		return nil, err
	}
	if magic == placesMagic {
		return m, m.decodePlaces(rest[n*manifestSegment:])
	}
	return m, nil
}

// decodeSegments reads the segments, and checks that they are those of the manifest's marks.
func (m *Manifest) decodeSegments(rest []byte) error {
	be := binary.BigEndian
	var last Mark
	after := m.After.Number == 0
	for ; len(rest) > 0; rest = rest[manifestSegment:] {
		s := Segment{
			First: last.Number + 1, After: last, End: markAt(rest),
			From: capabilities.Time(be.Uint64(rest[markSize:])), To: capabilities.Time(be.Uint64(rest[markSize+8:])),
			Bytes: int64(be.Uint64(rest[markSize+16:])), Digest: events.Hash(rest[markSize+24:]),
		}
		s.Last = s.End.Number
		if s.Last < s.First || s.Bytes <= 0 || s.From > s.To {
			return damaged("the manifest's segment from commit %d", s.First)
		}
		last = s.End
		after = after || last == m.After
		m.Segments = append(m.Segments, s)
	}
	if last != m.End || !after || m.CheckpointBytes <= 0 {
		return damaged("the manifest's segments end at commit %d", last.Number)
	}
	return nil
}

// decodePlaces reads the places of the segments.
func (m *Manifest) decodePlaces(rest []byte) error {
	for range m.Segments {
		if len(rest) < 2 || int(binary.BigEndian.Uint16(rest)) > min(len(rest)-2, maxPlace) {
			return damaged("the manifest's places are cut")
		}
		n := 2 + int(binary.BigEndian.Uint16(rest))
		m.Places, rest = append(m.Places, string(rest[2:n])), rest[n:]
	}
	if len(rest) > 0 || !slices.ContainsFunc(m.Places, func(place string) bool { return place != "" }) {
		return damaged("the manifest has %d bytes too many", len(rest))
	}
	return nil
}

// PlaceOf returns the place to which the file of a segment was moved; "" if it was moved nowhere.
func (m *Manifest) PlaceOf(i int) string {
	if i < len(m.Places) {
		return m.Places[i]
	}
	return ""
}

// WithPlace returns the manifest with another place of a segment. It refuses one that is too long.
func (m *Manifest) WithPlace(i int, place string) (*Manifest, error) {
	if len(place) > maxPlace {
		return nil, fmt.Errorf("a place has %d bytes", len(place))
	}
	c := *m
	c.Places = make([]string, len(m.Segments))
	copy(c.Places, m.Places)
	c.Places[i] = place
	return &c, nil
}

// WriteManifest stores a manifest in a folder. It is on disk, or the one before is.
func WriteManifest(folder string, m *Manifest) error {
	b := m.Encode()
	for _, name := range manifestNames {
		if err := WriteWhole(filepath.Join(folder, name), b); err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
	}
	return nil
}

// WriteWhole stores a file that is there whole, on disk, or as it was before.
func WriteWhole(path string, b []byte) error {
	f, err := regular.Create(path + temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// ReadManifest reads the manifest of a folder: nil if there is none. It fails with ErrDamaged if neither of its two files
// is whole.
func ReadManifest(folder string) (*Manifest, error) {
	var newest *Manifest
	var bad error
	for _, name := range manifestNames {
		b, err := readBounded(filepath.Join(folder, name), maxManifest)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var m *Manifest
		if err == nil {
			m, err = DecodeManifest(b)
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		if err != nil {
			bad = err
			continue
		}
		if newest == nil || m.End.Number > newest.End.Number || m.End == newest.End && m.Recorded {
			newest = m
		}
	}
	if newest == nil {
		return nil, bad
	}
	return newest, nil
}

// IsKept reports whether both files of a folder's manifest have a manifest.
func IsKept(folder string, m *Manifest) bool {
	want := m.Encode()
	for _, name := range manifestNames {
		if b, err := readBounded(filepath.Join(folder, name), maxManifest); err != nil || !bytes.Equal(b, want) {
			return false
		}
	}
	return true
}

// readBounded reads a file of at most a number of bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := regular.Open(path, os.O_RDONLY)
	if errors.Is(err, regular.ErrNot) {
		return nil, damaged("%s is not a regular file", filepath.Base(path))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, damaged("%s has more than %d bytes", filepath.Base(path), most)
	}
	return b, err
}

// Segment returns the place of the segment with a commit.
func (m *Manifest) Segment(number uint64) (int, bool) {
	if number == 0 || number > m.End.Number {
		return 0, false
	}
	low, high := 0, len(m.Segments)-1
	for low < high {
		if mid := (low + high) / 2; m.Segments[mid].Last < number {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, true
}
