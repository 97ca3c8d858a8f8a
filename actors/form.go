package actors

import (
	"context"
	"slices"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// A call that waits long has two forms. BeginAsk and its like report to functions, which may not block: no goroutine waits, so a
// connection may have thousands of them. Ask and its like wait for that.

// Ask sends a form, and returns when it is durable; Await waits for the answer. A form that was asked before, by its
// Key or Name, is not sent again: Ask returns its present state.
func (a *Agent) Ask(ctx context.Context, ask parley.Form) (view.Asked, error) {
	reply := newReply[view.Asked]()
	BeginAsk(a, ask, reply.put, nil)
	return reply.wait(ctx, a.node)
}

// BeginAsk is Ask, and Await for what it asks unless ended is nil. It calls asked once, with the result of Ask. If that is neither an
// outcome nor an error, it calls ended once later, with the result of Await. It doesn't call ended after forget. A node that
// closes calls ended for no form that is open.
func BeginAsk(a *Agent, ask parley.Form, asked func(view.Asked, error), ended func(view.Outcome, error)) (forget func()) {
	return beginRequest(a, mailbox.RequestForm{Form: ask}, asked, ended)
}

// Send asks for a capability in words. Its answer is a record with that as "value".
func (rs Requests) Send(ctx context.Context, r parley.Request) (view.Asked, error) {
	reply := newReply[view.Asked]()
	rs.Begin(r, reply.put, nil)
	return reply.wait(ctx, rs.agent.node)
}

// Begin is Send, and Agent.Await for what it asks, as BeginAsk is.
func (rs Requests) Begin(r parley.Request, asked func(view.Asked, error), ended func(view.Outcome, error)) (forget func()) {
	return beginRequest(rs.agent, requestFor(r), asked, ended)
}

// requestFor returns a request for a capability as the form that it is.
func requestFor(r parley.Request) mailbox.RequestForm {
	return mailbox.RequestForm{Kind: events.Request, Form: parley.Form{
		To: r.To, Description: r.Text, Deadline: r.Deadline, NoForward: r.NoForward, Key: r.Key, Name: r.Name, Passkey: r.Passkey,
	}}
}

func beginRequest(a *Agent, ask mailbox.RequestForm, asked func(view.Asked, error), ended func(view.Outcome, error)) (forget func()) {
	w, forget := beginWait(a, ended)
	beginAsk(a, requestForm{ask, a.reveals(), w.waiting()}, w, func(v *view.Asked) *view.Asked { return v }, asked)
	return forget
}

// requestForm sends a form, or finds one that was sent before. With reveal, the outcome of that is unsealed. If the form is
// open, it adds the waiter for its outcome, if there is one.
type requestForm struct {
	mailbox.RequestForm
	reveal  bool
	waiting *outcomes
}

func (m requestForm) handle(b *mailboxActor) (pending[view.Asked], error) {
	if known, ok, err := m.FindExisting(b.state); err != nil {
		return pending[view.Asked]{}, err
	} else if ok {
		asked, err := knownAsk(b, m.RequestForm, known, m.reveal)
		if err == nil && asked.Outcome == nil {
			b.addWaiter(asked.Form, m.waiting)
		}
		return pending[view.Asked]{result: asked}, err
	}
	if m.Kind == events.PlainForm {
		var err error
		if m.Schema, err = compileFields(b.node, b.reg.id, m.Fields); err != nil {
			return pending[view.Asked]{}, err
		}
	}
	evs, err := b.decide(m.RequestForm)
	if err != nil {
		return pending[view.Asked]{}, err
	}
	e := evs[len(evs)-1].(*events.FormRequested) // behind that it is queued, if it is
	b.addWaiter(e.ID, m.waiting)
	sent := pending[view.Asked]{view.Asked{Form: e.ID, Promise: e.Promise, Number: e.Number}, nodesTo(b, e.To)}
	if len(evs) > 1 { // it is queued
		sent.result.Promised, err = promisedOf(b, e.ID)
	}
	return sent, err
}

// addWaiter adds a waiter for the outcome of a form that is open. Nil is none.
func (b *mailboxActor) addWaiter(form capabilities.ID, w *outcomes) {
	if w != nil {
		b.node.ended.add(formKey{b.reg.id, form}, w)
	}
}

// pending is an accepted message or form, and the other nodes that have to be reachable for it to arrive.
type pending[T any] struct {
	result T
	waits  []capabilities.NodeID
}

func nodesTo(b *mailboxActor, to capabilities.ID) []capabilities.NodeID {
	if to.Node == b.node.id {
		return nil
	}
	return append(b.state.HeldFor(to), to.Node)
}

// anyUnreachable reports whether one of some other nodes cannot be reached now.
func anyUnreachable(n *Node, ctx context.Context, nodes []capabilities.NodeID) bool {
	return slices.ContainsFunc(nodes, func(id capabilities.NodeID) bool { return id != n.id && !n.peers.Peer(id).InReach(ctx) })
}

// knownAsk returns the result of an earlier request for the same form.
func knownAsk(b *mailboxActor, ask mailbox.RequestForm, k mailbox.Existing, reveal bool) (view.Asked, error) {
	if k.Message == nil {
		return boundOutcome(b, ask, k.Value, reveal)
	}
	f := k.Message.Form
	asked := view.Asked{Form: f.ID, Promise: f.Promise, Number: k.Message.Number}
	if f.IsOpen() {
		asked.Promised = b.viewer().promised(k.Message)
		return asked, nil
	}
	outcome, err := b.outcomeOf(f, reveal)
	asked.Outcome = &outcome
	return asked, err
}

// boundOutcome returns the value that the request's name already has, as its answer.
func boundOutcome(b *mailboxActor, ask mailbox.RequestForm, v capabilities.Value, reveal bool) (view.Asked, error) {
	if reveal {
		var err error
		if v, err = b.node.secrets.Open(v); err != nil {
			return view.Asked{}, err
		}
	}
	outcome := view.Outcome{Status: view.StatusAnswered, Values: v}
	if _, isRecord := v.AsRecord(); !isRecord || ask.Kind == events.Request {
		outcome.Values = capabilities.Record(map[string]capabilities.Value{"value": v})
		outcome.Order = []string{"value"}
	}
	for _, f := range ask.Fields {
		outcome.Order = append(outcome.Order, f.Name)
	}
	return view.Asked{Outcome: &outcome}, nil
}

// Await blocks until a form that the agent asked, or was asked, has ended. It may be called at any time, and as often as
// wanted. Secret values are unsealed only for the asker, and for a token only if its scopes include that.
func (a *Agent) Await(ctx context.Context, ref capabilities.FormRef) (view.Outcome, error) {
	return awaitEnd(ctx, a, ref, nil)
}

// AwaitQuestion is Agent.Await for a form that the agent asked, which also ends when one who may answer it has asked back: with the
// status asked and the number of the message, which is higher than after. A question counts until the agent has replied in its thread.
func (m Mail) AwaitQuestion(ctx context.Context, ref capabilities.FormRef, after uint64) (view.Outcome, error) {
	return awaitEnd(ctx, m.agent, ref, &after)
}

// awaitEnd waits for a form's outcome and, unless asked is nil, for a question after the one with that number.
func awaitEnd(ctx context.Context, a *Agent, ref capabilities.FormRef, asked *uint64) (o view.Outcome, err error) {
	reply := newReply[view.Outcome]()
	defer BeginAwait(a, ref, asked, reply.put)()
	select {
	case got := <-reply.ch:
		return got.value, got.err
	case <-ctx.Done():
		err = errEnded(ctx, a.node)
	case <-a.node.life.Done():
		err = errClosing()
	}
	select {
	case got := <-reply.ch: // just then
		return got.value, got.err
	default:
		return view.Outcome{Status: view.StatusOpen}, err
	}
}

// BeginAwait is Await or, unless asked is nil, AwaitQuestion after the question with that number. It calls ended once, unless
// forget is called first.
func BeginAwait(a *Agent, ref capabilities.FormRef, asked *uint64, ended func(view.Outcome, error)) (forget func()) {
	waiting := outcomeWaiter(a, ended)
	waiting.asked = asked
	wait := func() {
		begin(a, awaitForm{ref, waiting, asked, a.reveals()}, func(first view.Outcome, err error) {
			if err != nil || first.Status != view.StatusOpen {
				ended(first, err)
			}
		})
	}
	look := func() { // it may have ended before the disk hung
		over, err := whileStuck(a.node.life, a, awaitForm{ref, nil, asked, a.reveals()})
		if err != nil || over.Status == view.StatusOpen {
			wait()
			return
		}
		ended(over, nil)
	}
	if !isStuck(a.node) || !a.node.run(look) {
		wait()
	}
	return func() { a.node.ended.drop(waiting) }
}

// awaitForm returns the outcome of a form, or unless asked is nil a question after the one with that number. If there is neither, it
// adds the waiter for them, if there is one.
type awaitForm struct {
	form    capabilities.FormRef
	waiting *outcomes // may be nil
	asked   *uint64
	reveal  bool
}

func (m awaitForm) handle(b *mailboxActor) (view.Outcome, error) {
	msg, err := b.state.Mail.FindForm(m.form)
	if err != nil {
		return view.Outcome{}, err
	}
	if !msg.Form.IsOpen() {
		return b.outcomeOf(msg.Form, m.reveal)
	}
	o := view.Outcome{Status: view.StatusOpen, Form: msg.ID(), Promise: msg.Form.Promise}
	if m.asked != nil {
		if o, err = b.question(msg, *m.asked); err != nil || o.Status != view.StatusOpen {
			return o, err
		}
	}
	b.addWaiter(msg.ID(), m.waiting)
	return o, nil
}

// queryOutcome returns the outcome of a form. With reveal, the asker's secrets are unsealed.
type queryOutcome struct {
	form   capabilities.ID
	reveal bool
}

func (m queryOutcome) handle(b *mailboxActor) (view.Outcome, error) {
	msg, err := b.state.Mail.FindFormID(m.form)
	if err != nil {
		return view.Outcome{}, err
	}
	return b.outcomeOf(msg.Form, m.reveal)
}

// Cancel cancels a form that the agent asked, or ends a message or a use that waits for the answer of one and was not sent.
func (a *Agent) Cancel(ctx context.Context, ref capabilities.FormRef, reason string) (view.Outcome, error) {
	return call(ctx, a, cancelForm{mailbox.CancelForm{Form: ref, Reason: reason}})
}

type cancelForm struct{ command mailbox.CancelForm }

func (m cancelForm) handle(b *mailboxActor) (view.Outcome, error) {
	_, err := b.decide(m.command)
	if code := parley.CodeOf(err); code == parley.NotAForm || code == parley.NoSuchMessage {
		return cancelQueued(b, m.command, err)
	}
	if err != nil {
		return view.Outcome{}, err
	}
	msg, err := b.state.Mail.FindForm(m.command.Form)
	if err != nil {
		return view.Outcome{}, err
	}
	return b.outcomeOf(msg.Form, true)
}

// Amend corrects the question of an open form that the agent asked. Nil parts stay as they are. Answers to an earlier
// revision are refused. It returns the form as it is now.
func (a *Agent) Amend(ctx context.Context, ref capabilities.FormRef, m parley.Amendment) (view.Message, error) {
	return call(ctx, a, amendForm{mailbox.AmendForm{Form: ref, Amendment: m}})
}

type amendForm struct{ mailbox.AmendForm }

func (m amendForm) handle(b *mailboxActor) (view.Message, error) {
	if m.Fields != nil {
		var err error
		if m.Schema, err = compileFields(b.node, b.reg.id, m.Fields); err != nil {
			return view.Message{}, err
		}
	}
	if _, err := b.decide(m.AmendForm); err != nil {
		return view.Message{}, err
	}
	msg, err := b.state.Mail.FindForm(m.Form)
	if err != nil {
		return view.Message{}, err
	}
	return b.viewer().envelope(msg)
}

// route returns what has become of a form's route; nil if it has none.
func (v *viewer) route(f *mailbox.Form) *view.Route {
	r := &view.Route{RemindsAt: f.NextReminder()}
	if f.Reminded() != nil {
		r.Reminded, r.RemindedAt = f.Reminded().N, f.Reminded().Date
	}
	for _, step := range f.Routed() {
		r.Steps = append(r.Steps, view.RouteStep{To: step.To, Name: v.nameOf(step.To), At: step.Date, Cause: step.Cause})
	}
	if to, at, ok := f.NextEscalation(); ok {
		r.Steps = append(r.Steps, view.RouteStep{To: to, Name: v.nameOf(to), At: at})
	}
	if r.Reminded == 0 && r.RemindsAt == 0 && len(r.Steps) == 0 {
		return nil
	}
	return r
}

// steps returns how a form came to the agent; nil if it was put to it.
func (v *viewer) steps(f *mailbox.Form) []view.ForwardStep {
	came := f.Steps.List()
	if came == nil { // all by hand
		for _, by := range f.Chain {
			came = append(came, events.CopyStep{By: by})
		}
	}
	first, steps := len(came)-len(f.Chain), []view.ForwardStep(nil)
	for i, c := range came {
		s := view.ForwardStep{By: c.By, ByName: v.nameOf(c.By), Cause: c.Cause, At: c.Date, Until: c.Until, After: c.After}
		if next := i + 1 - first; next < len(f.Chain) {
			s.To, s.ToName = f.Chain[next], v.nameOf(f.Chain[next])
		}
		steps = append(steps, s)
	}
	return steps
}

// forwardedTo returns the agents to which a form was forwarded. Those to which its home has yet to forward it are among
// them.
func (v *viewer) forwardedTo(f *mailbox.Form) (all []view.Forwarded) {
	add := func(by, to capabilities.ID, because events.ForwardCause) {
		w := view.Forwarded{Party: view.Party{ID: to, Name: v.nameOf(to)}, Cause: because.Cause, Until: because.Until}
		if by != v.state.ID {
			w.By, w.ByName = by, v.nameOf(by)
		}
		all = append(all, w)
	}
	for _, h := range f.Queued().Forwards {
		add(v.state.ID, h.To, h.Because)
	}
	for _, h := range f.Forwarded() {
		add(h.By, h.To, h.Because)
	}
	return all
}

// votes returns the votes on a form; nil if it needs one answer.
func (v *viewer) votes(f *mailbox.Form) *view.Votes {
	if f.Route == nil || f.Route.Need <= 1 {
		return nil
	}
	all := &view.Votes{Need: f.Route.Need, Have: uint32(f.Votes().Most()), Veto: !f.Route.NoVeto, NoSelf: f.Route.NoSelf, Own: v.ownVote(f)}
	if f.Answered != nil && (f.Kind != events.Approval || !mailbox.IsDenied(f.Answered.Values)) {
		all.Have = min(all.Have+1, all.Need)
	}
	for i, w := range slices.Concat(f.Votes().Standing, f.Votes().Void) {
		all.Cast = append(all.Cast, view.Vote{
			By: w.By, ByName: v.nameOf(w.By), Outcome: w.Outcome, At: w.Date, Note: w.Note, Void: i >= len(f.Votes().Standing),
			Person: w.Person, Beside: f.CountsBeside(v.state, w),
		})
	}
	if f.IsOpen() && f.From == v.state.ID {
		for _, id := range f.Waiting() {
			all.Waiting = append(all.Waiting, view.Party{ID: id, Name: v.nameOf(id)})
		}
	}
	return all
}

// ownVote returns what has become of the agent's vote on a form.
func (v *viewer) ownVote(f *mailbox.Form) view.OwnVote {
	id := v.state.ID
	switch stands, void := f.Votes().Of(id) != nil, f.Votes().VoidOf(id) != nil; {
	case f.Counted(id):
		return view.VoteCounted
	case f.IsOpen() && stands:
		return view.VoteStands
	case f.IsOpen() && void:
		return view.VoteVoid
	case stands || void:
		return view.VoteMissed
	}
	return ""
}

// Forward forwards a form to another agent that this one can reach. The first answer settles it.
func (a *Agent) Forward(ctx context.Context, ref capabilities.FormRef, to string) error {
	remote, err := callRelay(ctx, a, forwardForm{ref, to})
	if err != nil || !remote {
		return err
	}
	return sendForward(ctx, a, ref, to)
}

// forwardForm forwards a form at its home. Its result reports whether the home is on another node: then nothing was done.
type forwardForm struct {
	form capabilities.FormRef
	to   string
}

func (m forwardForm) handle(b *mailboxActor, reply replyTo[bool]) {
	now := b.node.now()
	var home capabilities.ID
	forward, err := recalled(b.old, func() (f mailbox.ForwardForm, err error) {
		f, home, err = b.state.DraftForward(m.form, m.to, now)
		return f, err
	})
	if err == nil {
		err = forward.CheckQuota(b.state, b.node.accounts.limits(b.reg.id, now), now)
	}
	if err != nil || home.Node != b.node.id {
		reply.release(b, true, err)
		return
	}
	b.node.registry.tell(home, b.last, &forwardAtHome{forward, reply})
}

// forwardAtHome has a form's home decide on a forward.
type forwardAtHome struct {
	command mailbox.ForwardForm
	reply   replyTo[bool]
}

func (m *forwardAtHome) handle(b *mailboxActor) {
	m.reply.release(b, false, decideTo(b, m.command.To, m.command))
}

func (m *forwardAtHome) fail(err error) { m.reply.fail(err) }

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

// Resolve answers a request with the agent's value at a path. It refuses other forms with NOT_A_REQUEST.
func (rs Requests) Resolve(ctx context.Context, ref capabilities.FormRef, path string, narrow capabilities.Facet) (view.Outcome, error) {
	if _, err := call(ctx, rs.agent, checkRequest{ref}); err != nil {
		return view.Outcome{}, err
	}
	answer := parley.Answer{Texts: []events.FieldText{{Name: "value", Text: path}}}
	if !narrow.IsFull() {
		answer.Narrow = map[string]capabilities.Facet{"value": narrow}
	}
	return rs.agent.Answer(ctx, ref, answer)
}

// Reject declines a request, as Decline does. It refuses other forms with NOT_A_REQUEST.
func (rs Requests) Reject(ctx context.Context, ref capabilities.FormRef, revision uint64, reason string) (view.Outcome, error) {
	if _, err := call(ctx, rs.agent, checkRequest{ref}); err != nil {
		return view.Outcome{}, err
	}
	return rs.agent.Decline(ctx, ref, revision, reason)
}

// checkRequest refuses a form that is not a request.
type checkRequest struct{ form capabilities.FormRef }

func (m checkRequest) handle(b *mailboxActor) (none, error) {
	return none{}, mailbox.CheckRequest(&b.state.Mail, m.form)
}

// Requests are the forms by which an agent asks others for capabilities, and others ask it.
type Requests struct{ agent *Agent }

// Requests returns the requests for capabilities that the agent sends and settles.
func (a *Agent) Requests() Requests { return Requests{a} }
