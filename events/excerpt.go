package events

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// Excerpt is a commit of which some sections are shown, and of the others the hashes alone. It has what the hash of the
// commit is made of, so that who knows that hash can check what is shown, and learns nothing of the rest.
type Excerpt struct {
	Head   []byte          `json:"head"`            // the magic number and head of the frame
	Blind  Hash            `json:"blind"`           // the SHA-256 of the random bytes
	Hashes []Hash          `json:"hashes"`          // of all sections, in their order
	Shown  []ExcerptedPart `json:"shown,omitempty"` // ascending by Index
}

// ExcerptedPart is a section that an Excerpt shows.
type ExcerptedPart struct {
	Index   int    `json:"index"` // among all sections, from 0
	Mask    Hash   `json:"mask"`  // what goes before the content into the hash
	Content []byte `json:"content"`
}

// ErrExcerpt reports an excerpt that is of no commit.
var ErrExcerpt = errors.New("no excerpt of a commit")

// Extract makes an excerpt of a frame that shows those of its sections that show picks. It fails as DecodeCommit does.
func Extract(frame []byte, show func(nth int, s *Section) bool) (*Excerpt, error) {
	c, _, err := DecodeCommit(frame)
	if err != nil {
		return nil, err
	}
	head, blind, sections, n, _, err := split(frame[:len(frame)-sha256.Size])
	if err != nil {
		return nil, err
	}
	x := &Excerpt{Head: bytes.Clone(head), Blind: sha256.Sum256(blind[:]), Hashes: make([]Hash, n)}
	for i := range n {
		var content []byte
		content, sections, _ = nextSection(sections)
		mask := Hash(blind.of(i))
		x.Hashes[i] = hashOfSection(mask, content)
		if show(i, &c.Sections[i]) {
			x.Shown = append(x.Shown, ExcerptedPart{Index: i, Mask: mask, Content: bytes.Clone(content)})
		}
	}
	return x, nil
}

func hashOfSection(mask Hash, content []byte) (h Hash) {
	d := sha256.New()
	d.Write(mask[:])
	d.Write(content)
	d.Sum(h[:0])
	return h
}

// Decode decodes the excerpt, and returns its commit with the sections that it shows, in the order of Shown, and the hash of the
// whole commit. The bodies are slices of the excerpt. It fails with ErrExcerpt, and with an *UnknownError for a newer format.
func (x *Excerpt) Decode() (*Commit, Hash, error) {
	if len(x.Head) < headStart || string(x.Head[:len(frameMagic)]) != frameMagic || headStart+int(x.Head[headStart-1]) != len(x.Head) {
		return nil, Hash{}, fmt.Errorf("%w: its head is none", ErrExcerpt)
	}
	c, err := decodeHead(x.Head)
	if err != nil {
		return nil, Hash{}, err
	}
	text := append(bytes.Clone(x.Head), x.Blind[:]...)
	for _, h := range x.Hashes {
		text = append(text, h[:]...)
	}
	rd := bytes.NewReader(nil)
	dec := msgpack.NewDecoder(rd)
	last := -1
	for _, part := range x.Shown {
		if part.Index <= last || part.Index >= len(x.Hashes) {
			return nil, Hash{}, fmt.Errorf("%w: section %d of %d is out of order", ErrExcerpt, part.Index, len(x.Hashes))
		}
		last = part.Index
		if hashOfSection(part.Mask, part.Content) != x.Hashes[part.Index] {
			return nil, Hash{}, fmt.Errorf("%w: the hash of section %d is another", ErrExcerpt, part.Index)
		}
		var s Section
		rd.Reset(part.Content)
		if err := s.decode(dec, c.Node); err != nil {
			return nil, Hash{}, fmt.Errorf("%w: section %d: %w", ErrExcerpt, part.Index, err)
		}
		s.Body = part.Content[len(part.Content)-rd.Len():]
		c.Sections = append(c.Sections, s)
	}
	return c, sha256.Sum256(text), nil
}
