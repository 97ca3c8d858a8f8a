package main

import (
	"strings"
	"testing"

	"parley/actors/view"
)

func TestDoctorReportsDiscardedSnapshots(t *testing.T) {
	t.Parallel()
	if found := snapshotFindings([]view.ActorState{{Name: "journal"}, {Name: "scheduler"}}); len(found) != 0 {
		t.Errorf("without any: %+v", found)
	}
	found := snapshotFindings([]view.ActorState{{Name: "journal", Snapshots: 2}, {Name: "scheduler"}})
	if len(found) != 1 || found[0].Result != dubious || found[0].Check != "snapshots" || !strings.HasPrefix(found[0].Detail, "2 unreadable ") {
		t.Errorf("%+v", found)
	}
}
