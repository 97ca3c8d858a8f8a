package archive

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/capabilities"
	"parley/events"
)

func TestSpillReturnsTheSectionsOfAMailbox(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spill")
	s, err := CreateSpill(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	id := func(n byte) capabilities.ID { return capabilities.ID{ULID: [16]byte{n}} }
	want := map[byte][]string{}
	for number := range uint64(500) {
		c := &events.Commit{Number: number + 1}
		for n := range byte(5) {
			body := make([]byte, random.IntN(200))
			for range random.IntN(3) {
				section := events.Section{Mailbox: id(n), First: 7 * number, Count: uint32(random.IntN(3)), Body: body}
				if c.Sections = append(c.Sections, section); section.Count > 0 {
					want[n] = append(want[n], fmt.Sprint(c.Number, section))
				}
			}
		}
		if err := s.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	for n := range byte(6) {
		var got []string
		err := s.Each(id(n), func(commit uint64, section events.Section) error {
			got = append(got, fmt.Sprint(commit, section))
			return nil
		})
		if err != nil || !slices.Equal(got, want[n]) {
			t.Errorf("mailbox %d has %d sections, want %d; %v", n, len(got), len(want[n]), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}
}
