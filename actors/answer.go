package actors

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"time"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
)

// homePatience is how long a caller that answers or forwards waits for a home on another node. After that it learns
// that the answer is queued.
const homePatience = 2 * time.Second

// Answer answers a form that the agent was asked. It refuses an answer with a wrong field with INVALID_ANSWER, and the
// form stays open.
func (a *Agent) Answer(ctx context.Context, ref capabilities.FormRef, ans parley.Answer) (view.Outcome, error) {
	return settle(a, ctx, answerForm{replyOf(a, ref, ans)})
}

// BeginAnswer is Answer for a caller without a goroutine. One waits where a form is homed on another node, and for names of agents. It
// calls done once. Done must not block.
func BeginAnswer(ctx context.Context, a *Agent, ref capabilities.FormRef, ans parley.Answer, done func(view.Outcome, error)) {
	r := answerForm{replyOf(a, ref, ans)}
	beginRelay(a, r, func(s settlement, err error) {
		wait := func() (view.Outcome, error) { return s.finish(ctx, a, err) }
		switch {
		case parley.CodeOf(err) == parley.AnswerPending:
			wait = func() (view.Outcome, error) { return settle(a, ctx, r) }
		case !isSecondVote(err) && (err != nil || s.remote == nil && s.outcome.Votes == nil):
			done(s.outcome, err)
			return
		}
		if !a.node.run(func() { done(wait()) }) {
			done(view.Outcome{}, errClosing())
		}
	})
}

func replyOf(a *Agent, ref capabilities.FormRef, ans parley.Answer) mailbox.Reply {
	return mailbox.Reply{Form: ref, Answer: ans, Person: a.person, Second: a.second}
}

// Decline declines a form that the agent was asked. The revision is of the question that was shown, or 0 for the present one.
func (a *Agent) Decline(ctx context.Context, ref capabilities.FormRef, revision uint64, reason string) (view.Outcome, error) {
	return settle(a, ctx, declineForm{ref, revision, reason, a.person, a.second})
}

// settle settles a form at its home. An earlier settlement of the agent may be on its way to a home in reach. Then settle
// waits up to homePatience for the result of that.
func settle(a *Agent, ctx context.Context, r relay[settlement]) (view.Outcome, error) {
	patience := time.After(homePatience)
	for {
		o, err := trySettle(a, ctx, r)
		if parley.CodeOf(err) != parley.AnswerPending {
			return o, err
		}
		form, _ := capabilities.ParseID(parley.AsError(err).Fields["form"])
		if !a.node.peers.Peer(form.Node).Reachable() { // a form's ID is of its home
			return o, err
		}
		next := newTurn(a.node, formKey{a.id, form})
		o, err = trySettle(a, ctx, r) // the result may have come before
		if parley.CodeOf(err) != parley.AnswerPending || !next.wait(ctx, patience) {
			next.drop()
			return o, err
		}
		next.drop()
	}
}

func trySettle(a *Agent, ctx context.Context, r relay[settlement]) (view.Outcome, error) {
	s, err := callRelay(ctx, a, r)
	return s.finish(ctx, a, err)
}

// finish returns the outcome for the agent that settles, with its names. It waits for the home of a form on another node.
func (s settlement) finish(ctx context.Context, a *Agent, err error) (view.Outcome, error) {
	if err != nil {
		return view.Outcome{}, nameVoters(ctx, a, err)
	}
	o := s.outcome
	if s.remote != nil {
		if o, err = s.remote.send(ctx, a); err != nil {
			return o, err
		}
	}
	return o, nameInVotes(ctx, a, o.Votes)
}

// turn waits for the result of what an agent said to a form: the form's end, or the home's word on an answer.
type turn struct {
	ended chan result[view.Outcome]
	acked chan error
	drop  func()
}

func newTurn(n *Node, key formKey) *turn {
	t := &turn{ended: make(chan result[view.Outcome], 1), acked: make(chan error, 1)}
	ended, acked := n.ended.wait(key, t.ended), n.remoteAcks.wait(key, t.acked)
	t.drop = func() {
		n.ended.drop(ended)
		n.remoteAcks.drop(acked)
	}
	return t
}

// again waits for the home's next word.
func (t *turn) again(n *Node, key formKey) {
	acked, drop := n.remoteAcks.wait(key, t.acked), t.drop
	t.drop = func() {
		drop()
		n.remoteAcks.drop(acked)
	}
}

// wait reports whether the result came before ctx and patience ended.
func (t *turn) wait(ctx context.Context, patience <-chan time.Time) bool {
	select {
	case <-t.ended:
	case <-t.acked:
	case <-patience:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// settlement is the outcome of a form, or what is still to be settled on another node.
type settlement struct {
	outcome view.Outcome
	remote  *remoteSettlement
}

// answerForm checks an answer and sends it to the form's home.
type answerForm struct{ draft mailbox.Reply }

func (m answerForm) handle(b *mailboxActor, reply replyTo[settlement]) {
	settle, home, err := draftAnswer(b, m.draft)
	if err == nil {
		err = b.seal(&settle)
	}
	sendHome(b, home, settle, err, reply)
}

// declineForm sends a refusal to answer to the form's home.
type declineForm struct {
	form     capabilities.FormRef
	revision uint64
	reason   string
	person   capabilities.ID
	second   bool
}

func (m declineForm) handle(b *mailboxActor, reply replyTo[settlement]) {
	var home capabilities.ID
	settle, err := recalled(b.old, func() (s mailbox.SettleForm, err error) {
		s, home, err = b.state.DraftDecline(m.form, m.revision, m.reason, b.node.newID)
		s.Person, s.Second = m.person, m.second
		return s, err
	})
	sendHome(b, home, settle, err, reply)
}

// prepareReply adds to a reply what the node knows: its compiled schema of the form, and the risks of calls.
func prepareReply(b *mailboxActor, r *mailbox.Reply) error {
	m, found := recalled(b.old, func() (*mailbox.Message, error) { return b.state.Mail.FindForm(r.Form) })
	if found == nil && m.Form.IsOpen() {
		var err error
		if r.Schema, err = b.schema(b.reg.id, m.Form, r.Values, r.Texts); err != nil {
			return err
		}
	}
	if risk := b.node.risk.Load(); risk != nil {
		r.Risk = *risk
	}
	return nil
}

// draftAnswer drafts an answer. What a passkey has signed of it counts as used from then on.
func draftAnswer(b *mailboxActor, r mailbox.Reply) (settle mailbox.SettleForm, home capabilities.ID, err error) {
	if err := prepareReply(b, &r); err != nil {
		return settle, home, err
	}
	if r.Passkey != nil {
		if err := answerChallenge(b, r.Passkey); err != nil {
			return settle, home, err
		}
	}
	now := b.node.now()
	settle, err = recalled(b.old, func() (s mailbox.SettleForm, err error) {
		s, home, err = b.state.DraftAnswer(r, now, b.node.newID)
		return s, err
	})
	settle.Draw = drawn()
	if err == nil {
		err = settle.CheckQuota(b.state, b.node.accounts.limits(b.reg.id, now), now)
	}
	if err == nil && settle.Signed != nil {
		_, err = b.decide(settle.Use)
	}
	return settle, home, err
}

// drawn returns a random number that nobody can tell before: of a call that a reviewer allows, whether its host decides all the same.
func drawn() uint32 {
	var b [4]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return binary.BigEndian.Uint32(b[:])
}

// seal adds the sealed form of secret values.
func (b *mailboxActor) seal(c *mailbox.SettleForm) error {
	m, err := b.formOf(c.Form)
	if err != nil {
		return err
	}
	c.Sealed, err = b.node.secrets.SealFields(form.Secrets(m.Form.Fields), c.Values)
	return err
}

// sendHome sends a settlement to the form's home, which decides on it. A home on another node is left to the caller.
func sendHome(b *mailboxActor, home capabilities.ID, c mailbox.SettleForm, err error, reply replyTo[settlement]) {
	switch {
	case err != nil:
		reply.release(b, settlement{}, err)
	case home.Node != b.node.id:
		remote, err := newRemoteSettlement(b, home, c)
		reply.release(b, settlement{remote: remote}, err)
	default:
		b.node.registry.tell(home, b.last, &settleForm{c, b.reg.id, reply})
	}
}

// settleForm settles a form at its home, on behalf of an agent of this node.
type settleForm struct {
	command mailbox.SettleForm
	by      capabilities.ID
	reply   replyTo[settlement]
}

func (m *settleForm) handle(b *mailboxActor) {
	stood := standingVotes(b, m.command.Form)
	_, err := b.decide(m.command)
	var outcome view.Outcome
	if err == nil {
		outcome, err = settledOutcome(b, m.command.Form, m.by, stood)
	}
	m.reply.release(b, settlement{outcome: outcome}, err)
}

func (m *settleForm) fail(err error) { m.reply.fail(err) }

// settledOutcome returns the outcome to the agent that settled the form: with its own values, and without the home's names.
// For a form that is open, it is the agent's vote, after those that stood before.
func settledOutcome(b *mailboxActor, form, by capabilities.ID, stood []events.VoteCast) (view.Outcome, error) {
	outcome, err := queryOutcome{form, by == b.reg.id}.handle(b)
	if m, found := b.formOf(form); err == nil && found == nil && by != b.reg.id {
		if e := m.Form.Superseded(by); e != nil {
			return view.Outcome{Status: view.StatusSuperseded, Form: form, Promise: m.Form.Promise, By: e.By, At: e.Date, Note: e.Note}, nil
		}
	}
	if err == nil && outcome.Status == view.StatusOpen {
		return votedOutcome(b, form, by, stood)
	}
	if err == nil && by != b.reg.id {
		outcome.ByName = "SELF"
	}
	return outcome, err
}

// standingVotes returns the votes that stand on a form that is in memory; nothing changes them.
func standingVotes(b *mailboxActor, form capabilities.ID) []events.VoteCast {
	m, err := b.formOf(form)
	if err != nil {
		return nil // what is done with the form says why
	}
	return m.Form.Votes().Standing
}

// votedOutcome returns the vote of an agent as its outcome, without the names of this mailbox's agent for others. It says whose vote
// of those that stood before it has replaced.
func votedOutcome(b *mailboxActor, form, by capabilities.ID, stood []events.VoteCast) (view.Outcome, error) {
	m, err := b.formOf(form)
	if err != nil {
		return view.Outcome{}, err
	}
	f := m.Form
	o := view.Outcome{Status: view.StatusVoted, Form: f.ID, Promise: f.Promise, By: by, ByName: "SELF", Votes: b.viewer().votes(f)}
	v := f.Votes().Of(by)
	if v != nil {
		o.At, o.Note = v.Date, v.Note
	}
	if o.Votes != nil {
		if i := slices.IndexFunc(stood, func(w events.VoteCast) bool { return v != nil && w.Principal == v.Principal && w != *v }); i >= 0 {
			o.Votes.Replaced = &view.Party{ID: stood[i].By}
		}
		if o.Votes.Own = view.VoteStands; by != b.state.Profile.Host {
			o.Votes.Waiting = nil // they are for the asker and its host
		}
		if !f.IsOpen() {
			o.Votes.Own = view.VoteCounted
		}
		for i := range o.Votes.Cast {
			o.Votes.Cast[i].ByName = ""
		}
		for i := range o.Votes.Waiting {
			o.Votes.Waiting[i].Name = ""
		}
	}
	return o, nil
}

// querySettled returns what became of a settlement: the outcome of the form that it ended, or the vote as which it counts.
// Otherwise, the status is empty. The home may have told already that it counts.
type querySettled struct {
	settle mailbox.SettleForm
	counts bool
	stood  []events.VoteCast // the votes on the agent's copy before it
}

func (m querySettled) handle(b *mailboxActor) (view.Outcome, error) {
	f, err := b.formOf(m.settle.Form)
	switch {
	case err != nil || !m.counts && !f.Form.Took(m.settle):
		return view.Outcome{}, err
	case m.settle.Reason != events.Withdrawn && f.Form.EndedBy(m.settle.Answer):
		return settledOutcome(b, m.settle.Form, b.reg.id, m.stood)
	}
	return votedOutcome(b, m.settle.Form, b.reg.id, m.stood)
}

// Withdraw takes back the agent's vote on a form that is open. It reports whether the withdrawal is queued: then it is
// stored, and on its way to a home that cannot be reached.
func (a *Agent) Withdraw(ctx context.Context, ref capabilities.FormRef) (queued bool, err error) {
	w, err := callRelay(ctx, a, withdrawVote{ref})
	if err != nil || w == nil {
		return false, err
	}
	o, err := w.send(ctx, a)
	return o.Status == view.StatusAnswering, err
}

// withdrawVote takes back a vote at its home. If that is on another node, it returns what is to be sent there.
type withdrawVote struct{ form capabilities.FormRef }

func (m withdrawVote) handle(b *mailboxActor, reply replyTo[*remoteSettlement]) {
	var home capabilities.ID
	c, err := recalled(b.old, func() (c mailbox.WithdrawVote, err error) {
		c, home, err = b.state.DraftWithdrawal(m.form)
		return c, err
	})
	switch {
	case err != nil:
		reply.release(b, nil, err)
	case home.Node != b.node.id:
		w, err := newRemoteSettlement(b, home, mailbox.SettleForm{Form: c.Form, By: c.By, Reason: events.Withdrawn, Answer: c.Answer})
		reply.release(b, w, err)
	default:
		b.node.registry.tell(home, b.last, &withdrawAtHome{c, reply})
	}
}

// withdrawAtHome has a form's home decide on the withdrawal of a vote.
type withdrawAtHome struct {
	command mailbox.WithdrawVote
	reply   replyTo[*remoteSettlement]
}

func (m *withdrawAtHome) handle(b *mailboxActor) {
	_, err := b.decide(m.command)
	m.reply.release(b, nil, err)
}

func (m *withdrawAtHome) fail(err error) { m.reply.fail(err) }

// remoteSettlement answers or declines a form homed on another node, or takes a vote on it back. What an agent said is in
// its own log before it leaves for the home: what the home tells of it later is compared with that.
type remoteSettlement struct {
	settle mailbox.SettleForm
	key    formKey
	number uint64
	stood  []events.VoteCast

	agent *Agent      // that settles
	peer  *peers.Peer // the home's node
}

// newRemoteSettlement returns the settlement of a form homed on another node.
func newRemoteSettlement(b *mailboxActor, home capabilities.ID, c mailbox.SettleForm) (*remoteSettlement, error) {
	m, err := b.formOf(c.Form)
	if err != nil {
		return nil, err
	}
	return &remoteSettlement{settle: c, key: formKey{b.reg.id, c.Form}, number: m.Number, stood: m.Form.Votes().Standing, peer: b.node.peers.Peer(home.Node)}, nil
}

// send records the settlement in the agent's log, from where it goes to its home. It waits up to homePatience for the
// result.
func (w *remoteSettlement) send(ctx context.Context, a *Agent) (view.Outcome, error) {
	w.agent = a
	t := newTurn(a.node, w.key)
	defer func() { t.drop() }()
	queued, err := call(ctx, a, queueAnswer{w.settle})
	if err != nil || queued.Status != view.StatusAnswering || !w.peer.Reachable() {
		return queued, err
	}
	timer := time.NewTimer(homePatience)
	defer timer.Stop()
	for {
		select {
		case r := <-t.ended:
			return w.ownOutcome(ctx, r)
		case err := <-t.acked:
			if err != nil {
				return view.Outcome{}, err
			}
			t.again(a.node, w.key)
			o, err := w.query(ctx, w.settle.Reason != events.Withdrawn)
			if err != nil || o.Status != "" {
				return o, err
			} // else the home told late of the vote that is to be taken back
		case <-timer.C:
			return queued, nil
		case <-ctx.Done():
			return queued, nil
		}
	}
}

// hasEnded reports whether the settlement has ended the form with an outcome. The withdrawal of a vote ends none.
func (w *remoteSettlement) hasEnded(o view.Outcome) bool {
	return o.Settlement == w.settle.Answer && w.settle.Reason != events.Withdrawn
}

func (w *remoteSettlement) query(ctx context.Context, counts bool) (view.Outcome, error) {
	return call(ctx, w.agent, querySettled{w.settle, counts, w.stood})
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
	if f := msg.Form; !f.Took(m.settle) {
		return view.Outcome{Status: view.StatusAnswering, Form: f.ID, Promise: f.Promise, By: b.reg.id, ByName: "SELF", At: f.Queued().Answer.Date}, nil
	}
	return querySettled{settle: m.settle}.handle(b) // it was sent before, and the ack was lost
}

// ownOutcome returns the outcome of a form. If another settlement has ended it, that is this vote if it was cast, or taken
// back, before that. Otherwise it is an error.
func (w *remoteSettlement) ownOutcome(ctx context.Context, r result[view.Outcome]) (view.Outcome, error) {
	if r.err != nil || w.hasEnded(r.value) {
		return r.value, r.err
	}
	if o, err := w.query(ctx, false); err != nil || o.Status != "" {
		return o, err
	}
	code := map[view.FormStatus]parley.Code{
		view.StatusAnswered: parley.AlreadyAnswered, view.StatusDeclined: parley.AlreadyDeclined, view.StatusExpired: parley.AlreadyExpired,
	}[r.value.Status]
	if code == "" {
		code = parley.AlreadyCancelled
	}
	by := r.value.By.String()
	switch {
	case r.value.By.IsZero():
		by = "its deadline"
	case r.value.By == w.agent.id:
		by = "you"
	}
	return view.Outcome{}, parley.Refuse(code, "form %d was %s by %s at %s", w.number, r.value.Status, by, r.value.At)
}
