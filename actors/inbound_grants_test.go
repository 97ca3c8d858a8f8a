package actors

import (
	"testing"

	"parley/capabilities"
	"parley/events"
)

// hostileHarness is what stands around the victim's host in these tests.
type hostileHarness struct {
	*hostileNode
	fae, worker, askOnly, limited, formerlyGranted *Agent
	faeGrant                                       capabilities.ID // grants of the hostile node: all of fae,
	askOnlyGrant                                   capabilities.ID // asked, to ask only,
	limitedGrant                                   capabilities.ID // twice, for two uses,
	revokedGrant                                   capabilities.ID // and lost, no more. It was never given worker.
}

func newHostileHarness(t *testing.T) *hostileHarness {
	n := openVictim(t)
	h := n.Host()
	v := &hostileHarness{
		fae: guest(t, n, "fae"), worker: guest(t, n, "worker"), askOnly: guest(t, n, "asked"), limited: guest(t, n, "twice"), formerlyGranted: guest(t, n, "lost"),
	}
	v.hostileNode = newHostilePeer(t, n, "hostile")
	narrow := func(from, to string, f capabilities.Facet) {
		if err := h.Names().Copy(t.Context(), from, to, f); err != nil {
			t.Fatal(err)
		}
	}
	narrow("asked", "asked-only", capabilities.Facet{Mode: capabilities.AskOnly})
	narrow("twice", "twice-only", capabilities.Facet{Uses: 2})
	v.faeGrant, v.askOnlyGrant, v.limitedGrant, v.revokedGrant = v.receiveGrant("fae"), v.receiveGrant("asked-only"), v.receiveGrant("twice-only"), v.receiveGrant("lost")
	if err := h.Names().Revoke(t.Context(), v.revokedGrant); err != nil {
		t.Fatal(err)
	}
	awaitEvent[*events.CapabilityRevoked](v.hostileNode)
	v.waitIdle()
	return v
}

// run is t.Run whose test the hostile node fails.
func (m *hostileNode) runCase(t *testing.T, what string, attack func()) {
	t.Run(what, func(t *testing.T) {
		all := m.TB
		m.TB = t
		defer func() { m.TB = all }()
		attack()
	})
}

func TestItemsWithoutValidGrantAreRefused(t *testing.T) {
	v := newHostileHarness(t)
	host, none := v.victim.host, capabilities.ID{}
	stranger := capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
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
		{"a form for one it was never given", events.OutboxCopy, v.worker.id, v.form(v.worker.id, none), "NOT_PERMITTED"},
		{"a message for one it was never given", events.OutboxCopy, v.worker.id, v.message(v.worker.id, none), "NOT_PERMITTED"},
		{"by a grant of another agent", events.OutboxCopy, v.worker.id, v.form(v.worker.id, v.faeGrant), "NOT_PERMITTED"},
		{"by a grant that it made up", events.OutboxCopy, v.worker.id, v.form(v.worker.id, v.newID()), "NOT_PERMITTED"},
		{"by a grant that the victim might have made", events.OutboxCopy, v.worker.id, v.form(v.worker.id, stranger), "NOT_PERMITTED"},
		{"without showing its grant", events.OutboxCopy, v.fae.id, v.form(v.fae.id, none), "NOT_PERMITTED"},
		{"by a grant that was revoked", events.OutboxCopy, v.formerlyGranted.id, v.form(v.formerlyGranted.id, v.revokedGrant), "NOT_PERMITTED"},
		{"a message by a reference for asking only", events.OutboxCopy, v.askOnly.id, v.message(v.askOnly.id, v.askOnlyGrant), "NOT_PERMITTED"},
		{"for nobody", events.OutboxCopy, stranger, v.form(stranger, none), "AGENT_NOT_FOUND"},
		{"a form from the one it is for", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.From = v.fae.id }), "NOT_PERMITTED"},
		{"a form from the victim's host", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.From = host }), "NOT_PERMITTED"},
		{"a form from another agent of its own", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.From = other }), "NOT_PERMITTED"},
		{"a form with IDs of the victim's", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.Promise = stranger }), "NOT_PERMITTED"},
		{"a form that went elsewhere", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.To = v.worker.id }), "NOT_PERMITTED"},
		{"a form handed on in a circle", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) {
			e.To, e.Chain, e.Forwarder = v.worker.id, make([]capabilities.ID, 1000), v.worker.id
		}), "TOO_LARGE"},
		{"a form without fields", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) { e.Fields = nil }), "INVALID_FORM"},
		{"a form with a capability in it", events.OutboxCopy, v.fae.id, forged(func(e *events.FormRequested) {
			e.Fields[0].Type, e.Fields[0].Default = events.Capability, capabilities.Reference(agentRef(v.worker.id, none))
		}), "INVALID_FORM"},
		{"a message from the victim's host", events.OutboxCopy, v.fae.id, forgedMessage(func(e *events.MessagePosted) { e.From = host }), "NOT_PERMITTED"},
		{"a message with an ID of the victim's", events.OutboxCopy, v.fae.id, forgedMessage(func(e *events.MessagePosted) { e.Message = stranger }), "NOT_PERMITTED"},
		{"a message for another", events.OutboxCopy, v.fae.id, forgedMessage(func(e *events.MessagePosted) { e.To = v.worker.id }), "NOT_PERMITTED"},
		{"a message in an item of an outcome", events.OutboxOutcome, v.fae.id, v.message(v.fae.id, v.faeGrant), "INVALID_ARGUMENT"},
		{"minting what it does not hold", events.OutboxMint, v.worker.id, mint(v.worker.id, none, capabilities.Facet{}), "NOT_PERMITTED"},
		{"minting by another's target", events.OutboxMint, v.worker.id, mint(v.worker.id, v.faeGrant, capabilities.Facet{}), "NOT_PERMITTED"},
		{"minting what was revoked", events.OutboxMint, v.formerlyGranted.id, mint(v.formerlyGranted.id, v.revokedGrant, capabilities.Facet{}), "NOT_PERMITTED"},
		{"minting more than it holds", events.OutboxMint, v.askOnly.id, mint(v.askOnly.id, v.askOnlyGrant, capabilities.Facet{}), "NOT_PERMITTED"},
		{"minting from what is for some uses", events.OutboxMint, v.limited.id, mint(v.limited.id, v.limitedGrant, capabilities.Facet{Uses: 1}), "NOT_PERMITTED"},
		{"minting an unknown facet", events.OutboxMint, v.fae.id, mint(v.fae.id, v.faeGrant, capabilities.Facet{Mode: "more"}), "INVALID_ARGUMENT"},
		{"minting of another at one", events.OutboxMint, v.fae.id, mint(v.worker.id, v.faeGrant, capabilities.Facet{}), "NOT_PERMITTED"},
		{"minting in the victim's name", events.OutboxMint, v.fae.id, forgedMint(func(g *capabilities.Grant) { g.By = v.fae.id }), "NOT_PERMITTED"},
		{"minting in its host's name", events.OutboxMint, v.fae.id, forgedMint(func(g *capabilities.Grant) { g.By, g.Parent = host, none }), "NOT_PERMITTED"},
		{"minting under an ID of the victim's", events.OutboxMint, v.fae.id, forgedMint(func(g *capabilities.Grant) { g.ID = stranger }), "NOT_PERMITTED"},
		{"minting for nobody", events.OutboxMint, v.fae.id, forgedMint(func(g *capabilities.Grant) { g.To = none }), "NOT_PERMITTED"},
		{"minting no agent", events.OutboxMint, v.fae.id, forgedMint(func(g *capabilities.Grant) { g.Kind = capabilities.KindForm }), "NOT_PERMITTED"},
		{"settling a form that is not there", events.OutboxAnswer, v.fae.id, &events.AnswerQueued{Form: stranger, Values: capabilities.Record(nil)}, "NO_SUCH_MESSAGE"},
		{"handing on a form that is not there", events.OutboxForward, v.fae.id, &events.FormForwarded{Form: stranger, By: v.host, To: other}, "NO_SUCH_MESSAGE"},
		{"handing on in the victim's name", events.OutboxForward, v.fae.id, &events.FormForwarded{Form: stranger, By: v.fae.id, To: other}, "NOT_PERMITTED"},
		{"news of a form that is not there", events.OutboxOutcome, v.fae.id, &events.FormCancelled{Form: stranger, Reason: events.Cancelled}, "NO_SUCH_MESSAGE"},
		{"revoking what another gave", events.OutboxRevocation, v.fae.id, &events.CapabilityRevoked{Grant: v.faeGrant, By: v.host, Date: 1}, "NOT_PERMITTED"},
		{"revoking in another's name", events.OutboxRevocation, v.fae.id, &events.CapabilityRevoked{Grant: v.newID(), By: other, Date: 1}, "NOT_PERMITTED"},
		{"a grant for the agent's books", events.OutboxMint, v.fae.id, &events.CapabilityGranted{Grant: capabilities.Grant{ID: v.newID(), By: v.host}}, "INVALID_ARGUMENT"},
		{"a name for the agent", events.OutboxCopy, v.fae.id, &events.NameBound{Name: "x", Value: capabilities.Int(1)}, "INVALID_ARGUMENT"},
		{"an agent to be archived", events.OutboxCopy, v.fae.id, &events.AgentArchived{By: v.host}, "INVALID_ARGUMENT"},
		{"a node to be met", events.OutboxCopy, host, &events.NodeMet{Node: v.id}, "INVALID_ARGUMENT"},
		{"an item of no kind", 99, v.fae.id, v.message(v.fae.id, v.faeGrant), "INVALID_ARGUMENT"},
	} {
		v.runCase(t, c.what, func() {
			v.checkNoEvents(func() { v.wantRefused(v.deliver(c.kind, c.to, c.e), c.code) })
		})
	}
	v.checkResponsive()
}
