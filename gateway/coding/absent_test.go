package coding

import (
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestSenderKnowsThatTheSessionHasEnded sends mail to a session that has ended: its sender is told at once and by the receipts, with
// the agent of the folder, until the session is resumed. Once it is archived, nobody waits for it to be shown.
func TestSenderKnowsThatTheSessionHasEnded(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	agent, name := f.enter("a", f.self, api.MomentStart, "startup")
	host := f.node.Host()
	send := func() view.Sent {
		t.Helper()
		sent, err := actors.Post(t.Context(), host, mailbox.PostMessage{To: name, Post: parley.Post{Text: "hello"}})
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	absent := func(ref capabilities.FormRef) *view.Absent {
		t.Helper()
		m, err := host.Message(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range m.Receipts {
			if r.By == agent {
				return r.Absent
			}
		}
		return nil
	}
	if sent := send(); len(sent.Absent) > 0 {
		t.Errorf("of a living session it is said: %+v", sent.Absent)
	}
	if err := f.all.End(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	sent := send()
	if len(sent.Absent) != 1 || sent.Absent[0].By != agent || sent.Absent[0].Absent.Archived || sent.Absent[0].Absent.Address != f.address.ID() || sent.Absent[0].Absent.AddressName != "shop" {
		t.Errorf("%+v", sent.Absent)
	}
	ref := capabilities.FormID(sent.Message)
	if got := absent(ref); got == nil || !strings.Contains(got.Words(func(_ capabilities.ID, name string) string { return name }), "waits until it is resumed; the agent of its folder is shop") {
		t.Errorf("%+v", got)
	}
	f.enter("a", f.self, api.MomentStart, "resume")
	if got := absent(ref); got != nil {
		t.Errorf("after a resume: %+v", got)
	}
	if err := f.all.End(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "it is archived", func() bool {
		f.all.archiveEnded(t.Context(), time.Now().Add(time.Minute))
		all, err := actors.SessionsOf(f.address).List(t.Context())
		return err == nil && len(all) == 0
	})
	if got := absent(ref); got == nil || !got.Archived {
		t.Errorf("archived: %+v", got)
	}
	if _, err := host.Mail().AwaitState(t.Context(), ref, events.Shown, false); parley.CodeOf(err) != parley.AgentArchived {
		t.Errorf("a wait for what will not be: %v", err)
	}
	if o, err := host.Mail().AwaitState(t.Context(), ref, events.Delivered, false); err != nil || o.Status != view.StatusOf(events.Delivered) {
		t.Errorf("%+v, %v", o, err)
	}
}
