package actors

import (
	"context"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Approval asks whether a tool may be called with an input. To is as in Ask; default: the agent's host. Input is a
// JSON document of at most 256 KiB, which is shown unchanged. An object in it names no key twice.
type Approval struct {
	To       string            `json:"to,omitempty"`
	Tool     string            `json:"tool"`
	Input    string            `json:"input"`
	Folder   string            `json:"folder,omitempty"` // where the call is made: an absolute path; wider rules need it
	Key      string            `json:"key,omitempty"`    // idempotency key
	Deadline capabilities.Time `json:"deadline,omitzero"`
	Attended bool              `json:"attended,omitempty"` // ask only if a follower of the recipient's mail is present
	Origin   *events.Origin    `json:"-"`                  // of an approval asked in a dialect
}

// Approve asks whether a tool may be called. It returns when the question is on disk, or a standing rule's use is;
// AwaitApproval waits for the decision.
func (a *Agent) Approve(ctx context.Context, ask Approval) (view.Permission, error) {
	asked, err := call(ctx, a, requestPermission{ask.command(), ask.Attended, nil})
	asked.result.Unreachable = anyUnreachable(a.node, ctx, asked.waits)
	return asked.result, err
}

func (ask Approval) command() mailbox.RequestApproval {
	return mailbox.RequestApproval{To: ask.To, Tool: ask.Tool, Input: ask.Input, Folder: ask.Folder, Key: ask.Key, Deadline: ask.Deadline, Origin: ask.Origin}
}

// requestPermission asks for permission, or finds an earlier request for the same call. If the approval is open, it adds the
// waiter for its outcome, if there is one.
type requestPermission struct {
	command  mailbox.RequestApproval
	attended bool
	waiting  *outcomes
}

func (m requestPermission) handle(b *mailboxActor) (pending[view.Permission], error) {
	known, ok, err := m.command.Form().FindExisting(b.state)
	if err != nil {
		return pending[view.Permission]{}, err
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
		p.Unattended = m.attended && !b.node.Attends(known.Message.Form.To)
		b.addWaiter(p.Form, m.waiting)
	}
	return pending[view.Permission]{result: p}, err
}

// approve decides by a standing rule or asks a form. An attended approval asks none without a follower.
func approve(b *mailboxActor, c mailbox.RequestApproval, attended bool) (pending[view.Permission], error) {
	now := b.node.now()
	evs, err := b.propose(c, now)
	if err != nil || len(evs) == 0 {
		return pending[view.Permission]{}, err
	}
	p := pending[view.Permission]{}
	switch e := evs[0].(type) {
	case *events.RuleUsed:
		p.result = view.Permission{Decided: true, Allowed: b.state.Rules.Allows(e.Rule), Rule: e.Rule}
	case *events.FormRequested:
		if attended && !b.node.Attends(e.To) {
			return pending[view.Permission]{result: view.Permission{Unattended: true}}, nil
		}
		p.result.Asked = view.Asked{Form: e.ID, Promise: e.Promise, Number: e.Number}
		p.waits = nodesTo(b, e.To)
	}
	return p, b.commit(now, evs)
}

// Attends reports whether a page, a client or a command follows the mail of an agent at this moment. A
// follower between two calls is not seen. Agents of other nodes count as attended.
func (n *Node) Attends(agent capabilities.ID) bool {
	return agent.Node != n.id || n.changed.has(agent)
}

// knownPermission returns the state of an approval that was asked before.
func knownPermission(b *mailboxActor, c mailbox.RequestApproval, known mailbox.Existing) (view.Permission, error) {
	asked, err := knownAsk(b, c.Form(), known, false)
	if err != nil || known.Message == nil {
		return view.Permission{Asked: asked}, err
	}
	f := known.Message.Form
	return view.Permission{Asked: asked, Allowed: b.state.ApprovalResult(f, mailbox.DigestCall(c.Tool, c.Input)).Allowed}, nil
}

// AwaitApproval blocks until an approval is decided or has ended, and reports whether the call may be made. It may not if
// the approval was declined, cancelled, expired, or decided by another than the host.
func (a *Agent) AwaitApproval(ctx context.Context, ref capabilities.FormRef) (bool, view.Outcome, error) {
	outcome, err := a.Await(ctx, ref)
	return outcome.Allowed, outcome, err
}

// List lists the agent's standing rules, oldest first.
func (rs Rules) List(ctx context.Context) ([]view.Rule, error) {
	return query(ctx, rs.agent, func(s *mailbox.State, now capabilities.Time) ([]view.Rule, error) {
		all := []view.Rule{}
		for _, r := range s.Rules.Valid(now) {
			all = append(all, view.Rule{
				Rule: r.Rule, Agent: r.Agent, Tool: r.Tool, Words: r.Words(), Allow: r.Allow, Made: r.Made, Until: r.Until,
				Form: r.Form, Uses: r.Uses, Used: r.Used, Stale: r.Stale(), Covers: r.Covers, Shape: r.Shape,
			})
		}
		return all, nil
	})
}

// Limit has a standing rule of an agent that this one is the host of end at a time.
func (rs Rules) Limit(ctx context.Context, agent *Agent, rule capabilities.ID, until capabilities.Time) error {
	return agent.do(ctx, mailbox.LimitRule{Rule: rule, Until: until, By: rs.agent.id})
}

// Remove ends a standing rule of an agent that this one is the host of.
func (rs Rules) Remove(ctx context.Context, agent *Agent, rule capabilities.ID) error {
	return agent.do(ctx, mailbox.RemoveRule{Rule: rule, By: rs.agent.id})
}

// KeyOf returns the idempotency key under which an agent of the node asked a form; "" if there is none, or for an agent
// of another node.
func (n *Node) KeyOf(ctx context.Context, asker, form capabilities.ID) (string, error) {
	if asker.Node != n.id {
		return "", nil
	}
	return query(ctx, &Agent{node: n, id: asker}, func(s *mailbox.State, _ capabilities.Time) (string, error) {
		m, err := s.Mail.FindFormID(form)
		if err != nil {
			return "", err
		}
		return m.Form.Key, nil
	})
}

// Rules are an agent's standing rules, and those of the agents that it is the host of.
type Rules struct{ agent *Agent }

// Rules returns the standing rules that the agent has or sets.
func (a *Agent) Rules() Rules { return Rules{a} }
