package persistence

import (
	"fmt"
	"math"
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
	in, damage := inspect(blockFolder(&o))
	if err != nil || damage != nil || len(in.blocks) == 0 {
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
	first := in.blocks[0].first
	switch {
	case !m.Recorded && isRecorded(&o, first, m):
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
func isRecorded(o *Options, first uint64, m *archive.Manifest) bool {
	r := records{by: map[Mark]*events.JournalArchived{}}
	_ = readFrames(o, first, math.MaxUint64, r.read) // a torn end has no record
	return r.by[m.End] != nil
}

// step notes the position of the disk at a step of archiving.
func (p *powerRun) step(step string) error {
	if strings.Contains(step, " archive ") {
		p.archiving = append(p.archiving, p.disk.Position())
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
