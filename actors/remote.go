package actors

import (
	"context"
	"sync"
	"time"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// homePatience is how long a caller that answers or forwards waits for a home on another node. After that it learns
// that the answer is queued.
const homePatience = 2 * time.Second

// remoteSettlement answers or declines a form homed on another node.
type remoteSettlement struct {
	settle mailbox.SettleForm
	home   capabilities.ID
	key    formKey
	number uint64

	agent *Agent      // that settles
	peer  *peers.Peer // the home's node
}

// newRemoteSettlement returns the settlement of a form homed on another node.
func newRemoteSettlement(b *mailboxActor, home capabilities.ID, c mailbox.SettleForm) (*remoteSettlement, error) {
	m, err := b.formOf(c.Form)
	if err != nil {
		return nil, err
	}
	return &remoteSettlement{settle: c, home: home, key: formKey{b.reg.id, c.Form}, number: m.Number}, nil
}

// send sends the settlement to its home: directly, if the home is reachable and needs no grant first, or else through the
// agent's own log. It sends one settlement of a form by the agent at a time.
func (w *remoteSettlement) send(ctx context.Context, a *Agent) (view.Outcome, error) {
	w.agent, w.peer = a, a.node.peers.Peer(w.home.Node)
	done, err := w.takeTurn(ctx)
	if err != nil {
		return view.Outcome{}, err
	}
	defer done()
	ended := make(chan result[view.Outcome], 1)
	defer a.node.ended.drop(a.node.ended.wait(w.key, ended))
	if len(w.settle.Grants) == 0 && w.peer.InReach(ctx) {
		item, err := peers.PackItem(mailbox.OutboxItem{Kind: events.OutboxAnswer, To: w.home}, a.id, mailbox.Pack(w.settle))
		if err != nil {
			return view.Outcome{}, err
		}
		at, err := w.sendDirect(ctx, item)
		switch {
		case err == nil:
			return w.awaitOutcome(ctx, at, ended)
		case ctx.Err() != nil:
			return view.Outcome{}, errEnded(ctx)
		case parley.CodeOf(err) != parley.NodeUnreachable:
			return view.Outcome{}, err
		}
	}
	return w.queue(ctx, ended, done)
}

// takeTurn blocks while the agent sends another settlement of the form. It refuses with ANSWER_PENDING when that takes
// long.
func (w *remoteSettlement) takeTurn(ctx context.Context) (done func(), err error) {
	n := w.agent.node
	done, before, err := n.settlements.begin(ctx, w.key, n.now())
	switch {
	case err == nil && before == 0:
		return done, nil
	case ctx.Err() != nil:
		return nil, errEnded(ctx)
	}
	_, unfit := call(ctx, w.agent, checkSettlement{form: w.settle.Form, since: before, first: done != nil})
	if unfit != nil && done != nil {
		done()
	}
	return done, unfit
}

// checkSettlement refuses a settlement of a form that has ended, and one that is not first with ANSWER_PENDING.
type checkSettlement struct {
	form  capabilities.ID
	since capabilities.Time // of the settlement before
	first bool
}

func (m checkSettlement) handle(b *mailboxActor) (none, error) {
	if err := b.state.MaySettle(m.form); err != nil || m.first {
		return none{}, err
	}
	return none{}, b.state.Mail.Pending(m.form, m.since)
}

// sendDirect returns the home's reply to a settlement that is not in this node's log.
func (w *remoteSettlement) sendDirect(ctx context.Context, item peers.Item) (at capabilities.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, homePatience)
	defer cancel()
	return w.peer.SendDirect(ctx, item)
}

// awaitOutcome returns the outcome of a form that its home has settled at a time. It is the outcome of the agent's own
// copy, unless that takes long.
func (w *remoteSettlement) awaitOutcome(ctx context.Context, at capabilities.Time, ended <-chan result[view.Outcome]) (view.Outcome, error) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case r := <-ended:
		if r.err == nil {
			return r.value, nil
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	o := view.Outcome{Status: view.StatusAnswered, Form: w.settle.Form, By: w.agent.id, ByName: "SELF", At: at, Note: w.settle.Note}
	if w.settle.Reason != "" {
		o.Status = view.FormStatus(w.settle.Reason)
		return o, nil
	}
	o.Values = w.settle.Masked()
	return o, nil
}

// queue records the settlement in the agent's log, and waits up to homePatience for its result. It calls recorded once
// the state shows that a settlement is on its way.
func (w *remoteSettlement) queue(ctx context.Context, ended <-chan result[view.Outcome], recorded func()) (view.Outcome, error) {
	n := w.agent.node
	acked := make(chan error, 1)
	defer n.remoteAcks.drop(n.remoteAcks.wait(w.key, acked))
	queued, err := call(ctx, w.agent, queueAnswer{w.settle})
	recorded()
	if err != nil || queued.Status != view.StatusAnswering || !w.peer.Reachable() {
		return queued, err
	}
	timer := time.NewTimer(homePatience)
	defer timer.Stop()
	select {
	case r := <-ended:
		return w.ownOutcome(r)
	case err := <-acked:
		return view.Outcome{}, err
	case <-timer.C:
	case <-ctx.Done():
	}
	return queued, nil
}

// queueAnswer records a settlement in the agent's log, from where it is sent to its home.
type queueAnswer struct{ settle mailbox.SettleForm }

func (m queueAnswer) handle(b *mailboxActor) (view.Outcome, error) {
	if _, err := b.decide(mailbox.QueueAnswer{Answer: m.settle}); err != nil {
		return view.Outcome{}, err
	}
	msg, err := b.state.Mail.FindFormID(m.settle.Form)
	if err != nil {
		return view.Outcome{}, err
	}
	if f := msg.Form; f.IsOpen() {
		return view.Outcome{Status: view.StatusAnswering, Form: f.ID, Promise: f.Promise, By: b.reg.id, ByName: "SELF", At: f.QueuedAnswer.Date}, nil
	}
	return b.outcomeOf(msg.Form, true) // it was sent before, and the ack was lost
}

// ownOutcome returns the outcome of a form, or an error if another settlement has ended it.
func (w *remoteSettlement) ownOutcome(r result[view.Outcome]) (view.Outcome, error) {
	if r.err != nil || r.value.Settlement == w.settle.Answer {
		return r.value, r.err
	}
	code := map[view.FormStatus]parley.Code{
		view.StatusAnswered: parley.AlreadyAnswered, view.StatusDeclined: parley.AlreadyDeclined, view.StatusExpired: parley.AlreadyExpired,
	}[r.value.Status]
	if code == "" {
		code = parley.AlreadyCancelled
	}
	by := r.value.By.String()
	if r.value.By.IsZero() {
		by = "its deadline"
	}
	return view.Outcome{}, parley.Refuse(code, "form %d was %s by %s at %s", w.number, r.value.Status, by, r.value.At)
}

// sendForward forwards a form homed on another node, through the agent's own log.
func sendForward(ctx context.Context, a *Agent, ref capabilities.FormRef, to string) error {
	acked := make(chan error, 1)
	waiting := &waiter[formKey, error]{ch: acked}
	defer a.node.remoteAcks.drop(waiting)
	grant, err := call(ctx, a, queueForward{mailbox.QueueForward{Form: ref, To: to}, waiting})
	if err != nil {
		return err
	}
	if p := a.node.peers.Peer(grant.To.Node); !p.Reachable() {
		return nil
	}
	timer := time.NewTimer(homePatience)
	defer timer.Stop()
	select {
	case err := <-acked:
		return err
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// queueForward records a forward in the agent's log, from where it is sent to the form's home. It adds the waiter for the
// ack of the grant that goes with it, and returns that grant.
type queueForward struct {
	command mailbox.QueueForward
	waiting *waiter[formKey, error]
}

func (m queueForward) handle(b *mailboxActor) (grant capabilities.Grant, err error) {
	evs, err := b.decide(m.command)
	if err != nil {
		return grant, err
	}
	for _, e := range evs {
		if g, ok := e.(*events.CapabilityGranted); ok {
			grant = g.Grant
			b.node.remoteAcks.add(formKey{b.reg.id, grant.ID}, m.waiting)
		}
	}
	return grant, nil
}

// settlements are the settlements that are being sent to forms homed on other nodes. There is at most one of an agent
// and form, so each gets its own result.
type settlements struct {
	mu  sync.Mutex
	now map[formKey]*sending
}

// sending is a settlement that is being sent.
type sending struct {
	since capabilities.Time
	over  chan struct{} // closed when it is sent or kept
}

func newSettlements() *settlements { return &settlements{now: map[formKey]*sending{}} }

// begin blocks until nothing else is being sent to a form. Done ends the turn that begins then; further calls do
// nothing. Before, if not zero, is when the settlement that it waited for began. After homePatience it returns the
// error of an expired context.
func (s *settlements) begin(ctx context.Context, p formKey, now capabilities.Time) (done func(), before capabilities.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, homePatience)
	defer cancel()
	for {
		other := s.enter(p, now)
		if other == nil {
			return sync.OnceFunc(func() { s.leave(p) }), before, nil
		}
		before = other.since
		select {
		case <-other.over:
		case <-ctx.Done():
			return nil, before, ctx.Err()
		}
	}
}

// enter begins to send a settlement, or returns the one that is being sent.
func (s *settlements) enter(p formKey, now capabilities.Time) *sending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.now[p]; other != nil {
		return other
	}
	s.now[p] = &sending{since: now, over: make(chan struct{})}
	return nil
}

func (s *settlements) leave(p formKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.now[p].over)
	delete(s.now, p)
}
