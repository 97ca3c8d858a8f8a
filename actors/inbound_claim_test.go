package actors

import (
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// TestPeerCannotSayThatLocalAgentsAreOnAForm has a node say of its own form that agents of the victim have claimed it, or that a claim of theirs
// was taken over. Nothing in the log names them, and nobody is on the form. What one has claimed is told.
func TestPeerCannotSayThatLocalAgentsAreOnAForm(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	until := v.victim.now().Add(10 * time.Minute)
	claim := func(form, by, was capabilities.ID) *events.FormClaimed {
		return &events.FormClaimed{Form: form, By: by, Was: was, Until: until, Date: 1}
	}
	missing, theirs := capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}, v.newID()
	for by, id := range map[string]capabilities.ID{"its host": v.victim.host, "another agent": v.worker.id, "the receiver": v.fae.id, "nobody's agent": missing} {
		v.runCase(t, "claimed by "+by, func() {
			form := v.form(v.fae.id, v.faeGrant)
			v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, form))
			v.checkNoEvents(func() {
				v.wantAccepted(v.deliver(events.OutboxClaim, v.fae.id, claim(form.ID, id, capabilities.ID{})))
			})
			if m := v.received(form.ID); m.Claim != nil {
				t.Errorf("it is said to be claimed: %+v", m.Claim)
			}
			v.wantAccepted(v.deliver(events.OutboxClaim, v.fae.id, claim(form.ID, theirs, id)))
			if m := v.received(form.ID); m.Claim == nil || m.Claim.By != theirs || m.Claim.Was != nil {
				t.Errorf("the claim of the node's own agent: %+v", m.Claim)
			}
			v.wantAccepted(v.deliver(events.OutboxClaim, v.fae.id, claim(form.ID, id, theirs)))
			if m := v.received(form.ID); m.Claim != nil {
				t.Errorf("it is said to be taken over: %+v", m.Claim)
			}
		})
	}
	v.runCase(t, "claimed as it is told", func() {
		form := v.form(v.fae.id, v.faeGrant)
		v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, form))
		if _, err := v.fae.Mail().Claim(t.Context(), capabilities.FormID(form.ID), 10*time.Minute, false); err != nil && parley.CodeOf(err) != parley.NodeUnreachable {
			t.Fatal(err)
		}
		awaitEvent[*events.ClaimQueued](v.hostileNode)
		v.waitIdle()
		v.wantAccepted(v.deliver(events.OutboxClaim, v.fae.id, claim(form.ID, v.fae.id, capabilities.ID{})))
		if m := v.received(form.ID); m.Claim == nil || m.Claim.By != v.fae.id {
			t.Errorf("its own claim: %+v", m.Claim)
		}
	})
}
