package persistence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/events"
	"parley/persistence/archive"
	"parley/persistence/disktest"
)

// archiveState is what a crash may leave of an archive that is being made.
type archiveState int

const (
	unnamedSegment archiveState = iota
	unnamedCheckpoint
	unknownArchive
	recordedArchive
	uncutJournal
	halfCutJournal
	cutJournal
	archiveStates int = iota
)

var archiveStateNames = [archiveStates]string{
	"a segment that is in no manifest",
	"a checkpoint that is in no manifest",
	"an archive that the journal does not record",
	"an archive that the journal records, and its manifest does not",
	"a recorded archive, and all its commits in the journal",
	"a recorded archive, and some of its files in the journal",
	"a journal without what is archived, and an older checkpoint",
}

// String returns the state in words.
func (s archiveState) String() string { return archiveStateNames[s] }

// archiveStatesOf returns the states that a state folder shows.
func archiveStatesOf(t *testing.T, o Options) (found []archiveState) {
	t.Helper()
	folder := filepath.Join(o.Folder, archiveFolder)
	m, err := archive.ReadManifest(folder)
	first, frames := framesIn(t, &o)
	if err != nil || len(frames) == 0 {
		return nil // it has none of these for sure
	}
	if m == nil {
		m = &archive.Manifest{}
	}
	end := m.End.Number
	files, _ := os.ReadDir(folder) // there may be none
	checkpoints := 0
	for _, f := range files {
		switch first, _, segment := archive.ParseName(f.Name()); {
		case segment && first > end:
			found = append(found, unnamedSegment)
		case archive.IsCheckpoint(f.Name()) && f.Name() > archive.CheckpointName(end):
			found = append(found, unnamedCheckpoint)
		case archive.IsCheckpoint(f.Name()):
			checkpoints++
		}
	}
	if end == 0 {
		return found
	}
	switch {
	case !m.Recorded && isRecorded(frames, m):
		found = append(found, recordedArchive)
	case !m.Recorded:
		found = append(found, unknownArchive)
	case first == m.After.Number+1:
		found = append(found, uncutJournal)
	case first > m.After.Number && first <= end:
		found = append(found, halfCutJournal)
	case first == end+1 && checkpoints > 1:
		found = append(found, cutJournal)
	}
	return found
}

// isRecorded reports whether the journal has the record of an archive.
func isRecorded(frames map[uint64][]byte, m *archive.Manifest) bool {
	r := records{by: map[Mark]*events.JournalArchived{}}
	for number, frame := range frames {
		_ = r.read(number, frame) // a torn end has no record
	}
	return r.by[m.End] != nil
}

// framesIn returns the frames in a stopped journal's blocks that were not removed, and the number of the first.
func framesIn(t *testing.T, o *Options) (first uint64, frames map[uint64][]byte) {
	t.Helper()
	blocks, err := blocksIn(blockFolder(o))
	if err != nil {
		t.Fatal(err)
	}
	frames = map[uint64][]byte{}
	for _, b := range blocks {
		_, err := eachRecord(b, func(r record) error {
			if r.isRemoved() {
				delete(frames, r.number())
				return nil
			}
			at := recordHead + int(binary.LittleEndian.Uint16(r[20:]))
			at += 4 + int(binary.LittleEndian.Uint32(r[at:])) // a commit has headers
			frames[r.number()] = bytes.Clone(r[at : len(r)-recordHash])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(frames) > 0 {
		first = slices.Min(slices.Collect(maps.Keys(frames)))
	}
	return first, frames
}

// step notes the position of the disk at a step of archiving.
func (p *powerRun) step(step string) error {
	now := p.disk.Position()
	if step == "after "+StepCut { // the server removes one file after another
		for at := p.archiving[len(p.archiving)-1] + 1; at < now; at++ {
			p.archiving = append(p.archiving, at)
		}
	}
	if strings.Contains(step, " archive ") {
		p.archiving = append(p.archiving, now)
	}
	return nil
}

// cutArchives kills the process, and then the power, at steps of archiving until each state of an archive was left and
// checked. It fails if no step leaves a state.
func (p *powerRun) cutArchives(t *testing.T, record *disktest.Record) {
	met := [archiveStates]int{}
	for nth, at := range p.archiving {
		left := t.TempDir()
		if err := record.Kill(at, left); err != nil {
			t.Fatal(err)
		}
		o := p.o
		o.Folder = filepath.Join(left, "state")
		states := archiveStatesOf(t, o)
		if !slices.ContainsFunc(states, func(s archiveState) bool { return met[s] == 0 }) {
			continue
		}
		for _, s := range states {
			met[s]++
		}
		p.check(t, fmt.Sprint("a kill that leaves ", states), at, left)
		left = t.TempDir()
		how, err := record.Cut(at, rand.New(rand.NewPCG(29, uint64(nth))), left)
		if err != nil {
			t.Fatal(err)
		}
		p.check(t, fmt.Sprintf("a power failure at %v, which keeps %s", states, how), at, left)
	}
	for s, n := range met {
		if n == 0 {
			t.Errorf("no crash leaves %s", archiveState(s))
		}
	}
}
