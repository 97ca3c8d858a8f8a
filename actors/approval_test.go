package actors

import (
	"context"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestAttendedApprovalRequiresFollower checks that an attended approval asks no form while nobody follows the host's mail. A
// standing rule still decides it, and an earlier form is found again.
func TestAttendedApprovalRequiresFollower(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	approve := func(input string) view.Permission {
		t.Helper()
		p, err := fae.Approve(t.Context(), Approval{Tool: "shell", Input: input, Key: input, Attended: true})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := approve(`"ls"`); !p.Unattended || !p.Form.IsZero() || p.Decided {
		t.Fatalf("without a follower: %+v", p)
	}
	if in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{All: true}); err != nil || len(in.Messages) != 0 {
		t.Fatalf("%d messages, %v", len(in.Messages), err)
	}

	stop := followInbox(t, n.Host())
	asked := approve(`"ls"`)
	if asked.Unattended || asked.Form.IsZero() {
		t.Fatalf("with a follower: %+v", asked)
	}
	stop()
	if p := approve(`"ls"`); !p.Unattended || p.Form != asked.Form {
		t.Fatalf("asked before, without a follower: %+v", p)
	}
	if _, err := n.Host().Answer(t.Context(), Answer{Form: capabilities.FormNumber(0), Values: text("decision", mailbox.Always)}); err != nil {
		t.Fatal(err)
	}
	if p := approve(`"ls"`); p.Unattended || !p.Allowed || p.Form != asked.Form {
		t.Fatalf("answered before: %+v", p)
	}
	again, err := fae.Approve(t.Context(), Approval{Tool: "shell", Input: `"ls"`, Attended: true})
	if err != nil || !again.Decided || !again.Allowed || again.Unattended {
		t.Fatalf("a rule decides: %+v, %v", again, err)
	}
}

// followInbox follows an agent's mail until stop is called.
func followInbox(t *testing.T, a *Agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, err := range a.Mail().Follow(ctx, view.MessageFilter{All: true}, 0) {
			if err != nil {
				t.Error(err)
			}
		}
	}()
	eventually.Holds(t, "the inbox is followed", func() bool { return a.node.changed.has(a.id) })
	return func() { cancel(); <-done }
}
