package actors

import (
	"testing"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

func TestForgedOutcomeIsRefused(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	form := v.form(v.fae.id, v.faeGrant)
	form.Fields = capabilityField()
	v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, form))
	local := capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
	grants := func(id capabilities.ID) []capabilities.Grant {
		return []capabilities.Grant{{ID: id, Target: v.worker.id, Kind: capabilities.KindAgent, To: v.host, By: v.fae.id, Message: form.ID}}
	}
	values := func(name string, r capabilities.Ref) capabilities.Value {
		return capabilities.Record(map[string]capabilities.Value{name: capabilities.Reference(r)})
	}
	answered := func(values capabilities.Value, grants []capabilities.Grant) events.Event {
		return &events.FormAnswered{Form: form.ID, By: v.fae.id, Values: values, Date: 1, Grants: grants}
	}
	for what, e := range map[string]events.Event{
		"with an invented grant":           answered(values("who", agentRef(v.worker.id, local)), grants(local)),
		"with an earlier grant":            answered(values("who", agentRef(v.worker.id, v.faeGrant)), grants(v.faeGrant)),
		"with a reference without a grant": answered(values("who", agentRef(v.worker.id, capabilities.ID{})), nil),
		"with a reference in a text field": answered(values("word", agentRef(v.worker.id, capabilities.ID{})), nil),
		"with a field that was not asked":  answered(values("more", agentRef(v.worker.id, local)), nil),
		"with a reference in a list":       answered(capabilities.Record(map[string]capabilities.Value{"word": capabilities.List(capabilities.Reference(agentRef(v.worker.id, local)))}), nil),
		"by another agent":                 &events.FormAnswered{Form: form.ID, By: v.worker.id, Values: values("word", agentRef(v.worker.id, local)), Date: 1},
		"with an unknown reason":           &events.FormCancelled{Form: form.ID, Reason: "lost", Date: 1},
		"withheld, by nobody":              &events.FormAnswered{Form: form.ID, Withheld: true},
		"withheld, by the answerer":        &events.FormAnswered{Form: form.ID, By: v.fae.id, Withheld: true},
	} {
		v.runCase(t, what, func() {
			v.checkNoEvents(func() { v.wantRefused(v.deliver(events.OutboxOutcome, v.fae.id, e), "") })
			v.checkWorkerUnreachable()
		})
	}
	v.runCase(t, "that fae forwarded the form", func() {
		v.checkNoEvents(func() {
			for _, via := range []capabilities.ID{{}, local, v.faeGrant, v.newID()} {
				v.wantRefused(v.deliver(events.OutboxForwarded, v.fae.id, &events.FormForwarded{Form: form.ID, By: v.fae.id, To: v.worker.id, Via: via}), "NOT_PERMITTED")
			}
		})
	})
	v.runCase(t, "from another agent of the asker's node", func() {
		p := v.item(events.OutboxOutcome, v.newID(), v.fae.id, &events.FormCancelled{Form: form.ID, Reason: events.Cancelled})
		v.checkNoEvents(func() { v.wantRefused(v.deliverAll(p)[0], "NOT_PERMITTED") })
	})
	v.runCase(t, "of a form that the victim asked", func() {
		asked := ask(t, v.victim.Host(), parley.Form{To: "fae"})
		e := &events.FormCancelled{Form: asked.Form, Reason: events.Cancelled}
		v.checkNoEvents(func() {
			v.wantRefused(v.deliver(events.OutboxOutcome, v.fae.id, e), "NOT_PERMITTED")
			v.wantRefused(v.deliver(events.OutboxOutcome, v.victim.host, e), "NOT_PERMITTED")
		})
	})
	v.runCase(t, "with a value that the victim sealed", func() {
		sealed, err := v.victim.secrets.Seal(capabilities.String("a secret of the victim's"))
		if err != nil {
			t.Fatal(err)
		}
		v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, answered(capabilities.Record(map[string]capabilities.Value{"word": sealed}), nil)))
		shown, err := v.fae.Names().Show(t.Context(), "@mail/"+form.ID.String()+"/@value", true)
		if err == nil {
			t.Errorf("the secret was revealed: %s", shown.Text())
		}
	})
	v.checkResponsive()
}

func TestGrantOfPeerIsLimitedToItsFacet(t *testing.T) {
	v := newHostileHarness(t)
	t.Run("two uses", func(t *testing.T) {
		m := v.message(v.limited.id, v.limitedGrant)
		v.wantAccepted(v.deliver(events.OutboxCopy, v.limited.id, m))
		v.checkNoEvents(func() { v.wantAccepted(v.deliver(events.OutboxCopy, v.limited.id, m)) }) // sent again, it uses nothing
		v.wantAccepted(v.deliver(events.OutboxCopy, v.limited.id, v.form(v.limited.id, v.limitedGrant)))
		v.checkNoEvents(func() {
			v.wantRefused(v.deliver(events.OutboxCopy, v.limited.id, v.message(v.limited.id, v.limitedGrant)), "NOT_PERMITTED")
			v.wantRefused(v.deliver(events.OutboxCopy, v.limited.id, v.form(v.limited.id, v.limitedGrant)), "NOT_PERMITTED")
		})
	})
	t.Run("two uses in one packet", func(t *testing.T) {
		if err := v.victim.Host().Names().Copy(t.Context(), "limited", "two-more", capabilities.Facet{Uses: 2}); err != nil {
			t.Fatal(err)
		}
		again := v.receiveGrant("two-more")
		var all []peers.Item
		for range 50 {
			all = append(all, v.item(events.OutboxCopy, v.host, v.limited.id, v.message(v.limited.id, again)))
		}
		accepted := 0
		for _, r := range v.deliverAll(all...) {
			if r.Status == peers.AckAccepted {
				accepted++
			}
		}
		if accepted != 2 {
			t.Errorf("%d messages were accepted by two uses", accepted)
		}
	})
	t.Run("asking by an ask-only grant", func(t *testing.T) {
		v.wantAccepted(v.deliver(events.OutboxCopy, v.askOnly.id, v.form(v.askOnly.id, v.askOnlyGrant)))
	})
	t.Run("minting an equal facet", func(t *testing.T) {
		g := capabilities.Grant{ID: v.newID(), Parent: v.askOnlyGrant, Target: v.askOnly.id, Kind: capabilities.KindAgent, To: v.newID(), By: v.host, Facet: capabilities.Facet{Mode: capabilities.AskOnly}}
		v.wantAccepted(v.deliver(events.OutboxMint, v.askOnly.id, &events.CapabilityMinted{Grant: g}))
		v.wantRefused(v.deliver(events.OutboxCopy, v.askOnly.id, v.message(v.askOnly.id, g.ID)), "NOT_PERMITTED")
		v.wantAccepted(v.deliver(events.OutboxRevocation, v.askOnly.id, &events.CapabilityRevoked{Grant: g.ID, By: v.host, Date: 1}))
		v.checkNoEvents(func() { v.wantAccepted(v.deliver(events.OutboxMint, v.askOnly.id, &events.CapabilityMinted{Grant: g})) })
	})
	t.Run("revoking an unknown grant changes nothing", func(t *testing.T) {
		v.checkNoEvents(func() {
			for _, to := range []capabilities.ID{v.fae.id, v.worker.id, v.victim.host} {
				v.wantAccepted(v.deliver(events.OutboxRevocation, to, &events.CapabilityRevoked{Grant: v.newID(), By: v.host, Date: 1}))
			}
		})
	})
	v.checkResponsive()
}

// TestExtremeDatesOfPeersAreReadable sends messages whose dates are the extremes of their type. The dates that are shown
// can be parsed.
func TestExtremeDatesOfPeersAreReadable(t *testing.T) {
	v := newHostileHarness(t)
	for _, at := range []capabilities.Time{-1 << 63, -1, 1<<63 - 1} {
		m := v.message(v.fae.id, v.faeGrant)
		m.Date = at
		v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, m))
	}
	in, err := v.fae.Mail().Inbox(t.Context(), view.MessageFilter{})
	if err != nil || len(in.Messages) != 3 {
		t.Fatalf("%d messages, %v", len(in.Messages), err)
	}
	for _, e := range in.Messages {
		text, err := e.Date.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if err := new(capabilities.Time).UnmarshalText(text); err != nil {
			t.Error(err)
		}
	}
}
