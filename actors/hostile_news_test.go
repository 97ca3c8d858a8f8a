package actors

import (
	"testing"

	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

func TestNewsPutNothingIntoAnAgentsHands(t *testing.T) {
	v := newHostileHarness(t)
	form := v.form(v.fae.id, v.holdsFae)
	form.Fields = capabilityField()
	v.arrives(v.say(events.OutboxCopy, v.fae.id, form))
	local := capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
	grants := func(id capabilities.ID) []capabilities.Grant {
		return []capabilities.Grant{{ID: id, Target: v.worker.id, Kind: capabilities.KindAgent, To: v.self, By: v.fae.id, Message: form.ID}}
	}
	values := func(name string, r capabilities.Ref) capabilities.Value {
		return capabilities.Record(map[string]capabilities.Value{name: capabilities.Reference(r)})
	}
	said := func(values capabilities.Value, grants []capabilities.Grant) events.Event {
		return &events.FormAnswered{Form: form.ID, By: v.fae.id, Values: values, Date: 1, Grants: grants}
	}
	for what, e := range map[string]events.Event{
		"that it gave worker":               said(values("who", agentRef(v.worker.id, local)), grants(local)),
		"that it gave worker before":        said(values("who", agentRef(v.worker.id, v.holdsFae)), grants(v.holdsFae)),
		"that it gave worker by no grant":   said(values("who", agentRef(v.worker.id, capabilities.ID{})), nil),
		"that it gave worker as a word":     said(values("word", agentRef(v.worker.id, capabilities.ID{})), nil),
		"that it gave worker unasked":       said(values("more", agentRef(v.worker.id, local)), nil),
		"that it gave worker deep down":     said(capabilities.Record(map[string]capabilities.Value{"word": capabilities.List(capabilities.Reference(agentRef(v.worker.id, local)))}), nil),
		"what another said":                 &events.FormAnswered{Form: form.ID, By: v.worker.id, Values: values("word", agentRef(v.worker.id, local)), Date: 1},
		"that it ended in an unknown way":   &events.FormCancelled{Form: form.ID, Reason: "lost", Date: 1},
		"that nobody answered":              &events.FormAnswered{Form: form.ID, Withheld: true},
		"that its own answer is not for it": &events.FormAnswered{Form: form.ID, By: v.fae.id, Withheld: true},
	} {
		v.run(t, what, func() {
			v.changesNothing(func() { v.isRefused(v.say(events.OutboxOutcome, v.fae.id, e), "") })
			v.cannotUse()
		})
	}
	v.run(t, "that it handed the form on", func() {
		v.changesNothing(func() {
			for _, via := range []capabilities.ID{{}, local, v.holdsFae, v.newID()} {
				v.isRefused(v.say(events.OutboxForwarded, v.fae.id, &events.FormForwarded{Form: form.ID, By: v.fae.id, To: v.worker.id, Via: via}), "NOT_PERMITTED")
			}
		})
	})
	v.run(t, "from another agent of the asker's node", func() {
		p := v.item(events.OutboxOutcome, v.newID(), v.fae.id, &events.FormCancelled{Form: form.ID, Reason: events.Cancelled})
		v.changesNothing(func() { v.isRefused(v.mail(p)[0], "NOT_PERMITTED") })
	})
	v.run(t, "of a form that the victim asked", func() {
		asked := ask(t, v.victim.Host(), Ask{To: "fae"})
		e := &events.FormCancelled{Form: asked.Form, Reason: events.Cancelled}
		v.changesNothing(func() {
			v.isRefused(v.say(events.OutboxOutcome, v.fae.id, e), "NOT_PERMITTED")
			v.isRefused(v.say(events.OutboxOutcome, v.victim.host, e), "NOT_PERMITTED")
		})
	})
	v.run(t, "of what was sealed here", func() {
		sealed, err := v.victim.secrets.Seal(capabilities.String("a secret of the victim's"))
		if err != nil {
			t.Fatal(err)
		}
		v.arrives(v.say(events.OutboxOutcome, v.fae.id, said(capabilities.Record(map[string]capabilities.Value{"word": sealed}), nil)))
		shown, err := v.fae.Names().Show(t.Context(), "@mail/"+form.ID.String()+"/@value", true)
		if err == nil {
			t.Errorf("it was opened: %s", shown.Text())
		}
	})
	v.isServed()
}

func TestAGrantIsUsedAsFarAsItGoes(t *testing.T) {
	v := newHostileHarness(t)
	t.Run("and no further", func(t *testing.T) {
		m := v.message(v.twice.id, v.mayTwice)
		v.arrives(v.say(events.OutboxCopy, v.twice.id, m))
		v.changesNothing(func() { v.arrives(v.say(events.OutboxCopy, v.twice.id, m)) }) // again, which is no use of it
		v.arrives(v.say(events.OutboxCopy, v.twice.id, v.form(v.twice.id, v.mayTwice)))
		v.changesNothing(func() {
			v.isRefused(v.say(events.OutboxCopy, v.twice.id, v.message(v.twice.id, v.mayTwice)), "NOT_PERMITTED")
			v.isRefused(v.say(events.OutboxCopy, v.twice.id, v.form(v.twice.id, v.mayTwice)), "NOT_PERMITTED")
		})
	})
	t.Run("not in one packet either", func(t *testing.T) {
		if err := v.victim.Host().Names().Copy(t.Context(), "twice", "twice-more", capabilities.Facet{Uses: 2}); err != nil {
			t.Fatal(err)
		}
		again := v.gives("twice-more")
		var all []peers.Item
		for range 50 {
			all = append(all, v.item(events.OutboxCopy, v.self, v.twice.id, v.message(v.twice.id, again)))
		}
		arrived := 0
		for _, r := range v.mail(all...) {
			if r.Status == peers.AckAccepted {
				arrived++
			}
		}
		if arrived != 2 {
			t.Errorf("%d messages arrived by two uses", arrived)
		}
	})
	t.Run("asking by what is for asking", func(t *testing.T) {
		v.arrives(v.say(events.OutboxCopy, v.asked.id, v.form(v.asked.id, v.mayAsk)))
	})
	t.Run("minting no more than it is", func(t *testing.T) {
		g := capabilities.Grant{ID: v.newID(), Parent: v.mayAsk, Target: v.asked.id, Kind: capabilities.KindAgent, To: v.newID(), By: v.self, Facet: capabilities.Facet{Mode: capabilities.AskOnly}}
		v.arrives(v.say(events.OutboxMint, v.asked.id, &events.CapabilityMinted{Grant: g}))
		v.isRefused(v.say(events.OutboxCopy, v.asked.id, v.message(v.asked.id, g.ID)), "NOT_PERMITTED")
		v.arrives(v.say(events.OutboxRevocation, v.asked.id, &events.CapabilityRevoked{Grant: g.ID, By: v.self, Date: 1}))
		v.changesNothing(func() { v.arrives(v.say(events.OutboxMint, v.asked.id, &events.CapabilityMinted{Grant: g})) })
	})
	t.Run("losing what was never given changes nothing", func(t *testing.T) {
		v.changesNothing(func() {
			for _, to := range []capabilities.ID{v.fae.id, v.worker.id, v.victim.host} {
				v.arrives(v.say(events.OutboxRevocation, to, &events.CapabilityRevoked{Grant: v.newID(), By: v.self, Date: 1}))
			}
		})
	})
	v.isServed()
}

// A stranger's time may be any; what is shown of it can still be read.
func TestAStrangersTimesCanBeRead(t *testing.T) {
	v := newHostileHarness(t)
	for _, at := range []capabilities.Time{-1 << 63, -1, 1<<63 - 1} {
		m := v.message(v.fae.id, v.holdsFae)
		m.Date = at
		v.arrives(v.say(events.OutboxCopy, v.fae.id, m))
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
