package actors

import (
	"reflect"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/persistence"
)

// TestNoteHasTheStatus encodes and decodes statuses. No note that is cut short is decoded, and none panics.
func TestNoteHasTheStatus(t *testing.T) {
	node, other := capabilities.NodeOf([32]byte{31: 1}), capabilities.NodeOf([32]byte{31: 2})
	id := func(n byte) capabilities.ID { return capabilities.ID{ULID: ulid.ULID{15: n}, Node: node} }
	host, far := id(1), capabilities.ID{ULID: ulid.ULID{15: 9}, Node: other}
	none := []view.PendingPermission{}
	for _, want := range []view.AgentStatus{
		{ID: id(1), Node: node, Kind: "host", Status: "idle", Labels: map[string]string{}, Pending: none, Host: host, Version: 1, Created: 5, Updated: 5},
		{ID: id(2), Node: node, Kind: "guest", Status: "closed", Labels: map[string]string{"a": "b", "c": ""}, Pending: none, Host: host, Maker: host, Title: "t", Version: 7, Created: 5, Updated: 9},
		{ID: id(3), Node: node, Kind: "guest", Status: "idle", Labels: map[string]string{}, Pending: none, Host: id(2), Maker: id(2), Created: 5, Updated: 4},
		{ID: id(4), Node: node, Kind: "guest", Status: "strange", Error: "it broke", Labels: map[string]string{"x": "y"}, Host: far, Maker: far, Asks: 3,
			Pending: []view.PendingPermission{{Form: id(8), Number: 4, Permission: parley.Permission{Tool: "Bash", Input: "{}", Reason: "why", Part: "one"}, Asked: 7}},
			Cut:     []view.CutMessage{{Message: id(7), Number: 1, Text: "text", At: 3}},
			Queued:  2, Runtime: "exec", User: "fae", Wrap: []string{"nice"}, Policy: "never", Title: "ü"},
		{ID: id(6), Node: node, Kind: "guest", Status: "idle", Labels: map[string]string{}, Pending: none, Host: host, AwayFrom: 5, AwayUntil: 1 << 41},
		{ID: id(5), Node: node, Kind: "other", Status: "running", Labels: map[string]string{}, Pending: none, Host: id(5)},
	} {
		note := noteOf(want, host, want.ID == host, false)
		got, err := statusByNote(want.ID, host, persistence.Mailbox{Note: note, Summary: events.Summary{Open: uint32(want.Asks)}})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if aloneByNote(note) != (want.ID == host) {
			t.Errorf("%s is alone: %v", want.ID, aloneByNote(note))
		}
		if !mayMatch(view.AgentFilter{Statuses: []string{want.Status}}, note) {
			t.Errorf("the status %s is passed over", want.Status)
		}
		if closed := want.Status == "closed"; mayMatch(view.AgentFilter{}, note) == closed {
			t.Errorf("%s is listed, or passed over", want.Status)
		}
		for n := range note {
			if _, err := statusByNote(want.ID, host, persistence.Mailbox{Note: note[:n]}); err == nil {
				t.Errorf("%d bytes of %d were enough", n, len(note))
			}
		}
		t.Logf("%d bytes", len(note))
	}
}
