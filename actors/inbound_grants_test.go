package actors

import (
	"testing"

	"parley/capabilities"
	"parley/events"
)

// hostileHarness is a victim with guests, and a hostile node that holds grants for some of them.
type hostileHarness struct {
	*hostileNode
	fae, worker, askOnly, limited, formerlyGranted *Agent
	faeGrant                                       capabilities.ID // grants of the hostile node: fae without limits,
	askOnlyGrant                                   capabilities.ID // askOnly with AskOnly,
	limitedGrant                                   capabilities.ID // limited with two uses,
	revokedGrant                                   capabilities.ID // and formerlyGranted, revoked. It has no grant for worker.
}

func newHostileHarness(t *testing.T) *hostileHarness {
	n := openVictim(t)
	h := n.Host()
	v := &hostileHarness{
		fae: guest(t, n, "fae"), worker: guest(t, n, "worker"), askOnly: guest(t, n, "ask"), limited: guest(t, n, "limited"), formerlyGranted: guest(t, n, "former"),
	}
	v.hostileNode = newHostilePeer(t, n, "hostile")
	narrow := func(from, to string, f capabilities.Facet) {
		if err := h.Names().Copy(t.Context(), from, to, f); err != nil {
			t.Fatal(err)
		}
	}
	narrow("ask", "ask-only", capabilities.Facet{Mode: capabilities.AskOnly})
	narrow("limited", "two-uses", capabilities.Facet{Uses: 2})
	v.faeGrant, v.askOnlyGrant, v.limitedGrant, v.revokedGrant = v.receiveGrant("fae"), v.receiveGrant("ask-only"), v.receiveGrant("two-uses"), v.receiveGrant("former")
	if err := h.Names().Revoke(t.Context(), v.revokedGrant); err != nil {
		t.Fatal(err)
	}
	awaitEvent[*events.CapabilityRevoked](v.hostileNode)
	v.waitIdle()
	return v
}

// runCase runs a subtest and reports the hostile node's failures to it.
func (m *hostileNode) runCase(t *testing.T, what string, attack func()) {
	t.Run(what, func(t *testing.T) {
		outer := m.TB
		m.TB = t
		defer func() { m.TB = outer }()
		attack()
	})
}

func TestItemsWithoutValidGrantAreRefused(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	host, none := v.victim.host, capabilities.ID{}
	unknown := capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
	other := v.newID()
	mint := func(target, via capabilities.ID, f capabilities.Facet) events.Event {
		return &events.CapabilityMinted{Grant: capabilities.Grant{
			ID: v.newID(), Parent: via, Target: target, Kind: capabilities.KindAgent, Facet: f, To: other, By: v.host,
		}}
	}
	forged := func(f func(*events.FormRequested)) events.Event {
		e := v.form(v.fae.id, v.faeGrant)
		f(e)
		return e
	}
	forgedMessage := func(f func(*events.MessagePosted)) events.Event {
		e := v.message(v.fae.id, v.faeGrant)
		f(e)
		return e
	}
	forgedMint := func(f func(*capabilities.Grant)) events.Event {
		e := mint(v.fae.id, v.faeGrant, capabilities.Facet{}).(*events.CapabilityMinted)
		f(&e.Grant)
		return e
	}
	for _, c := range []struct {
		what string
		kind events.OutboxKind
		to   capabilities.ID
		e    events.Event
		code string
	}{
		{"a form without any grant", events.OutboxCopy, v.worker.id, v.form(v.worker.id, none), "NOT_PERMITTED"},
		{"a message without any grant", events.OutboxCopy, v.worker.id, v.message(v.worker.id, none), "NOT_PERMITTED"},
		{"by a grant of another agent", events.OutboxCopy, v.worker.id, v.form(v.worker.id, v.faeGrant), "NOT_PERMITTED"},
		{"by an invented grant", events.OutboxCopy, v.worker.id, v.form(v.worker.id, v.newID()), "NOT_PERMITTED"},
		{"by an invented grant of the victim's", events.OutboxCopy, v.worker.id, v.form(v.worker.id, unknown), "NOT_PERMITTED"},
		{"without showing its grant", events.OutboxCopy, v.fae.id, v.form(v.fae.id, none), "NOT_PERMITTED"},
		{"by a grant that was revoked", events.OutboxCopy, v.formerlyGranted.id, v.form(v.formerlyGranted.id, v.revokedGrant), "NOT_PERMITTED"},
		{"a message by a reference for asking only", events.OutboxCopy, v.askOnly.id, v.message(v.askOnly.id, v.askOnlyGrant), "NOT_PERMITTED"},
		{"for an unknown agent", events.OutboxCopy, unknown, v.form(unknown, none), "AGENT_NOT_FOUND"},
		{"a form from its own addressee", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.From = v.fae.id }), "NOT_PERMITTED"},
		{"a form from the victim's host", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.From = host }), "NOT_PERMITTED"},
		{"a form from another agent of its node", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.From = other }), "NOT_PERMITTED"},
		{"a form with IDs of the victim's", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.Promise = unknown }), "NOT_PERMITTED"},
		{"a form for another agent", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.To = v.worker.id }), "NOT_PERMITTED"},
		{"a form with a long chain", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) {
			e.To, e.Chain, e.Forwarder = v.worker.id, make([]capabilities.ID, 1000), v.worker.id
		}), "TOO_LARGE"},
		{"a form without fields", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.Fields = nil }), "INVALID_FORM"},
		{"a form with a capability in it", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) {
			e.Fields[0].Type, e.Fields[0].Default = events.Capability, capabilities.Reference(agentRef(v.worker.id, none))
		}), "INVALID_FORM"},
		{"a message from the victim's host", events.OutboxCopy, v.fae.id, forgedMessage(func(e *events.MessagePosted) { e.From = host }), "NOT_PERMITTED"},
		{"a message with an ID of the victim's", events.OutboxCopy, v.fae.id, forgedMessage(func(e *events.MessagePosted) { e.Message = unknown }), "NOT_PERMITTED"},
		{"a message for another", events.OutboxCopy, v.fae.id, forgedMessage(func(e *events.MessagePosted) { e.To = v.worker.id }), "NOT_PERMITTED"},
		{"a message in an item of an outcome", events.OutboxOutcome, v.fae.id, v.message(v.fae.id, v.faeGrant), "INVALID_ARGUMENT"},
		{"minting without a grant", events.OutboxMint, v.worker.id, mint(v.worker.id, none, capabilities.Facet{}), "NOT_PERMITTED"},
		{"minting by a grant for another agent", events.OutboxMint, v.worker.id, mint(v.worker.id, v.faeGrant, capabilities.Facet{}), "NOT_PERMITTED"},
		{"minting by a revoked grant", events.OutboxMint, v.formerlyGranted.id, mint(v.formerlyGranted.id, v.revokedGrant, capabilities.Facet{}), "NOT_PERMITTED"},
		{"minting more than its grant", events.OutboxMint, v.askOnly.id, mint(v.askOnly.id, v.askOnlyGrant, capabilities.Facet{}), "NOT_PERMITTED"},
		{"minting from a grant with limited uses", events.OutboxMint, v.limited.id, mint(v.limited.id, v.limitedGrant, capabilities.Facet{Uses: 1}), "NOT_PERMITTED"},
		{"minting an unknown facet", events.OutboxMint, v.fae.id, mint(v.fae.id, v.faeGrant, capabilities.Facet{Mode: "more"}), "INVALID_ARGUMENT"},
		{"minting another agent's grant", events.OutboxMint, v.fae.id, mint(v.worker.id, v.faeGrant, capabilities.Facet{}), "NOT_PERMITTED"},
		{"minting in the victim's name", events.OutboxMint, v.fae.id, forgedMint(func(g *capabilities.Grant) { g.By = v.fae.id }), "NOT_PERMITTED"},
		{"minting in its host's name", events.OutboxMint, v.fae.id, forgedMint(func(g *capabilities.Grant) { g.By, g.Parent = host, none }), "NOT_PERMITTED"},
		{"minting under an ID of the victim's", events.OutboxMint, v.fae.id, forgedMint(func(g *capabilities.Grant) { g.ID = unknown }), "NOT_PERMITTED"},
		{"minting without a recipient", events.OutboxMint, v.fae.id, forgedMint(func(g *capabilities.Grant) { g.To = none }), "NOT_PERMITTED"},
		{"minting a grant of a form", events.OutboxMint, v.fae.id, forgedMint(func(g *capabilities.Grant) { g.Kind = capabilities.KindForm }), "NOT_PERMITTED"},
		{"settling an unknown form", events.OutboxAnswer, v.fae.id, &events.AnswerQueued{Form: unknown, Values: capabilities.Record(nil)}, "NO_SUCH_MESSAGE"},
		{"forwarding an unknown form", events.OutboxForward, v.fae.id, &events.FormForwarded{Form: unknown, By: v.host, To: other}, "NO_SUCH_MESSAGE"},
		{"forwarding in the victim's name", events.OutboxForward, v.fae.id, &events.FormForwarded{Form: unknown, By: v.fae.id, To: other}, "NOT_PERMITTED"},
		{"the outcome of an unknown form", events.OutboxOutcome, v.fae.id, &events.FormCancelled{Form: unknown, By: v.host, Reason: events.Cancelled}, "NO_SUCH_MESSAGE"},
		{"revoking another's grant", events.OutboxRevocation, v.fae.id, &events.CapabilityRevoked{Grant: v.faeGrant, By: v.host, Date: 1}, "NOT_PERMITTED"},
		{"revoking in another's name", events.OutboxRevocation, v.fae.id, &events.CapabilityRevoked{Grant: v.newID(), By: other, Date: 1}, "NOT_PERMITTED"},
		{"an event that grants a capability", events.OutboxMint, v.fae.id, &events.CapabilityGranted{Grant: capabilities.Grant{ID: v.newID(), By: v.host}}, "INVALID_ARGUMENT"},
		{"an event that binds a name", events.OutboxCopy, v.fae.id, &events.NameBound{Name: "x", Value: capabilities.Int(1)}, "INVALID_ARGUMENT"},
		{"an event that archives an agent", events.OutboxCopy, v.fae.id, &events.AgentArchived{By: v.host}, "INVALID_ARGUMENT"},
		{"an event that adds a peer", events.OutboxCopy, host, &events.NodeMet{Node: v.id}, "INVALID_ARGUMENT"},
		{"an item of an unknown kind", 99, v.fae.id, v.message(v.fae.id, v.faeGrant), "INVALID_ARGUMENT"},
	} {
		v.runCase(t, c.what, func() {
			v.checkNoEvents(func() { v.wantRefused(v.deliver(c.kind, c.to, c.e), c.code) })
		})
	}
	v.checkResponsive()
}
