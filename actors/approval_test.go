package actors

import (
	"context"
	"strings"
	"testing"

	"parley"
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
	approve := func(input string) view.Permitted {
		t.Helper()
		p, err := ApproveAttended(t.Context(), fae, mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: input}, Key: input})
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
	if _, err := n.Host().Answer(t.Context(), capabilities.FormNumber(0), parley.Answer{Values: text("decision", mailbox.Always)}); err != nil {
		t.Fatal(err)
	}
	if p := approve(`"ls"`); p.Unattended || !p.Allowed || p.Form != asked.Form {
		t.Fatalf("answered before: %+v", p)
	}
	again, err := ApproveAttended(t.Context(), fae, mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `"ls"`}})
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

// TestLargestApprovalGoesToAnotherNode asks the host of another node about a call of the largest input, which is decided
// there by its digest. A call of one byte more is refused where it is asked.
func TestLargestApprovalGoesToAnotherNode(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	callOf := func(size int) string {
		const around = `{"content":""}`
		return `{"content":"` + strings.Repeat(`\"`, (size-len(around))/2) + strings.Repeat("x", size%2) + `"}`
	}
	largest := callOf(256 << 10)
	asked, err := a.Host().Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Write", Input: largest}, To: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Host().Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Write", Input: callOf(256<<10 + 1)}, To: "b"}); parley.CodeOf(err) != parley.TooLarge {
		t.Errorf("one byte more: %v", err)
	}
	shown := awaitMessage(t, b.Host(), asked.Form)
	if shown.Description != largest || shown.Digest != digestOf(t, a.Host(), asked.Form) {
		t.Fatalf("shown are %d bytes, digest %s", len(shown.Description), shown.Digest)
	}
	ref, answer := capabilities.FormID(asked.Form), parley.Answer{Digest: strings.Repeat("0", 64), Values: text("decision", mailbox.Deny)}
	if _, err := b.Host().Answer(t.Context(), ref, answer); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("another call is decided: %v", err)
	}
	answer.Digest = shown.Digest
	if _, err := b.Host().Answer(t.Context(), ref, answer); err != nil {
		t.Fatal(err)
	}
	// The host of another node gives an opinion: it allows nothing.
	if allowed, o, err := a.Host().AwaitApproval(t.Context(), capabilities.FormID(asked.Form)); err != nil || allowed || o.Status != view.StatusAnswered || o.Digest != shown.Digest {
		t.Errorf("%v, %s, %v", allowed, o.Status, err)
	}
}
