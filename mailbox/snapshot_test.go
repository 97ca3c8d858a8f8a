package mailbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"testing"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

func TestRestoredStateExpiresInSameOrder(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{})
	for n, at := range []capabilities.Time{10, 50, 20, 60, 70, 30, 40, 5, 6, 7} {
		v.Must("fae", mailbox.RequestForm{To: "HOST", Description: fmt.Sprint(n), Fields: text, Deadline: at})
	}
	v.Must("fae", mailbox.CancelForm{Form: capabilities.FormNumber(1)})
	v.States["fae"].Summary() // drops the deadlines of ended forms
	restored, err := mailbox.Restore(v.States["fae"].ID, []byte(v.Snapshot("fae")))
	if err != nil {
		t.Fatal(err)
	}
	order := func(s *mailbox.State) (ids []string) {
		evs, _ := s.Decide(mailbox.ExpireForms{}, 1000, v.NewID)
		for _, e := range evs {
			m, err := s.Mail.FindFormID(e.(*events.FormCancelled).Form)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, fmt.Sprint(m.Number))
		}
		return ids
	}
	if live, again := order(v.States["fae"]), order(restored); !slices.Equal(live, again) {
		t.Errorf("live %v, restored %v", live, again)
	}
}

// TestOverlongSnapshotListsAllocateLittle overwrites every position of a snapshot with the head of a list of a million.
func TestOverlongSnapshotListsAllocateLittle(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{})
	v.Must("fae", mailbox.RequestForm{To: "HOST", Description: "one", Fields: text})
	encoded := []byte(v.Snapshot("fae"))
	var before, after runtime.MemStats
	for i := range len(encoded) - 5 {
		claims := slices.Clone(encoded)
		copy(claims[i:], "\xdd\x00\x0f\x42\x40")
		runtime.ReadMemStats(&before)
		_, err := mailbox.Restore(v.States["fae"].ID, claims)
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4<<20 {
			t.Errorf("at byte %d, Restore allocates %d KiB: %v", i, allocated>>10, err)
		}
	}
}

// TestSnapshotOfFormat10IsReadForEver restores a file of the format. The checkpoints of archives have such states, and
// the events that they stand for may be elsewhere. The file is written once, and never again.
func TestSnapshotOfFormat10IsReadForEver(t *testing.T) {
	const path = "testdata/snapshot-10"
	v := newThreeAgents(t, capabilities.Facet{})
	v.Must("fae", mailbox.RequestForm{To: "HOST", Description: "open", Fields: text, Deadline: 50})
	v.Must("fae", mailbox.RequestForm{To: "HOST", Description: "cancelled", Fields: text})
	v.Must("fae", mailbox.CancelForm{Form: capabilities.FormNumber(2)})
	v.Must("fae", mailbox.BindName{Name: "n", Value: "7"})
	encoded, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("PARLEY_WRITE_GOLDEN") != "" {
		encoded = []byte(v.Snapshot("fae"))
		err = os.WriteFile(path, encoded, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	live := v.States["fae"]
	restored, err := mailbox.Restore(live.ID, encoded)
	if err != nil {
		t.Fatal(err)
	}
	want, err := live.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	got, err := restored.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the restored state is another than the one that was written")
	}
	if restored.Version != live.Version || restored.Summary() != live.Summary() {
		t.Errorf("version %d, %+v; want %d, %+v", restored.Version, restored.Summary(), live.Version, live.Summary())
	}
}
