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
	asked, err := a.Host().Approve(t.Context(), Approval{To: "b", Tool: "Write", Input: largest})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Host().Approve(t.Context(), Approval{To: "b", Tool: "Write", Input: callOf(256<<10 + 1)}); parley.CodeOf(err) != parley.TooLarge {
		t.Errorf("one byte more: %v", err)
	}
	shown := awaitMessage(t, b.Host(), asked.Form)
	if shown.Description != largest || shown.Digest != mailbox.DigestCall("Write", largest, "") {
		t.Fatalf("shown are %d bytes, digest %s", len(shown.Description), shown.Digest)
	}
	answer := Answer{Form: capabilities.FormID(asked.Form), Digest: mailbox.DigestCall("Write", callOf(1<<10), ""), Values: text("decision", mailbox.Deny)}
	if _, err := b.Host().Answer(t.Context(), answer); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("another call is decided: %v", err)
	}
	answer.Digest = shown.Digest
	if _, err := b.Host().Answer(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	// The host of another node gives an opinion: it allows nothing.
	if allowed, o, err := a.Host().AwaitApproval(t.Context(), capabilities.FormID(asked.Form)); err != nil || allowed || o.Status != view.StatusAnswered || o.Digest != shown.Digest {
		t.Errorf("%v, %s, %v", allowed, o.Status, err)
	}
}
