package actors

import (
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// The hostile node has a grant for fae and none for worker. None of its mail may give fae access to worker.

// checkWorkerUnreachable checks that fae can neither send to worker nor pass it on: not by its ID, and not by any
// reference in fae's mail.
func (v *hostileHarness) checkWorkerUnreachable() {
	v.Helper()
	v.waitIdle()
	before, err := v.worker.Mail().Inbox(v.Context(), view.MessageFilter{All: true})
	if err != nil {
		v.Fatal(err)
	}
	for _, to := range v.workerPaths() {
		_, err := v.fae.Send(v.Context(), to, "do as I say")
		if err != nil && parley.CodeOf(err) != parley.NotPermitted && parley.CodeOf(err) != parley.UnknownRecipient {
			v.Fatal(err)
		}
		_, _ = v.fae.Ask(v.Context(), parley.Form{To: to, Description: "tell me", Fields: textField("a")}) // as above
		_, _ = v.fae.Send(v.Context(), "HOST", "take @it:"+to)
	}
	v.waitIdle()
	after, err := v.worker.Mail().Inbox(v.Context(), view.MessageFilter{All: true})
	if err != nil {
		v.Fatal(err)
	}
	if after.Cursor != before.Cursor {
		v.Errorf("worker was reached: %d events", after.Cursor-before.Cursor)
	}
	held, err := v.victim.Host().Names().Grants(v.Context(), view.GrantFilter{})
	if err != nil {
		v.Fatal(err)
	}
	for _, g := range held {
		if g.Target == v.worker.id {
			v.Errorf("the host has a grant for worker: %+v", g)
		}
	}
}

// workerPaths returns the ways in which fae can name worker: its ID, and the paths of references in fae's mail.
func (v *hostileHarness) workerPaths() []string {
	v.Helper()
	in, err := v.fae.Mail().Inbox(v.Context(), view.MessageFilter{All: true})
	if err != nil {
		v.Fatal(err)
	}
	paths := []string{v.worker.id.String()}
	for _, e := range in.Messages {
		if e.Type == "message" && e.From == v.fae.id {
			continue
		}
		root := "@mail/" + e.MessageID.String()
		all, err := v.fae.Names().Show(v.Context(), root, false)
		if err != nil {
			v.Fatal(err)
		}
		paths = append(paths, pathsTo(v.worker.id, root, all)...)
	}
	return paths
}

// pathsTo returns the paths that lead to target within value.
func pathsTo(target capabilities.ID, at string, value capabilities.Value) (paths []string) {
	if r, ok := value.AsRef(); ok && r.Target == target {
		return []string{at}
	}
	r, _ := value.AsRecord()
	for name, inner := range r {
		paths = append(paths, pathsTo(target, at+"/"+name, inner)...)
	}
	return paths
}

// askHostile gives fae a reference to the hostile node's host and has fae ask it a form.
func (v *hostileHarness) askHostile(fields []events.Field) (view.Asked, *events.FormRequested) {
	v.Helper()
	h := v.victim.Host()
	sent, err := h.Send(v.Context(), "fae", "this is @hostile")
	if err != nil {
		v.Fatal(err)
	}
	if err := v.fae.Adopt(v.Context(), capabilities.FormID(sent.Message), "hostile", "hostile"); err != nil {
		v.Fatal(err)
	}
	asked := ask(v, v.fae, parley.Form{To: "hostile", Fields: fields})
	came := awaitEvent[*events.FormRequested](v.hostileNode)
	v.awaitDelivered()
	return asked, came
}

// awaitDelivered blocks until fae's items are acknowledged, which is an event of its own.
func (v *hostileHarness) awaitDelivered() {
	v.Helper()
	eventually.Holds(v, "all items of fae are delivered", func() bool { return hasDelivered(v, v.fae) })
}

func capabilityField() []events.Field {
	return []events.Field{{Name: "who", Type: events.Capability}, {Name: "word", Type: events.Text}}
}

func TestForgedLocalReferenceGivesNoAccess(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	local := capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
	rooted := agentRef(v.worker.id, v.newID())
	rooted.Root = local
	message := func(r capabilities.Ref) events.Event { return v.message(v.fae.id, v.faeGrant, referenceSpan("it", r)) }
	for what, e := range map[string]events.Event{
		"without a grant":                 message(agentRef(v.worker.id, capabilities.ID{})),
		"by a grant of the victim's":      message(agentRef(v.worker.id, local)),
		"by the hostile node's own grant": message(agentRef(v.worker.id, v.revokedGrant)),
		"by another grant of the peer's":  message(agentRef(v.worker.id, v.faeGrant)),
		"with a root of the victim's":     message(rooted),
		"in a record":                     v.message(v.fae.id, v.faeGrant, events.Span{Edge: "it", Value: capabilities.Record(map[string]capabilities.Value{"x": capabilities.List(capabilities.Reference(agentRef(v.worker.id, local)))})}),
		"as a sealed value":               v.message(v.fae.id, v.faeGrant, events.Span{Edge: "it", Value: capabilities.Sealed([]byte("sealed"))}),
	} {
		v.runCase(t, what, func() {
			v.checkNoEvents(func() { v.wantRefused(v.deliver(events.OutboxCopy, v.fae.id, e), "") })
			v.checkWorkerUnreachable()
		})
	}
	v.runCase(t, "by a grant of its own", func() {
		v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, message(agentRef(v.worker.id, v.newID()))))
		v.checkWorkerUnreachable()
	})
	v.runCase(t, "of another kind", func() {
		for _, kind := range []capabilities.Kind{capabilities.KindForm, capabilities.KindResolver, capabilities.KindGrant, capabilities.KindNode} {
			v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, message(capabilities.Ref{Target: v.worker.id, Kind: kind, Grant: v.newID()})))
		}
		v.checkWorkerUnreachable()
	})
}

func TestAnswerWithForgedReferenceIsRefused(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	asked, _ := v.askHostile(capabilityField())
	local := capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
	mine, id := v.newID(), v.newID()
	grant := func(id, target capabilities.ID) capabilities.Grant {
		return capabilities.Grant{ID: id, Target: target, Kind: capabilities.KindAgent, To: v.fae.id, By: v.host, Message: asked.Form}
	}
	answer := func(r capabilities.Ref, word capabilities.Value, grants ...capabilities.Grant) events.Event {
		values := map[string]capabilities.Value{"word": word}
		if !r.Target.IsZero() {
			values["who"] = capabilities.Reference(r)
		}
		return &events.AnswerQueued{Form: asked.Form, Values: capabilities.Record(values), Grants: grants, Answer: id}
	}
	word, noRef := capabilities.String("x"), capabilities.Ref{}
	other := func(f func(*capabilities.Grant)) events.Event {
		g := grant(mine, v.worker.id)
		f(&g)
		return answer(agentRef(v.worker.id, mine), word, g)
	}
	rooted := agentRef(v.worker.id, mine)
	rooted.Root = v.faeGrant
	for what, e := range map[string]events.Event{
		"without a grant":              answer(agentRef(v.worker.id, capabilities.ID{}), word),
		"by a grant of the victim's":   answer(agentRef(v.worker.id, local), word, grant(local, v.worker.id)),
		"by a grant of fae's host":     answer(agentRef(v.worker.id, v.faeGrant), word, grant(v.faeGrant, v.worker.id)),
		"by a grant of another thing":  answer(agentRef(v.worker.id, mine), word, grant(mine, v.host)),
		"by a grant of another's":      other(func(g *capabilities.Grant) { g.By = v.worker.id }),
		"by a grant to another":        other(func(g *capabilities.Grant) { g.To = v.worker.id }),
		"by a grant of another answer": other(func(g *capabilities.Grant) { g.Message = local }),
		"with a root":                  answer(rooted, word, grant(mine, v.worker.id)),
		"with a superfluous grant":     answer(noRef, word, grant(mine, v.worker.id)),
		"a reference in a text field":  answer(noRef, capabilities.Reference(agentRef(v.worker.id, mine)), grant(mine, v.worker.id)),
		"a sealed value":               answer(noRef, capabilities.Sealed([]byte("sealed"))),
		"a field that was not asked":   &events.AnswerQueued{Form: asked.Form, Values: capabilities.Record(map[string]capabilities.Value{"more": word}), Answer: id},
		"no values":                    &events.AnswerQueued{Form: asked.Form, Values: word, Answer: id},
		"that it was cancelled":        &events.AnswerQueued{Form: asked.Form, Reason: events.Cancelled, Answer: id},
		"that it expired":              &events.AnswerQueued{Form: asked.Form, Reason: events.Expired, Answer: id},
		"an answer without an ID":      &events.AnswerQueued{Form: asked.Form, Values: capabilities.Record(map[string]capabilities.Value{"word": word})},
	} {
		v.runCase(t, what, func() {
			v.checkNoEvents(func() { v.wantRefused(v.deliver(events.OutboxAnswer, v.fae.id, e), "") })
		})
	}
	v.runCase(t, "by an agent that was not asked", func() {
		p := v.item(events.OutboxAnswer, v.newID(), v.fae.id, answer(noRef, word))
		v.checkNoEvents(func() { v.wantRefused(v.deliverAll(p)[0], "NOT_PERMITTED") })
	})
	v.runCase(t, "a valid answer", func() {
		v.wantAccepted(v.deliver(events.OutboxAnswer, v.fae.id, answer(agentRef(v.worker.id, mine), word, grant(mine, v.worker.id))))
		v.checkWorkerUnreachable()
		if o, err := v.fae.Await(t.Context(), capabilities.FormID(asked.Form)); err != nil || o.By != v.host {
			t.Errorf("%+v, %v", o, err)
		}
	})
	v.runCase(t, "again", func() {
		sent := answer(agentRef(v.worker.id, mine), word, grant(mine, v.worker.id))
		v.checkNoEvents(func() {
			v.wantAccepted(v.deliver(events.OutboxAnswer, v.fae.id, sent)) // its ack may have been lost
			id = v.newID()
			v.wantRefused(v.deliver(events.OutboxAnswer, v.fae.id, answer(noRef, word)), "ALREADY_ANSWERED")
			v.wantRefused(v.deliver(events.OutboxAnswer, v.fae.id, &events.AnswerQueued{Form: asked.Form, Reason: events.Declined, Answer: id}), "ALREADY_ANSWERED")
		})
	})
}

func TestForwardWithForgedGrantIsRefused(t *testing.T) {
	v := newHostileHarness(t)
	asked, _ := v.askHostile(textField("a"))
	local := capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
	forward := func(to, via capabilities.ID) events.Event {
		return &events.FormForwarded{Form: asked.Form, By: v.host, To: to, Via: via}
	}
	for what, e := range map[string]events.Event{
		"without a grant":              forward(v.worker.id, capabilities.ID{}),
		"by a grant of the victim's":   forward(v.worker.id, local),
		"by a grant of something else": forward(v.worker.id, v.faeGrant),
		"to its asker":                 forward(v.fae.id, v.newID()),
		"to no agent":                  forward(capabilities.ID{}, v.newID()),
		"to its holder":                forward(v.host, v.newID()),
	} {
		v.runCase(t, what, func() {
			v.checkNoEvents(func() { v.wantRefused(v.deliver(events.OutboxForward, v.fae.id, e), "") })
		})
	}
	v.runCase(t, "by an agent that was not asked", func() {
		other := v.newID()
		p := v.item(events.OutboxForward, other, v.fae.id, &events.FormForwarded{Form: asked.Form, By: other, To: v.worker.id, Via: v.newID()})
		v.checkNoEvents(func() { v.wantRefused(v.deliverAll(p)[0], "NOT_PERMITTED") })
	})
	v.runCase(t, "by a grant that its target does not know", func() {
		v.waitIdle()
		before, _ := v.worker.Mail().Inbox(t.Context(), view.MessageFilter{All: true})
		v.wantAccepted(v.deliver(events.OutboxForward, v.fae.id, forward(v.worker.id, v.newID())))
		v.waitIdle()
		if after, err := v.worker.Mail().Inbox(t.Context(), view.MessageFilter{All: true}); err != nil || after.Cursor != before.Cursor {
			t.Errorf("worker has %+v, %v", after.Messages, err)
		}
	})
	fixed := ask(t, v.fae, parley.Form{To: "hostile", NoForward: true})
	v.awaitDelivered()
	v.runCase(t, "of a form that forbids it", func() {
		v.checkNoEvents(func() {
			v.wantRefused(v.deliver(events.OutboxForward, v.fae.id, &events.FormForwarded{Form: fixed.Form, By: v.host, To: v.newID(), Via: v.newID()}), "NOT_PERMITTED")
		})
	})
}
