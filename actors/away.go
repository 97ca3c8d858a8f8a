package actors

import (
	"context"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// homePatience is how long one who answers, or hands on, waits for a home on another node before it is told
// that what it said is kept.
const homePatience = 2 * time.Second

// away is what an agent says to a form whose home is on another node.
type away struct {
	settle mailbox.SettleForm
	home   capabilities.ID
	place  place
	number uint64
}

// away makes of a settlement what is to be said to its home on another node.
func (b *box) away(home capabilities.ID, c mailbox.SettleForm) (*away, error) {
	m, err := b.state.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	return &away{settle: c, home: home, place: place{b.seat.id, c.Form}, number: m.Number}, nil
}

// say takes a settlement to its home on another node: at once, if that is in reach and has to know nothing
// first, or else by way of the agent's own log. It does so for one settlement of a form by the agent after the other.
func (a *Agent) say(ctx context.Context, w away) (Outcome, error) {
	done, err := a.takeTurn(ctx, w)
	if err != nil {
		return Outcome{}, err
	}
	defer done()
	learned := make(chan result[Outcome], 1)
	a.node.waits.add(w.place, learned)
	defer a.node.waits.drop(w.place, learned)
	p := a.node.peers.of(w.home.Node)
	if len(w.settle.Grants) == 0 && p.inReach(ctx) {
		v, err := a.sayAtOnce(ctx, w, p)
		switch {
		case err != nil:
			return Outcome{}, err
		case v.err == nil:
			return a.heard(ctx, w, v, learned)
		case ctx.Err() != nil:
			return Outcome{}, errEnded(ctx)
		case parley.CodeOf(v.err) != parley.NodeUnreachable:
			return Outcome{}, v.err
		}
	}
	return a.keepAnswer(ctx, w, p, learned, done)
}

// takeTurn waits until the agent sends nothing else to the form. It refuses with ANSWER_PENDING when that takes long.
func (a *Agent) takeTurn(ctx context.Context, w away) (done func(), err error) {
	done, before, err := a.node.settlements.begin(ctx, w.place, a.node.now())
	switch {
	case err == nil && before == 0:
		return done, nil
	case ctx.Err() != nil:
		return nil, errEnded(ctx)
	}
	_, unfit := visitFor(ctx, a, func(b *box) (struct{}, error) {
		if err := b.state.MaySettle(w.settle.Form); err != nil || done != nil {
			return struct{}{}, err
		}
		return struct{}{}, b.state.Pending(w.settle.Form, before)
	})
	if unfit != nil && done != nil {
		done()
	}
	return done, unfit
}

// sayAtOnce gives what the home says to a settlement that is not kept here.
func (a *Agent) sayAtOnce(ctx context.Context, w away, p *peer) (verdict, error) {
	parcel, err := packParcel(mailbox.OutboxItem{Kind: events.OutboxAnswer, To: w.home}, a.id, mailbox.Pack(w.settle))
	if err != nil {
		return verdict{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, homePatience)
	defer cancel()
	return p.say(ctx, parcel), nil
}

// heard gives the outcome when the home has settled by what the agent said: as the agent's own copy has it,
// unless the news takes long.
func (a *Agent) heard(ctx context.Context, w away, v verdict, learned <-chan result[Outcome]) (Outcome, error) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case r := <-learned:
		if r.err == nil {
			return r.value, nil
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	o := Outcome{Status: StatusAnswered, Form: w.settle.Form, By: a.id, ByName: "SELF", At: v.at, Note: w.settle.Note}
	if w.settle.Reason != "" {
		o.Status = Status(w.settle.Reason)
		return o, nil
	}
	o.Values = w.settle.Masked()
	return o, nil
}

// keepAnswer writes down what the agent says, and waits a while for what becomes of it. It calls kept once the state
// shows that something is on its way.
func (a *Agent) keepAnswer(ctx context.Context, w away, p *peer, learned <-chan result[Outcome], kept func()) (Outcome, error) {
	judged := make(chan result[Outcome], 1)
	a.node.waits.judge(w.place, judged)
	defer a.node.waits.unjudge(w.place, judged)
	said, err := visitFor(ctx, a, func(b *box) (Outcome, error) {
		if _, err := b.decide(mailbox.QueueAnswer{Answer: w.settle}); err != nil {
			return Outcome{}, err
		}
		m, err := b.state.FindFormID(w.settle.Form)
		if err != nil {
			return Outcome{}, err
		}
		if !m.Form.IsOpen() { // it was said before, and the word that it had arrived was lost
			return b.view().outcome(m.Form, true)
		}
		return Outcome{Status: StatusAnswering, Form: m.ID(), Promise: m.Form.Promise, By: a.id, ByName: "SELF", At: m.Form.QueuedAnswer.Date}, nil
	})
	kept()
	if err != nil || said.Status != StatusAnswering || !p.reachable.Load() {
		return said, err
	}
	timer := time.NewTimer(homePatience)
	defer timer.Stop()
	select {
	case r := <-learned:
		return a.ownOutcome(r, w)
	case r := <-judged:
		return r.value, r.err
	case <-timer.C:
	case <-ctx.Done():
	}
	return said, nil
}

// ownOutcome gives a form's end to one who said something to it: an error, if it ended by anything else.
func (a *Agent) ownOutcome(r result[Outcome], w away) (Outcome, error) {
	if r.err != nil || r.value.answer == w.settle.Answer {
		return r.value, r.err
	}
	code := map[Status]parley.Code{
		StatusAnswered: parley.AlreadyAnswered, StatusDeclined: parley.AlreadyDeclined, StatusExpired: parley.AlreadyExpired,
	}[r.value.Status]
	if code == "" {
		code = parley.AlreadyCancelled
	}
	by := r.value.By.String()
	if r.value.By.IsZero() {
		by = "its deadline"
	}
	return Outcome{}, parley.Refuse(code, "form %d was %s by %s at %s", w.number, r.value.Status, by, r.value.At)
}

// handOn forwards a form whose home is on another node, by way of the agent's own log.
func (a *Agent) handOn(ctx context.Context, w Which, to string) error {
	judged := make(chan result[Outcome], 1)
	var at place
	var home capabilities.NodeID
	_, err := visitFor(ctx, a, func(b *box) (struct{}, error) {
		evs, err := b.decide(mailbox.QueueForward{Which: string(w), To: to})
		if err != nil {
			return struct{}{}, err
		}
		for _, e := range evs {
			if g, ok := e.(*events.CapabilityGranted); ok {
				at, home = place{a.id, g.Grant.ID}, g.Grant.To.Node
				b.node.waits.judge(at, judged)
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return err
	}
	defer a.node.waits.unjudge(at, judged)
	if p := a.node.peers.of(home); !p.reachable.Load() {
		return nil
	}
	timer := time.NewTimer(homePatience)
	defer timer.Stop()
	select {
	case r := <-judged:
		return r.err
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}
