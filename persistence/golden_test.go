package persistence

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"parley/events"
)

// TestGoldenJournalOpens opens a journal with the commits of the golden log, and reads each mailbox. From the first
// release on the log is kept for ever and never written again: see package events.
func TestGoldenJournalOpens(t *testing.T) {
	text, err := os.ReadFile("../events/testdata/golden/journal.v1.txt")
	if err != nil {
		t.Fatal(err)
	}
	var commits []*frame
	for part := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		f := &frame{}
		if f.bytes, err = hex.DecodeString(strings.ReplaceAll(part, "\n", "")); err != nil {
			t.Fatal(err)
		}
		c, hash, err := events.DecodeCommit(f.bytes)
		if err != nil {
			t.Fatal(err)
		}
		f.Commit, f.hash = *c, hash
		commits = append(commits, f)
	}
	o := testOptions(t)
	o.Node = commits[0].Node
	j := open(t, o)
	for _, f := range commits {
		if err := j.connection().publish(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	closeJournal(t, j)
	j = open(t, o)
	if last := commits[len(commits)-1]; j.lastCommit().Number != last.Number || j.lastCommit().Hash != last.hash {
		t.Errorf("it ends with %v", j.lastCommit())
	}
	for _, f := range commits {
		for _, s := range f.Sections {
			l, err := j.Load(t.Context(), s.Mailbox)
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Events) != int(s.Count) {
				t.Errorf("mailbox %s has %d events, want %d", s.Mailbox, len(l.Events), s.Count)
			}
		}
	}
}
