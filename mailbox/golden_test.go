package mailbox_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// goldenMailbox is the log of a mailbox, and its snapshot, as the first release writes them.
type goldenMailbox struct {
	ID       capabilities.ID
	Count    int
	Log      []byte
	Snapshot []byte
}

// TestGoldenLogAndSnapshotAreRead reads the logs and snapshots of mailboxes that together have most kinds of events. From
// the first release on the file is kept for ever and never written again: each release reads the logs of all before it,
// and the snapshots too, since the checkpoints of archives have such, and the events that they stand for may be elsewhere.
// A later format gets a file of its own. A file that is missing is written from the transcripts with PARLEY_WRITE_GOLDEN.
func TestGoldenLogAndSnapshotAreRead(t *testing.T) {
	const path = "testdata/golden-1"
	encoded, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("PARLEY_WRITE_GOLDEN") != "" {
		if encoded, err = msgpack.Marshal(goldenMailboxes(t)); err == nil {
			err = os.WriteFile(path, encoded, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var golden []goldenMailbox
	if err := msgpack.Unmarshal(encoded, &golden); err != nil || len(golden) < 10 {
		t.Fatal(len(golden), err)
	}
	for _, g := range golden {
		log, err := events.Decode(g.Log, g.Count)
		if err != nil {
			t.Fatalf("the log of %s: %v", g.ID, err)
		}
		folded := mailbox.New(g.ID)
		folded.Mail.UseOld(map[uint64]*mailbox.Message{})
		for _, r := range log {
			if err := folded.Apply(r); err != nil {
				t.Fatalf("%s: %s: %v", g.ID, events.Name(r.Event), err)
			}
		}
		restored, err := mailbox.Restore(g.ID, g.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		want, err := folded.Snapshot()
		got, err2 := restored.Snapshot()
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(got, want) || restored.Summary() != folded.Summary() || restored.Version != uint64(g.Count) {
			t.Errorf("the snapshot of %s is another state than its log: %v", g.ID, err)
		}
	}
}

// goldenMailboxes returns those mailboxes of the transcripts that have a kind of event which none before has.
func goldenMailboxes(t *testing.T) (golden []goldenMailbox) {
	t.Helper()
	paths, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, path := range paths {
		v := newTranscript(t)
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string { return v.RunCommand(d) })
		for _, agent := range v.Agents {
			fresh := false
			for _, r := range v.Logs[agent] {
				fresh = fresh || !seen[events.Name(r.Event)]
				seen[events.Name(r.Event)] = true
			}
			if !fresh {
				continue
			}
			log, err := events.Append(nil, v.Logs[agent]...)
			if err != nil {
				t.Fatal(err)
			}
			golden = append(golden, goldenMailbox{v.States[agent].ID, len(v.Logs[agent]), log, []byte(v.Snapshot(agent))})
		}
	}
	t.Logf("%d mailboxes, %d kinds of events", len(golden), len(seen))
	return golden
}
