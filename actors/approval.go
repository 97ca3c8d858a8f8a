package actors

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/rule"
)

// Approve asks for a permission. It returns when the question is on disk, or a standing rule's use is; AwaitApproval waits
// for the decision.
func (a *Agent) Approve(ctx context.Context, ask mailbox.RequestApproval) (view.Permitted, error) {
	reply := newReply[view.Permitted]()
	BeginApprove(a, ask, false, reply.put, nil)
	return reply.wait(ctx, a.node)
}

// ApproveAttended has an agent do so if a follower of the recipient's mail is present. Otherwise nothing is asked.
func ApproveAttended(ctx context.Context, a *Agent, ask mailbox.RequestApproval) (view.Permitted, error) {
	reply := newReply[view.Permitted]()
	BeginApprove(a, ask, true, reply.put, nil)
	return reply.wait(ctx, a.node)
}

// BeginApprove is Approve or ApproveAttended, and Await for the approval that it asks, as BeginAsk is of a form. It calls ended for none
// that is decided.
func BeginApprove(a *Agent, ask mailbox.RequestApproval, attended bool, asked func(view.Permitted, error), ended func(view.Outcome, error)) (forget func()) {
	w, forget := beginWait(a, ended)
	beginAsk(a, requestPermission{ask, attended, w.waiting()}, w, func(v *view.Permitted) *view.Asked { return &v.Asked }, asked)
	return forget
}

// requestPermission asks for permission, or finds an earlier request for the same call. If the approval is open, it adds the
// waiter for its outcome, if there is one.
type requestPermission struct {
	command  mailbox.RequestApproval
	attended bool
	waiting  *outcomes
}

func (m requestPermission) handle(b *mailboxActor) (pending[view.Permitted], error) {
	known, ok, err := m.command.Form().FindExisting(b.state)
	if err != nil {
		return pending[view.Permitted]{}, err
	}
	if !ok {
		p, err := approve(b, m.command, m.attended)
		if err == nil && !p.result.Form.IsZero() {
			b.addWaiter(p.result.Form, m.waiting)
		}
		return p, err
	}
	p, err := knownPermission(b, m.command, known)
	if err == nil && known.Message != nil && known.Message.Form.IsOpen() {
		p.Unattended = m.attended && !b.node.Attends(known.Message.Form.To) && !known.Message.Form.Review().IsOpen()
		b.addWaiter(p.Form, m.waiting)
	}
	return pending[view.Permitted]{result: p}, err
}

// approve decides by a standing rule or asks a form. An attended approval asks none without a follower.
func approve(b *mailboxActor, c mailbox.RequestApproval, attended bool) (pending[view.Permitted], error) {
	now := b.node.now()
	if risk := b.node.risk.Load(); risk != nil {
		c.Risk = *risk
	}
	evs, err := b.propose(c, now)
	if err != nil {
		return pending[view.Permitted]{}, err
	}
	p := pending[view.Permitted]{}
	if len(evs) > 0 {
		if e, asked := evs[0].(*events.FormRequested); asked {
			if attended && !b.node.Attends(e.To) && !isReviewed(evs) {
				return pending[view.Permitted]{result: view.Permitted{Unattended: true}}, nil
			}
			e.Fields = b.node.schemas.share(b.node.accounts.account(b.reg.id), e.Fields) // most approvals of an agent have the same
			p.result.Asked = view.Asked{Form: e.ID, Promise: e.Promise, Number: e.Number}
			p.waits = nodesTo(b, e.To)
			return p, b.commit(now, evs)
		}
	}
	by, decided := c.Ruled(b.state, now)
	p.result = view.Permitted{Decided: decided, Allowed: by.Allow, Rule: by.Rule, Mandate: by.Mandate}
	if len(evs) == 0 { // a mandate was charged for this very call before
		return p, nil
	}
	return p, b.commit(now, evs)
}

// isReviewed reports whether the events of an approval put it to a reviewer, who need not follow its mail at this moment.
func isReviewed(evs []events.Event) bool {
	return slices.ContainsFunc(evs, func(e events.Event) bool { _, ok := e.(*events.ReviewAsked); return ok })
}

// SetRisk sets what says what may go wrong if a call is made. Until it is set, every call is of high risk, and no reviewer is shown one.
func SetRisk(n *Node, risk func(*parley.Permission) mailbox.Risk) { n.risk.Store(&risk) }

// SetLeased sets what says which lease of another agent a call of an agent's program would write on, and on which file. Until it is set,
// such calls are not held to leases.
func SetLeased(n *Node, leased func(context.Context, *Agent, *parley.Permission) (view.Lease, string, error)) {
	n.leased.Store(&leased)
}

// Attends reports whether a page, a client or a command follows the mail of an agent at this moment. A
// follower between two calls is not seen. Agents of other nodes count as attended.
func (n *Node) Attends(agent capabilities.ID) bool {
	return agent.Node != n.id || n.changed.has(agent)
}

// knownPermission returns the state of an approval that was asked before.
func knownPermission(b *mailboxActor, c mailbox.RequestApproval, known mailbox.Existing) (view.Permitted, error) {
	asked, err := knownAsk(b, c.Form(), known, false)
	if err != nil || known.Message == nil {
		return view.Permitted{Asked: asked}, err
	}
	f := known.Message.Form
	return view.Permitted{Asked: asked, Allowed: b.state.ApprovalResult(f, c.Call()).Allowed}, nil
}

// AwaitApproval blocks until an approval is decided or has ended, and reports whether the call may be made. It may not if
// the approval was declined, cancelled, expired, or decided by another than the host.
func (a *Agent) AwaitApproval(ctx context.Context, ref capabilities.FormRef) (bool, view.Outcome, error) {
	outcome, err := a.Await(ctx, ref)
	return outcome.Allowed, outcome, err
}

// List lists the agent's standing rules, oldest first.
func (rs Rules) List(ctx context.Context) ([]view.Rule, error) {
	return queryListing(ctx, rs.agent, func(s *mailbox.State, now capabilities.Time) ([]view.Rule, error) {
		all := []view.Rule{}
		for _, r := range s.Rules.Valid(now) {
			all = append(all, view.Rule{
				Rule: r.Rule, Agent: r.Agent, Tool: r.Tool, Words: r.Words(), Allow: r.Allow, Made: r.Made, Until: r.Until, Paused: r.Paused,
				Form: r.Form, Uses: r.Uses, Used: r.Used, Covers: r.Covers,
			})
		}
		return all, nil
	})
}

// Number returns how many of the agent's standing rules are valid.
func (rs Rules) Number(ctx context.Context) (int, error) {
	return query(ctx, rs.agent, func(s *mailbox.State, now capabilities.Time) (int, error) { return len(s.Rules.Valid(now)), nil })
}

// Reviewer returns the terms of the agent's policy of review; nil if it has another policy.
func (rs Rules) Reviewer(ctx context.Context) (*events.ReviewerSet, error) {
	return query(ctx, rs.agent, func(s *mailbox.State, _ capabilities.Time) (*events.ReviewerSet, error) {
		set := s.Rules.Reviewer()
		if set == nil {
			return nil, nil
		}
		own := *set
		own.Rules = slices.Clone(set.Rules)
		return &own, nil
	})
}

// Make adds a standing rule for an agent that this one is the host of, from an approval that was decided: the rule of its offer with
// an ID, "" for that of the very call. It ends at a time, 0 for never. The rule has no ID if there was one that says the same.
func (rs Rules) Make(ctx context.Context, agent *Agent, form capabilities.ID, offer string, allow bool, until capabilities.Time, isRisky func(*parley.Permission) bool) (view.TriedRule, error) {
	made := view.TriedRule{Allow: allow}
	m, err := agent.Message(ctx, capabilities.FormID(form))
	switch {
	case err != nil:
		return made, err
	case m.Permission == nil || !m.Sent:
		return made, parley.Refuse(parley.InvalidArgument, "%s is no approval that the agent asked for", form)
	case m.Outcome == nil:
		return made, parley.Refuse(parley.InvalidArgument, "the approval is still to be decided").WithHint("decide it with always or never")
	case !mailbox.MayMakeRule(m.Fields):
		return made, parley.Refuse(parley.NotPermitted, "no rule is made of a call that several decide, or of another node")
	case allow && isRisky(m.Permission):
		return made, parley.Refuse(parley.InvalidAnswer, "a call of high risk can only be allowed once: no rule is made of it")
	}
	covers, err := mailbox.Offered(m.Permission, offer)
	if err != nil {
		return made, err
	}
	made.Tool, made.Words = m.Permission.Tool, rule.Words(&covers)
	made.Rule, err = rs.add(ctx, agent, mailbox.AddRule{Tool: made.Tool, Covers: covers, Allow: allow, Until: until, Form: form})
	return made, err
}

// add adds a standing rule, and returns its ID: zero if there was one that says the same.
func (rs Rules) add(ctx context.Context, agent *Agent, c mailbox.AddRule) (capabilities.ID, error) {
	c.By = rs.agent.id
	evs, err := call(ctx, agent, decide{c})
	if err == nil && len(evs) == 1 {
		if added, ok := evs[0].(*events.RuleAdded); ok {
			return added.Rule, nil
		}
	}
	return capabilities.ID{}, err
}

// Limit has a standing rule of an agent that this one is the host of end at a time.
func (rs Rules) Limit(ctx context.Context, agent *Agent, rule capabilities.ID, until capabilities.Time) error {
	return agent.do(ctx, mailbox.LimitRule{Rule: rule, Until: until, By: rs.agent.id})
}

// Pause pauses a standing rule of an agent that this one is the host of, or resumes it.
func (rs Rules) Pause(ctx context.Context, agent *Agent, rule capabilities.ID, paused bool) error {
	return agent.do(ctx, mailbox.PauseRule{Rule: rule, Paused: paused, By: rs.agent.id})
}

// Remove ends a standing rule of an agent that this one is the host of.
func (rs Rules) Remove(ctx context.Context, agent *Agent, rule capabilities.ID) error {
	return agent.do(ctx, mailbox.RemoveRule{Rule: rule, By: rs.agent.id})
}

// Decided is the result of one decision of several.
type Decided struct {
	Outcome view.Outcome
	Err     error
}

// Decide decides on several approvals. It returns the result of each: one that is refused does not stop the others. The
// forms of one asker are settled in one commit, unless that is too large. A decision that is repeated with its key has
// the result of the first.
func (a *Agent) Decide(ctx context.Context, key string, several []parley.Decision) []Decided {
	results := make([]Decided, len(several))
	homes, err := call(ctx, a, findHomes{several})
	var order []capabilities.ID
	groups := map[capabilities.ID][]int{}
	for i := range several {
		if err != nil {
			results[i].Err = err
			continue
		}
		if results[i].Err = homes[i].err; homes[i].err != nil {
			continue
		}
		home := homes[i].home
		if groups[home] == nil {
			order = append(order, home)
		}
		groups[home] = append(groups[home], i)
	}
	var all sync.WaitGroup
	turns := make(chan struct{}, homesAtOnce)
	for _, home := range order {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			a.decideGroup(ctx, key, home, several, groups[home], results)
		})
	}
	all.Wait()
	return results
}

// homesAtOnce bounds the mailboxes that settle forms of one call at the same time.
const homesAtOnce = 16

// decideGroup decides on the approvals of one asker, by their indexes. It sets their results.
func (a *Agent) decideGroup(ctx context.Context, key string, home capabilities.ID, several []parley.Decision, group []int, results []Decided) {
	replies := make([]mailbox.Reply, len(group))
	for n, i := range group {
		replies[n] = decided(several[i], a.id, key)
		replies[n].Person, replies[n].Second = a.person, a.second
	}
	if home.Node != a.node.id {
		for n, i := range group {
			results[i].Outcome, results[i].Err = settle(a, ctx, answerForm{replies[n]})
		}
		return
	}
	settled, err := callRelay(ctx, a, answerForms{home, replies})
	for n, i := range group {
		if results[i].Err = err; err == nil {
			results[i] = settled[n]
			if results[i].Err = nameVoters(ctx, a, results[i].Err); results[i].Err == nil {
				results[i].Err = nameInVotes(ctx, a, results[i].Outcome.Votes)
			}
		}
	}
}

// decided returns a decision as an answer. The same decision of an agent with the same key is the same settlement.
func decided(d parley.Decision, by capabilities.ID, key string) mailbox.Reply {
	r := mailbox.Reply{Form: capabilities.FormID(d.Form), Answer: parley.Answer{Digest: d.Digest, Mandate: d.Mandate}}
	for _, t := range []events.FieldText{{Name: "decision", Text: d.Decision}, {Name: "reason", Text: d.Reason}, {Name: "rule", Text: d.Rule}, {Name: "until", Text: d.Until}} {
		if t.Text != "" {
			r.Texts = append(r.Texts, t)
		}
	}
	if key != "" {
		h := sha256.New()
		terms := ""
		if d.Mandate != nil {
			text, err := json.Marshal(d.Mandate)
			if err != nil { // an input that is no JSON, which is refused for itself
				text = []byte(err.Error())
			}
			terms = string(text)
		}
		for _, part := range []string{by.String(), key, d.Form.String(), d.Digest, d.Decision, d.Reason, d.Rule, d.Until, terms} {
			part = capabilities.Normal(part)
			fmt.Fprintf(h, "%d:%s", len(part), part)
		}
		r.Settlement.Node = by.Node
		copy(r.Settlement.ULID[:], h.Sum(nil))
	}
	return r
}

// findHomes returns the homes of the forms of decisions, or why there is none.
type findHomes struct{ several []parley.Decision }

type foundHome struct {
	home capabilities.ID
	err  error
}

func (m findHomes) handle(b *mailboxActor) ([]foundHome, error) {
	homes := make([]foundHome, len(m.several))
	for i, d := range m.several {
		msg, err := recalled(b.old, func() (*mailbox.Message, error) { return b.state.Mail.FindForm(capabilities.FormID(d.Form)) })
		switch {
		case err != nil:
			homes[i].err = err
		case msg.Form.Kind != events.Approval:
			homes[i].err = parley.Refuse(parley.NoPendingPermission, "message %d is no approval", msg.Number)
		default:
			homes[i].home = msg.Form.From
		}
	}
	return homes, nil
}

// answerForms checks answers to forms of one home on this node, and has them settled there together.
type answerForms struct {
	home    capabilities.ID
	replies []mailbox.Reply
}

func (m answerForms) handle(b *mailboxActor, reply replyTo[[]Decided]) {
	next := &settleTogether{by: b.reg.id, results: make([]Decided, len(m.replies)), reply: reply}
	for i, r := range m.replies {
		if o, ended := endedByReply(b, r); ended {
			next.results[i] = o
			continue
		}
		c, _, err := draftAnswer(b, r)
		if next.results[i].Err = err; err == nil {
			next.commands, next.rows = append(next.commands, c), append(next.rows, i)
		}
	}
	b.node.registry.tell(m.home, b.last, next)
}

// endedByReply returns the outcome of a form that this very reply has settled before.
func endedByReply(b *mailboxActor, r mailbox.Reply) (Decided, bool) {
	m, err := recalled(b.old, func() (*mailbox.Message, error) { return b.state.Mail.FindForm(r.Form) })
	if err != nil || !m.Form.EndedBy(r.Settlement) {
		return Decided{}, false
	}
	o, err := b.outcomeOf(m.Form, false)
	return Decided{o, err}, true
}

// settleTogether settles forms at their home in one commit, on behalf of an agent of this node. Rows are the indexes of the
// commands among the results.
type settleTogether struct {
	commands []mailbox.SettleForm
	rows     []int
	results  []Decided
	by       capabilities.ID
	reply    replyTo[[]Decided]
}

func (m *settleTogether) handle(b *mailboxActor) {
	now := b.node.now()
	refused, stood := make([]error, len(m.commands)), make([][]events.VoteCast, len(m.commands))
	for n := range m.commands {
		stood[n] = standingVotes(b, m.commands[n].Form)
	}
	evs, err := recalled(b.old, func() (evs []events.Event, err error) {
		evs, refused = b.state.SettleEach(m.commands, now, b.node.newID)
		for _, err := range refused {
			if absent, ok := errors.AsType[*mailbox.PagedOut](err); ok {
				return nil, absent
			}
		}
		return evs, nil
	})
	if err == nil && len(evs) > 0 {
		err = b.commit(now, evs)
	}
	if err != nil { // too much for one commit, or one of the forms cannot be read: each for itself
		for n := range m.commands {
			_, refused[n] = b.decide(m.commands[n])
		}
	}
	for n, i := range m.rows {
		if m.results[i].Err = refused[n]; refused[n] == nil {
			m.results[i].Outcome, m.results[i].Err = settledOutcome(b, m.commands[n].Form, m.by, stood[n])
		}
	}
	m.reply.release(b, m.results, nil)
}

func (m *settleTogether) fail(err error) { m.reply.fail(err) }

// Rules are an agent's standing rules, and those of the agents that it is the host of.
type Rules struct{ agent *Agent }

// Rules returns the standing rules that the agent has or sets.
func (a *Agent) Rules() Rules { return Rules{a} }
