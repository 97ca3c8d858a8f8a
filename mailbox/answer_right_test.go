package mailbox_test

import (
	"bytes"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// askedApproval returns a harness in which fae asked host for an approval, host's message 0, and a right of host to
// answer it.
func askedApproval(t *testing.T, c mailbox.GrantAnswer) (*mailboxtest.Harness, mailbox.UseAnswer) {
	t.Helper()
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	v.NameAgents()
	v.Must("fae", mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Input: `{"command":"ls"}`}})
	v.Deliver(false)
	return v, grantAnswer(t, v, c)
}

func grantAnswer(t *testing.T, v *mailboxtest.Harness, c mailbox.GrantAnswer) mailbox.UseAnswer {
	t.Helper()
	c.Form, c.Digest = capabilities.FormNumber(0), []byte("digest of "+c.Name)
	evs := v.Must("host", c)
	return mailbox.UseAnswer{Grant: evs[0].(*events.AnswerGranted).Grant.ID, Digest: c.Digest}
}

func wantUse(t *testing.T, v *mailboxtest.Harness, use mailbox.UseAnswer, outcome string, want parley.Code) {
	t.Helper()
	use.Outcome, use.Mark = outcome, outcome
	if evs, err := v.Decide("host", use); parley.CodeOf(err) != want {
		t.Errorf("%s: %v, %v, want %q", outcome, evs, err, want)
	}
}

func TestRightToAnswerHasUsualOutcomes(t *testing.T) {
	v, use := askedApproval(t, mailbox.GrantAnswer{Facet: capabilities.Facet{Uses: 1}})
	wantUse(t, v, use, mailbox.Always, parley.NotPermitted)
	wantUse(t, v, use, "answer", parley.NotPermitted)
	wantUse(t, v, mailbox.UseAnswer{Grant: use.Grant, Digest: []byte("guessed")}, mailbox.Deny, parley.Unauthenticated)
	wantUse(t, v, use, mailbox.Once, "")
	wantUse(t, v, use, mailbox.Once, "") // the same press again
	wantUse(t, v, use, mailbox.Deny, parley.NotPermitted)
	if used := v.States["host"].Grants.Answers.All()[0].Used; used != 1 {
		t.Errorf("the right was used %d times", used)
	}
}

func TestRevokedRightCutsThoseDerived(t *testing.T) {
	v, root := askedApproval(t, mailbox.GrantAnswer{Name: "root"})
	child := grantAnswer(t, v, mailbox.GrantAnswer{Name: "child", From: root.Grant, Outcomes: []string{mailbox.Deny}})
	v.Must("host", mailbox.RevokeCapability{Grant: root.Grant})
	wantUse(t, v, child, mailbox.Deny, parley.NotPermitted)
	wantUse(t, v, root, mailbox.Deny, parley.NotPermitted)
	if _, err := v.Decide("host", mailbox.GrantAnswer{Form: capabilities.FormNumber(0), From: child.Grant}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("derived from a revoked right: %v", err)
	}
}

func TestLateUseTellsWhoEndedTheForm(t *testing.T) {
	v, use := askedApproval(t, mailbox.GrantAnswer{})
	v.Must("fae", mailbox.CancelForm{Form: capabilities.FormNumber(0)})
	v.Deliver(false)
	wantUse(t, v, use, mailbox.Deny, parley.AlreadyCancelled)
	if _, err := v.Decide("host", mailbox.GrantAnswer{Form: capabilities.FormNumber(0)}); parley.CodeOf(err) != parley.AlreadyCancelled {
		t.Errorf("a right to answer what has ended: %v", err)
	}
}

func TestOnlyRecipientGrantsAnswer(t *testing.T) {
	v, _ := askedApproval(t, mailbox.GrantAnswer{})
	if _, err := v.Decide("fae", mailbox.GrantAnswer{Form: capabilities.FormNumber(0)}); parley.CodeOf(err) != parley.NotPermitted {
		t.Error(err)
	}
}

func TestSnapshotHasRightsToAnswer(t *testing.T) {
	v, use := askedApproval(t, mailbox.GrantAnswer{Name: "phone"})
	child := grantAnswer(t, v, mailbox.GrantAnswer{Name: "child", From: use.Grant})
	v.Must("host", mailbox.RevokeCapability{Grant: child.Grant})
	use.Outcome, use.Mark = mailbox.Deny, mailbox.Deny
	v.Must("host", use)
	before, err := v.States["host"].Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	restored, err := mailbox.Restore(v.States["host"].ID, before)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := restored.Snapshot(); err != nil || !bytes.Equal(before, after) {
		t.Fatalf("the snapshot of the restored state differs: %v", err)
	}
	all := restored.Grants.Answers.All()
	if len(all) != 2 || all[0].Used != 1 || all[0].Last != mailbox.Deny || all[1].Grant.Revoked == 0 {
		t.Fatalf("got %+v", all)
	}
}
