package actors

import (
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// TestArchivedAgentsGetNoMail sends an archived agent mail of each kind, and names it as one who is to get mail.
func TestArchivedAgentsGetNoMail(t *testing.T) {
	t.Parallel()
	a := openNode(t, t.TempDir())
	host := a.Host()
	make := func(name string) *Agent {
		t.Helper()
		made, err := host.Make(t.Context(), NewAgent{Kind: events.Guest, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	old, fae := make("old"), make("fae")
	field := []events.Field{{Name: "a"}}
	asked, err := fae.Ask(t.Context(), parley.Form{To: "@host", Description: "before", Fields: field})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Send(t.Context(), "@host", "hello"); err != nil {
		t.Fatal(err)
	}
	inbox, err := host.Mail().Page(t.Context(), view.MessageFilter{}, 0, 10)
	if err != nil || len(inbox.Messages) != 2 {
		t.Fatalf("%v, %v", inbox, err)
	}
	if err := host.Agents().Archive(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	for what, send := range map[string]func() error{
		"ask": func() error {
			_, err := host.Ask(t.Context(), parley.Form{To: "old", Description: "d", Fields: field})
			return err
		},
		"send": func() error { _, err := host.Send(t.Context(), "old", "t"); return err },
		"approve": func() error {
			_, err := host.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "t", Input: "{}"}, To: "old"})
			return err
		},
		"forward": func() error { return host.Forward(t.Context(), capabilities.FormID(asked.Form), "old") },
		"reply": func() error {
			_, err := host.Reply(t.Context(), capabilities.FormID(inbox.Messages[1].MessageID), "t")
			return err
		},
		"member": func() error {
			_, err := host.SetMember(t.Context(), mailbox.SetMember{Agent: "old", In: true})
			return err
		},
		"delegate": func() error {
			_, err := host.SetAway(t.Context(), mailbox.SetAway{Until: a.now().Add(1e12), Delegate: "old"})
			return err
		},
	} {
		if err := send(); parley.CodeOf(err) != parley.AgentArchived {
			t.Errorf("%s: %v", what, err)
		}
	}
}
