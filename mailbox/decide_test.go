package mailbox_test

import (
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestChecksumSeesUnexportedFields checks the checksums by which the harness finds that Decide changes a state.
func TestChecksumSeesUnexportedFields(t *testing.T) {
	id := capabilities.ID{ULID: [16]byte{1}, Node: capabilities.NodeOf([32]byte{2})}
	a, b := mailbox.New(id), mailbox.New(id)
	if mailboxtest.Checksum(a) != mailboxtest.Checksum(b) {
		t.Fatal("equal states have different sums")
	}
	b.Grants.SetRoots(map[capabilities.ID]capabilities.ID{id: id})
	if mailboxtest.Checksum(a) == mailboxtest.Checksum(b) {
		t.Fatal("different states have equal sums")
	}
}

func TestDecideByIDChangesNothing(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d", Fields: []events.Field{{Name: "f"}}}})
	id := v.Messages("fae")[0].ID()
	restored, err := mailbox.Restore(v.States["fae"].ID, []byte(v.Snapshot("fae"))) // no lookup has filled a cache
	if err != nil {
		t.Fatal(err)
	}
	v.States["fae"] = restored
	for _, c := range []mailbox.Command{mailbox.CancelForm{Form: capabilities.FormID(id)}, mailbox.DismissMessage{Message: capabilities.FormID(id)}, mailbox.AdoptName{Message: capabilities.FormID(id), Edge: "@from", Name: "me"}} {
		v.Must("fae", c)
	}
}
