package actors

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/quota"
)

// heaviestShown bounds the agents, and the other nodes, in view.NodeQuotas.
const heaviestShown = 5

// Quotas returns the default quotas and the heaviest users.
func (n *Node) Quotas(ctx context.Context) (view.NodeQuotas, error) {
	q := view.NodeQuotas{Agents: n.accounts.agents.Quotas.Named(), Peers: n.accounts.peers.Named(), Heaviest: n.accounts.heaviest(heaviestShown, n.now())}
	q.PeersUsed = n.accounts.heaviestPeers(heaviestShown)
	hosts := map[capabilities.NodeID]capabilities.ID{}
	known, ids := n.peers.Known()
	for i, p := range known {
		hosts[p.ID()] = ids[i]
	}
	return query(ctx, n.Host(), func(s *mailbox.State, _ capabilities.Time) (_ view.NodeQuotas, err error) {
		for i := range q.Heaviest {
			if q.Heaviest[i].Name, err = s.Names.Of(q.Heaviest[i].Agent); err != nil {
				return q, err
			}
		}
		for i := range q.PeersUsed {
			if q.PeersUsed[i].Name, err = s.Names.Of(hosts[q.PeersUsed[i].Node]); err != nil {
				return q, err
			}
		}
		return q, nil
	})
}

// SetQuota sets quotas of an agent's account; -1 is no quota. With reset, quotas that were set before are dropped. Only
// the node's host may.
func (as Agents) SetQuota(ctx context.Context, agent *Agent, quotas map[string]int64, reset bool) error {
	return as.agent.do(ctx, mailbox.SetQuota{Agent: agent.id, Quotas: quotas, Reset: reset})
}

// Quota returns the use of an agent's account. It is for the agent itself, its host and its maker.
func (as Agents) Quota(ctx context.Context, agent *Agent) (view.AgentUse, error) {
	if err := as.MayLookInto(ctx, agent); err != nil && !as.agent.IsHost() {
		return view.AgentUse{}, err
	}
	if _, err := agent.Version(ctx); err != nil { // its account is open then
		return view.AgentUse{}, err
	}
	u := as.agent.node.accounts.use(agent.id, as.agent.node.now())
	var err error
	u.Name, err = query(ctx, as.agent, func(s *mailbox.State, _ capabilities.Time) (string, error) { return s.Names.Of(u.Agent) })
	return u, err
}

// heaviestPeers returns the other nodes that use most of their quotas.
func (a *accounts) heaviestPeers(most int) []view.PeerUse {
	a.mu.Lock()
	nodes := slices.Collect(maps.Keys(a.held))
	a.mu.Unlock()
	all := make([]view.PeerUse, 0, len(nodes))
	for _, node := range nodes { // each by itself: other calls go on between
		all = append(all, a.ofPeer(node))
	}
	inbox := quota.Inbox.String()
	slices.SortFunc(all, func(x, y view.PeerUse) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(y.Used[inbox], x.Used[inbox]), x.Node.Compare(y.Node))
	})
	return all[:min(most, len(all))]
}

// peerLocked returns what another node uses. The caller has the lock.
func (a *accounts) peerLocked(node capabilities.NodeID, now capabilities.Time) view.PeerUse {
	var used quota.Amounts
	quotas := a.quotas(ofNode(node))
	u := view.PeerUse{Node: node, Quotas: quotas.Named()}
	fullest := func(amounts quota.Amounts) {
		if q, share := amounts.Fullest(quotas); share > u.Share {
			u.Share, u.Quota = share, q.String()
		}
	}
	effort := quota.Amounts{quota.Processor: a.effortOf(ofNode(node)).inMinute(now)}
	for _, amounts := range a.held[node] {
		used = used.Plus(amounts)
		fullest(amounts)
	}
	fullest(effort)
	u.Used = used.Plus(effort).Named()
	return u
}

// ofPeer returns what another node uses.
func (a *accounts) ofPeer(node capabilities.NodeID) view.PeerUse {
	now := a.node.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.peerLocked(node, now)
}

// propose has the state decide on a command within the agent's quotas.
func (b *mailboxActor) propose(c mailbox.Command, now capabilities.Time) ([]events.Event, error) {
	evs, err := recalled(b.old, func() ([]events.Event, error) {
		if !mailbox.Spends(c) {
			return b.state.Decide(c, now, b.node.newID)
		}
		return b.state.DecideWithin(b.node.accounts.limits(b.reg.id, now), c, now, b.node.newID)
	})
	if err != nil || !mailbox.Spends(c) {
		return evs, err
	}
	for _, e := range evs {
		all := recipientsOf(e)
		for _, to := range all {
			err := checkRecipient(b, to)
			if err != nil && len(all) > 1 {
				err = naming(b, to, err)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return evs, nil
}

// recipientsOf returns the agents that get mail by an event, now or later.
func recipientsOf(e events.Event) []capabilities.ID {
	switch e := e.(type) {
	case *events.FormRequested:
		to := []capabilities.ID{e.To}
		if e.Route != nil {
			for _, step := range e.Route.Escalate {
				to = append(to, step.To)
			}
		}
		return to
	case *events.MessagePosted:
		to := []capabilities.ID{e.To}
		for i := 1; i < len(e.Recipients); i++ {
			to = append(to, e.Recipients[i].Agent)
		}
		if e.Escalate != nil {
			to = append(to, e.Escalate.Agent)
		}
		return to
	case *events.MessageScheduled:
		return append([]capabilities.ID{e.To}, e.Also...)
	case *events.ForwardQueued:
		return []capabilities.ID{e.To}
	case *events.MemberSet:
		if e.In {
			return []capabilities.ID{e.Agent}
		}
	case *events.AwaySet:
		if !e.Delegate.IsZero() {
			return []capabilities.ID{e.Delegate}
		}
	}
	return nil
}

// naming returns an error about one of several recipients with the agent's name for it.
func naming(b *mailboxActor, to capabilities.ID, err error) error {
	e := *parley.AsError(err)
	e.Message = "to " + parley.Quoted(cmp.Or(b.viewer().nameOf(to), view.ShortID(to)), 80) + ": " + e.Message
	return &e
}

// checkRecipient refuses mail that the recipient is known to refuse.
func checkRecipient(b *mailboxActor, to capabilities.ID) error {
	if to.Node == b.node.id {
		if to != b.reg.id && b.node.isArchived(to) {
			return parley.Refuse(parley.AgentArchived, "the recipient is archived, and gets no more mail").WithHint("parley ls lists the agents that are not")
		}
		if b.node.accounts.isFull(b.reg.id, to) {
			return fullSender()
		}
		return nil
	}
	if b.node.peers.IsDropped(to.Node) {
		return parley.Refuse(parley.NodeUnknown, "node %s was dropped", to.Node.Short()).WithHint("parley node accept takes up an invitation of it")
	}
	return nil
}

// decideTo has the mailbox decide on a command by which an agent gets mail.
func decideTo(b *mailboxActor, to capabilities.ID, c mailbox.Command) error {
	if err := checkRecipient(b, to); err != nil {
		return err
	}
	_, err := b.decide(c)
	return err
}

// openAccount records the use of a mailbox that was just read. It has the other mailboxes of the account read too.
func (b *mailboxActor) openAccount() {
	b.holding, b.use = nil, b.state.Account.Usage()
	for by, amounts := range b.state.Account.Senders(b.node.now()) {
		if by.ULID == (capabilities.ID{}).ULID {
			b.holding = append(b.holding, by.Node)
			b.node.accounts.hold(b.reg.id, by.Node, amounts)
		}
	}
	if !b.node.accounts.put(b.state) {
		return
	}
	family, err := recalled(b.old, b.state.Names.Made)
	if err != nil {
		b.node.log.Warn("an account is not complete", "mailbox", b.reg.id.String(), "error", err)
	}
	if by := b.state.Profile.By; by != b.node.host && !by.IsZero() {
		family = append(family, by)
	}
	for _, id := range b.node.accounts.missing(family) {
		b.node.registry.tell(id, 0, activate{})
	}
}

// account records the use of the agent, and of other nodes, after some events.
func (b *mailboxActor) account(evs []events.Event) {
	if use := b.state.Account.Usage(); use != b.use {
		b.use = use
		b.node.accounts.put(b.state)
	}
	var now capabilities.Time
	if len(b.holding) > 0 {
		now = b.node.now()
	}
	for _, node := range b.holding {
		b.node.accounts.hold(b.reg.id, node, b.state.Account.Sender(ofNode(node), now))
	}
	for _, e := range evs {
		if _, ended := endOf(e); ended {
			b.node.accounts.empty(b.reg.id)
		}
		if _, dismissed := e.(*events.MessageDismissed); dismissed {
			b.node.accounts.empty(b.reg.id)
		}
	}
}

// quotaed adds the quotas of a sender to a command that delivers its mail.
func (a *accounts) quotaed(from capabilities.ID, c mailbox.Command) mailbox.Command {
	switch c := c.(type) {
	case mailbox.AcceptDelivery:
		c.Quotas = a.ofSender(c.Payer())
		return c
	case mailbox.RemoteDelivery:
		c.Quotas = a.ofSender(from)
		return c
	case mailbox.RecordAmendment:
		c.Quotas = a.ofSender(from)
		return c
	case mailbox.RemoteAmendment:
		c.Quotas = a.ofSender(from)
		return c
	case mailbox.MintCapability:
		c.Quotas = a.ofSender(from)
		return c
	}
	return c
}

// holdFor records what the mailbox stores for another node.
func holdFor(b *mailboxActor, node capabilities.NodeID) {
	for _, n := range b.holding {
		if n == node {
			return // account sees to it
		}
	}
	if used := b.state.Account.Sender(ofNode(node), b.node.now()); used != (quota.Amounts{}) {
		b.holding = append(b.holding, node)
		b.node.accounts.hold(b.reg.id, node, used)
	}
}

// later returns a refusal by a quota as a transient error, so that the other node sends the mail again.
func later(err error) error {
	if parley.CodeOf(err) != parley.QuotaExceeded {
		return err
	}
	return parley.Refuse(parley.RateLimited, "%s", parley.AsError(err).Message)
}
