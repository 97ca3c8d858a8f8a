package mailbox_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

func TestRestoredStateExpiresInSameOrder(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{})
	for n, at := range []capabilities.Time{10, 50, 20, 60, 70, 30, 40, 5, 6, 7} {
		v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: fmt.Sprint(n), Fields: text, Deadline: at}})
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
	v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "one", Fields: text}})
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

// TestNewerSnapshotIsRefused restores snapshots of a later layout, whole and as heads.
func TestNewerSnapshotIsRefused(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{})
	s := v.States["fae"]
	parts, err := s.Part(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for what, encoded := range map[string][]byte{"whole": []byte(v.Snapshot("fae")), "a head": parts.Head} {
		later := slices.Clone(encoded)
		later[3] = 2 // behind the length of an array of 16 or more
		if e := parley.AsError(errOf(mailbox.Restore(s.ID, later))); e.Code != parley.NewerLog || !strings.Contains(e.Message, "format 2") || e.Hint == "" {
			t.Errorf("%s: %v", what, e)
		}
		later[3] = 0
		if _, err := mailbox.Restore(s.ID, later); err == nil || parley.CodeOf(err) == parley.NewerLog {
			t.Errorf("%s of format 0: %v", what, err)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }
