package actors

import (
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// digestOf returns the digest of an approval that an agent has asked.
func digestOf(t testing.TB, asker *Agent, form capabilities.ID) string {
	t.Helper()
	m, err := asker.Message(t.Context(), capabilities.FormID(form))
	if err != nil {
		t.Fatal(err)
	}
	return m.Digest
}

// TestDecideSeveral decides on approvals of two agents, among them some that cannot be decided. Each of the others is
// decided, those of one agent in one commit. The call again, with its key in either Unicode form, has the same results.
func TestDecideSeveral(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	asking := func(a *Agent, input string) parley.Decision {
		t.Helper()
		p, err := a.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: input}})
		if err != nil {
			t.Fatal(err)
		}
		return parley.Decision{Form: p.Form, Digest: digestOf(t, a, p.Form), Decision: mailbox.Once}
	}
	plain, err := fae.Ask(t.Context(), parley.Form{To: "HOST", Description: "d", Fields: []events.Field{{Name: "f"}}})
	if err != nil {
		t.Fatal(err)
	}
	settled, other := asking(fae, `"settled"`), asking(fae, `"other"`)
	if _, err := n.Host().Decline(t.Context(), capabilities.FormID(settled.Form), 0, ""); err != nil {
		t.Fatal(err)
	}
	other.Digest = settled.Digest
	unknown, absent, form := asking(fae, `"unknown"`), other, other
	unknown.Decision = "perhaps"
	absent.Form, form.Form = fae.ID(), plain.Form
	once, denied, always := asking(fae, `"once"`), asking(bob, `"denied"`), asking(fae, `"always"`)
	denied.Decision, denied.Reason = mailbox.Deny, "no"
	always.Decision = mailbox.Always
	several := []parley.Decision{once, settled, other, once, unknown, denied, absent, form, always}
	want := []parley.Code{"", parley.AlreadyDeclined, parley.InvalidArgument, parley.InvalidArgument, parley.InvalidAnswer, "", parley.NoSuchMessage, parley.NoPendingPermission, ""}
	for time, key := range []string{"caf\u00e9", "caf\u00e9", "cafe\u0301"} {
		for i, d := range n.Host().Decide(t.Context(), key, several) {
			if time > 0 && i == 3 && parley.CodeOf(d.Err) == "" {
				continue // after the first time, both are the settlement of the first
			}
			if parley.CodeOf(d.Err) != want[i] {
				t.Errorf("decision %d: %v, want %q", i, d.Err, want[i])
			}
			if d.Err == nil && (d.Outcome.Status != view.StatusAnswered || d.Outcome.Text("decision") != several[i].Decision) {
				t.Errorf("decision %d: %+v", i, d.Outcome)
			}
		}
	}
	for i, asker := range map[int]*Agent{0: fae, 5: bob, 8: fae} {
		allowed, o, err := asker.AwaitApproval(t.Context(), capabilities.FormID(several[i].Form))
		if err != nil || allowed != (i != 5) || o.Text("reason") != several[i].Reason {
			t.Errorf("decision %d: %v %+v %v", i, allowed, o, err)
		}
	}
	if again := n.Host().Decide(t.Context(), "another", several[:1]); parley.CodeOf(again[0].Err) != parley.AlreadyAnswered {
		t.Errorf("with another key: %+v", again[0])
	}
	if p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `"always"`}}); err != nil || !p.Allowed {
		t.Errorf("the rule is not made: %+v %v", p, err)
	}
	if open, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{Pending: true}); err != nil || len(open.Messages) != 3 {
		t.Errorf("%d wait, want the form, the other call and the unknown decision: %v", len(open.Messages), err)
	}
}

// TestDecideSeveralTooLargeForOneCommit settles forms whose answers are over the limit of one commit together.
func TestDecideSeveralTooLargeForOneCommit(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	var several []parley.Decision
	for i := range 4 {
		input := fmt.Sprint(i)
		p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: input}})
		if err != nil {
			t.Fatal(err)
		}
		several = append(several, parley.Decision{Form: p.Form, Digest: digestOf(t, fae, p.Form), Decision: mailbox.Deny, Reason: strings.Repeat("x", 200<<10)})
	}
	for i, d := range n.Host().Decide(t.Context(), "", several) {
		if d.Err != nil || d.Outcome.Status != view.StatusAnswered {
			t.Errorf("decision %d: %v", i, d.Err)
		}
	}
}
