package actors

import (
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestMembersOnTwoNodesClaimAForm has a group with a member on another node, which claims, and one here, which takes over.
func TestMembersOnTwoNodesClaimAForm(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	ops, ann := guest(t, a.Node, "ops"), guest(t, a.Node, "ann")
	known := send(t, a.Host(), "ops", "know @ann and @b").Message
	for _, name := range []string{"ann", "b"} {
		adoptReference(t, ops, known, name, name)
		if _, err := ops.SetMember(t.Context(), mailbox.SetMember{Agent: name, In: true}); err != nil {
			t.Fatal(err)
		}
	}
	form := ask(t, a.Host(), parley.Form{To: "ops"}).Form
	for _, who := range []*Agent{ann, b.Host()} {
		awaitMessage(t, who, form)
	}
	ref := capabilities.FormID(form)
	got, err := b.Host().Mail().Claim(t.Context(), ref, time.Hour, false)
	if err != nil || got.Queued || got.Claim == nil || got.Claim.ByName != "SELF" && got.Claim.By != b.Host().ID() {
		t.Fatalf("the member elsewhere claims it as %+v (%v)", got, err)
	}
	for _, who := range []*Agent{a.Host(), ann, ops, b.Host()} {
		eventually.Holds(t, "all know who is on it", func() bool {
			c := shownTo(t, who, form).Claim
			return c != nil && c.By == b.Host().ID()
		})
	}
	yes := parley.Answer{Values: text("a", "yes")}
	if _, err := ann.Answer(t.Context(), ref, yes); parley.CodeOf(err) != parley.Claimed {
		t.Errorf("another member answers with %v", err)
	}
	if _, err := ann.Decline(t.Context(), ref, 0, ""); parley.CodeOf(err) != parley.Claimed {
		t.Errorf("another member declines with %v", err)
	}
	if _, err := ann.Mail().Claim(t.Context(), ref, time.Hour, false); parley.CodeOf(err) != parley.Claimed {
		t.Errorf("another member claims with %v", err)
	}
	got, err = ann.Mail().Claim(t.Context(), ref, time.Hour, true)
	if err != nil || got.Claim == nil || got.Claim.By != ann.ID() || got.Claim.Was == nil || got.Claim.Was.ID != b.Host().ID() {
		t.Fatalf("another member takes it over as %+v (%v)", got, err)
	}
	eventually.Holds(t, "who was on it knows", func() bool {
		c := shownTo(t, b.Host(), form).Claim
		return c != nil && c.By == ann.ID()
	})
	if _, err := b.Host().Answer(t.Context(), ref, yes); parley.CodeOf(err) != parley.Claimed {
		t.Errorf("who was on it answers with %v", err)
	}
	if got, err = ann.Mail().Claim(t.Context(), ref, 0, false); err != nil || got.Claim != nil {
		t.Errorf("it is released as %+v (%v)", got, err)
	}
	eventually.Holds(t, "nobody is on it", func() bool { return shownTo(t, b.Host(), form).Claim == nil })
	if _, err := b.Host().Answer(t.Context(), ref, yes); err != nil {
		t.Fatal(err)
	}
	awaitSameOutcome(t, form, view.StatusAnswered, a.Host(), ann, b.Host())
	if _, err := ann.Mail().Claim(t.Context(), ref, time.Hour, false); parley.CodeOf(err) != parley.AlreadyAnswered {
		t.Errorf("a form that was answered is claimed with %v", err)
	}
}
