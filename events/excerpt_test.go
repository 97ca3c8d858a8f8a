package events

import (
	"reflect"
	"testing"
)

// TestExcerptIsOfItsCommit shows one section of a commit, and gets the hash of the whole.
func TestExcerptIsOfItsCommit(t *testing.T) {
	whole := testCommit(t)
	frame, hash, err := whole.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range [][]int{nil, {0}, {1}, {0, 1}} {
		x, err := Extract(frame, func(nth int, s *Section) bool {
			if s.Mailbox != whole.Sections[nth].Mailbox {
				t.Errorf("section %d is shown as that of %s", nth, s.Mailbox)
			}
			for _, i := range shown {
				if i == nth {
					return true
				}
			}
			return false
		})
		if err != nil {
			t.Fatal(err)
		}
		c, got, err := x.Decode()
		if err != nil || got != hash {
			t.Fatalf("%v: %v, %v; want %v", shown, got, err, hash)
		}
		if c.Number != whole.Number || c.Prev != whole.Prev || c.At != whole.At || len(c.Sections) != len(shown) {
			t.Errorf("%v: %+v", shown, c)
		}
		for n, i := range shown {
			if !reflect.DeepEqual(c.Sections[n], whole.Sections[i]) {
				t.Errorf("section %d: %+v, want %+v", i, c.Sections[n], whole.Sections[i])
			}
		}
	}
}

// TestChangedExcerptIsAnother changes each byte of an excerpt. It is refused, or has another hash.
func TestChangedExcerptIsAnother(t *testing.T) {
	frame, hash, err := testCommit(t).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Extract(frame, func(nth int, _ *Section) bool { return nth == 0 })
	if err != nil {
		t.Fatal(err)
	}
	part := &x.Shown[0]
	for name, bytes := range map[string][]byte{
		"head": x.Head, "blind": x.Blind[:], "first hash": x.Hashes[0][:], "second hash": x.Hashes[1][:], "mask": part.Mask[:], "content": part.Content,
	} {
		for i := range bytes {
			for bit := range 8 {
				bytes[i] ^= 1 << bit
				if _, got, err := x.Decode(); err == nil && got == hash {
					t.Fatalf("byte %d of the %s was changed, and nobody noticed", i, name)
				}
				bytes[i] ^= 1 << bit
			}
		}
	}
	for name, change := range map[string]func(x *Excerpt){
		"a section more":     func(x *Excerpt) { x.Hashes = append(x.Hashes, Hash{}) },
		"a section less":     func(x *Excerpt) { x.Hashes = x.Hashes[:1] },
		"none":               func(x *Excerpt) { x.Hashes = nil },
		"another place":      func(x *Excerpt) { x.Shown = []ExcerptedPart{{1, part.Mask, part.Content}} },
		"a place before all": func(x *Excerpt) { x.Shown = []ExcerptedPart{{-1, part.Mask, part.Content}} },
		"twice":              func(x *Excerpt) { x.Shown = []ExcerptedPart{*part, *part} },
		"a longer head":      func(x *Excerpt) { x.Head = append(x.Head[:len(x.Head):len(x.Head)], 0) },
		"no head":            func(x *Excerpt) { x.Head = nil },
	} {
		other := *x
		change(&other)
		if _, got, err := other.Decode(); err == nil && got == hash {
			t.Errorf("%s: nobody noticed", name)
		}
	}
}
