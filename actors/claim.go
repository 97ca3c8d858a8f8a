package actors

import (
	"context"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// Claim has the agent be on a form for a time, or with 0 not any more. With takeOver it takes over the claim of another. It refuses with
// CLAIMED what another is on. It returns the claim that stands then; nil for none. A claim at a home that cannot be reached is queued.
func (m Mail) Claim(ctx context.Context, ref capabilities.FormRef, long time.Duration, takeOver bool) (view.Claimed, error) {
	a := m.agent
	var until capabilities.Time
	if long != 0 {
		until = a.node.clock().Add(long)
	}
	acked := make(chan error, 1)
	waiting := &waiter[formKey, error]{ch: acked}
	defer a.node.remoteAcks.drop(waiting)
	asked, err := callRelay(ctx, a, claimForm{ref, until, takeOver, waiting})
	if err != nil {
		return view.Claimed{}, err
	}
	queued := asked.remote
	if queued && a.node.peers.Peer(asked.home.Node).Reachable() {
		timer := time.NewTimer(homePatience)
		defer timer.Stop()
		select {
		case err := <-acked:
			if err != nil {
				return view.Claimed{}, err
			}
			queued = false
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	now, err := a.Message(ctx, capabilities.FormID(asked.form))
	if err != nil {
		return view.Claimed{}, err
	}
	if !queued && now.Claim == nil && until != 0 && now.Outcome == nil { // the home's word comes after its ack
		now.Claim = &view.Claim{By: a.id, ByName: "SELF", Until: until}
	}
	return view.Claimed{Form: asked.form, Number: now.Number, Claim: now.Claim, Queued: queued}, nil
}

// askedClaim is a claim that its form's home has decided on or, if that is on another node, that is on its way there.
type askedClaim struct {
	form, home capabilities.ID
	remote     bool
}

// claimForm claims a form at its home, or records in the agent's log that it is claimed there.
type claimForm struct {
	form     capabilities.FormRef
	until    capabilities.Time
	takeOver bool
	waiting  *waiter[formKey, error]
}

func (m claimForm) handle(b *mailboxActor, reply replyTo[askedClaim]) {
	var home capabilities.ID
	c, err := recalled(b.old, func() (c mailbox.ClaimForm, err error) {
		c, home, err = mailbox.DraftClaim(b.state, m.form, m.until, m.takeOver, b.node.clock())
		return c, err
	})
	asked := askedClaim{form: c.Form, home: home, remote: home.Node != b.node.id}
	switch {
	case err != nil:
		reply.release(b, asked, err)
	case asked.remote:
		b.node.remoteAcks.add(formKey{b.reg.id, c.Form}, m.waiting)
		_, err := b.decide(mailbox.QueueClaim{Claim: c})
		reply.release(b, asked, err)
	default:
		b.node.registry.tell(home, b.last, &claimAtHome{c, b.reg.id, asked, reply})
	}
}

// claimAtHome has a form's home decide on a claim, and then has the claimer's mailbox answer: it knows of the claim by then.
type claimAtHome struct {
	command mailbox.ClaimForm
	by      capabilities.ID
	asked   askedClaim
	reply   replyTo[askedClaim]
}

func (m *claimAtHome) handle(b *mailboxActor) {
	if _, err := b.decide(m.command); err != nil {
		m.reply.release(b, m.asked, err)
		return
	}
	b.node.registry.tell(m.by, b.last, &claimedAtHome{m.asked, m.reply})
}

func (m *claimAtHome) fail(err error) { m.reply.fail(err) }

type claimedAtHome struct {
	asked askedClaim
	reply replyTo[askedClaim]
}

func (m *claimedAtHome) handle(b *mailboxActor) { m.reply.release(b, m.asked, nil) }

func (m *claimedAtHome) fail(err error) { m.reply.fail(err) }

// claim returns who is on a form now; nil for nobody.
func (v *viewer) claim(f *mailbox.Form) *view.Claim {
	c := f.Claim(v.now)
	if c == nil {
		return nil
	}
	shown := &view.Claim{By: c.By, ByName: v.deciderOf(c.By), Until: c.Until, Since: c.Date}
	if !c.Was.IsZero() {
		shown.Was = &view.Party{ID: c.Was, Name: v.deciderOf(c.Was)}
	}
	return shown
}
