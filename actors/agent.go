package actors

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// Agent acts for one agent of a node. It is a handle: it holds no state and needs no closing. Its methods block until
// their result is durable or ctx ends. A ctx that ends gives TIMEOUT, or its cause if that has a code. The call may
// still take effect.
type Agent struct {
	node *Node
	id   capabilities.ID
	by   *Token // the token that it acts by and that limits it; nil for none

	person capabilities.ID // who acts as the agent, if that is another; zero for the agent itself
	second bool            // the person votes as the agent, beside a vote as another
}

// ActingFor returns an agent as a person acts as it, who is another agent of the node.
func ActingFor(person capabilities.ID, a *Agent) *Agent {
	acting := *a
	acting.person = person
	return &acting
}

// VotingAgain returns an agent with the leave to vote beside a vote of the same person as another agent.
func VotingAgain(a *Agent, again bool) *Agent {
	voting := *a
	voting.second = again
	return &voting
}

// ID returns the agent's ID.
func (a *Agent) ID() capabilities.ID { return a.id }

// errEnded is the error of a call whose context ended: the context's own cause if it has a code, else TIMEOUT. It names
// a disk that hangs.
func errEnded(ctx context.Context, n *Node) error {
	if e, ok := errors.AsType[*parley.Error](context.Cause(ctx)); ok {
		return e
	}
	why := context.Cause(ctx).Error()
	if isStuck(n) {
		why = persistence.SlowDisk(n.journal.Flushing())
	}
	return parley.Refuse(parley.Timeout, "the call ended before its result was there: %s", why).
		WithHint("what was asked for may still happen")
}

// do has the agent's mailbox decide on a command.
func (a *Agent) do(ctx context.Context, c mailbox.Command) error {
	_, err := call(ctx, a, decide{c})
	return err
}

// decide has a mailbox decide on a command. Its result is the events that follow.
type decide struct{ command mailbox.Command }

func (m decide) handle(b *mailboxActor) ([]events.Event, error) { return b.decide(m.command) }

// maxShownText bounds, in characters, what a CutMessage shows of its text.
const maxShownText = 120

// maxShownInput bounds, in characters, what a PendingPermission shows of a call's input. The form has all of it.
const maxShownInput = 500

// maxShownCalls bounds the calls that a status shows: the newest. Every commit that changes one writes them all.
const maxShownCalls = 8

// statusOf returns the status of an agent from the state of its mailbox.
func statusOf(s *mailbox.State) view.AgentStatus {
	p := s.Profile
	status := view.AgentStatus{
		ID: s.ID, Title: p.Title, Kind: string(p.Kind), Status: p.Status, Error: p.Error, Labels: maps.Clone(p.Labels), Pending: []view.PendingPermission{},
		Queued: s.Runs.Queued(), Asks: int(s.Summary().Open), Created: p.Created, Updated: p.Updated, Node: s.ID.Node,
		Version: s.Version, Host: p.Host, Maker: p.By, Of: p.Of, Ended: p.Status == mailbox.Closed && !p.Archived, Stopped: s.Runs.Held(),
		Topic: s.Topic != nil,
	}
	status.AwayFrom, status.AwayUntil = s.StandIns.Absence()
	if status.Labels == nil {
		status.Labels = map[string]string{}
	}
	if s.Runs.HasProgram() {
		program := s.Runs.Program()
		status.Runtime, status.User, status.Wrap = program.Runtime, program.User, program.Wrap
	}
	if policy := s.Rules.Policy(); policy != mailbox.AskOnMiss {
		status.Policy = policy
	}
	approvals, all := s.Mail.Approvals(maxShownCalls)
	status.More = all - len(approvals)
	for _, m := range approvals {
		asks := m.Form.Permission()
		asks.Input, asks.Reason, asks.Offers = firstRunes(asks.Input, maxShownInput), firstRunes(asks.Reason, maxShownInput), nil
		status.Pending = append(status.Pending, view.PendingPermission{Form: m.ID(), Number: m.Number, Permission: *asks, Asked: m.Form.Date})
	}
	for _, m := range s.Runs.Interrupted() {
		text := mailbox.ShowText(m.Posted.Text)
		if shown := []rune(text[:min(len(text), 4*maxShownText)]); len(shown) > maxShownText || len(text) > 4*maxShownText {
			text = strings.ToValidUTF8(string(shown[:min(len(shown), maxShownText)]), "") + "…"
		}
		status.Cut = append(status.Cut, view.CutMessage{Message: m.ID(), Number: m.Number, Text: text, At: m.Date()})
	}
	return status
}

// firstRunes returns the first characters of a text.
func firstRunes(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}

// present returns a status as it is now, with the mark whether the node holds the agent's program.
func present(n *Node, s view.AgentStatus) view.AgentStatus {
	s = s.At(n.clock())
	s.Held = s.Runtime != "" && n.supervisor.isHeld()
	s.Settle()
	return s
}

// atRest returns the index entry of the agent's mailbox, and whether that is not in memory. All of it is durable then.
func (a *Agent) atRest() (persistence.Mailbox, bool) {
	if a.node.registry.isAwake(a.id) {
		return persistence.Mailbox{}, false
	}
	return a.node.journal.Mailbox(a.id)
}

// Status returns the durable status of the agent.
func (a *Agent) Status(ctx context.Context) (view.AgentStatus, error) {
	return query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (view.AgentStatus, error) {
		return statusOf(s).At(a.node.clock()), nil
	})
}

// Seen returns the status of another agent as this one may see it.
func (as Agents) Seen(ctx context.Context, s view.AgentStatus) (view.AgentStatus, error) {
	name, err := query(ctx, as.agent, func(st *mailbox.State, _ capabilities.Time) (string, error) { return st.Names.Of(s.ID) })
	return present(as.agent.node, s).For(as.agent.id, name), err
}

// MayLookInto refuses with NOT_PERMITTED unless the agent is the other one, its host or its maker.
func (as Agents) MayLookInto(ctx context.Context, agent *Agent) error {
	_, err := query(ctx, agent, func(s *mailbox.State, _ capabilities.Time) (none, error) {
		if as.agent.id == agent.id || s.Profile.ManagedBy(as.agent.id) {
			return none{}, nil
		}
		return none{}, parley.Refuse(parley.NotPermitted, "that is for the agent itself, its host and its maker")
	})
	return err
}

// Report records the status of the agent, which some client serves.
func (a *Agent) Report(ctx context.Context, status, problem string) error {
	return a.do(ctx, mailbox.ReportStatus{Status: status, Error: problem})
}

// Describe replaces the title and labels of the agent. A nil title or nil labels stay as they are.
func (a *Agent) Describe(ctx context.Context, title *string, labels map[string]string) error {
	return a.do(ctx, mailbox.UpdateAgent{Title: title, Labels: labels})
}

// SetPolicy sets the policy for an agent's calls that need permission. Only the agent's host may. Of the policy of review, terms has the
// reviewer: an agent of this node that is not archived, and no session or address of the agent's.
func (as Agents) SetPolicy(ctx context.Context, agent *Agent, policy string, terms *parley.ReviewTerms) error {
	c := mailbox.SetPolicy{Policy: policy, By: as.agent.id, Review: terms}
	if terms != nil {
		reviewer, err := as.Find(ctx, terms.Reviewer)
		if err != nil {
			return err
		}
		status, err := reviewer.Status(ctx)
		switch {
		case err != nil:
			return err
		case status.Status == mailbox.Closed || status.Topic:
			return parley.Refuse(parley.InvalidArgument, "%s reviews nothing: it has ended, or is a topic", parley.Quoted(terms.Reviewer, 80))
		case status.Of == agent.id || status.Maker == agent.id:
			return parley.Refuse(parley.InvalidArgument, "%s is the agent's own", parley.Quoted(terms.Reviewer, 80)).WithHint("an agent does not review its own calls")
		}
		c.Reviewer = reviewer.id
	}
	return agent.do(ctx, c)
}

// hostAliasCache caches the agents that the host can act as, by the host's names. A change of those names empties it.
// Every call from outside needs one, and would otherwise queue at the host's mailbox first.
type hostAliasCache struct {
	epoch atomic.Uint64 // of the host's names
	mu    sync.Mutex
	known map[string]capabilities.ID
	of    uint64 // the epoch of known
}

func (c *hostAliasCache) get(name string) (id capabilities.ID, epoch uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	epoch = c.epoch.Load()
	if c.of != epoch || c.known == nil {
		c.known, c.of = map[string]capabilities.ID{}, epoch
	}
	id, ok = c.known[name]
	return id, epoch, ok
}

// put adds an agent that was found in an epoch, unless the names have changed since.
func (c *hostAliasCache) put(name string, id capabilities.ID, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == epoch && c.epoch.Load() == epoch {
		c.known[name] = id
	}
}

// note records events of the host's mailbox. It is called before any reader sees them.
func (c *hostAliasCache) note(evs []events.Event) {
	for _, e := range evs {
		switch e.(type) {
		case *events.NameBound, *events.NameUnbound, *events.CapabilityRevoked:
			c.epoch.Add(1)
			return
		}
	}
}

// ActAs returns the agent that the host holds, in full, under a name; "" is the host itself. It refuses with
// UNKNOWN_NAME, and with NOT_PERMITTED for an agent of another node or one that is held in part.
func (n *Node) ActAs(ctx context.Context, name string) (*Agent, error) {
	if sp := capabilities.Special(name); name == "" || sp == capabilities.NameSelf || sp == capabilities.NameHost {
		return n.Host(), nil
	}
	id, epoch, ok := n.hostAliases.get(name)
	if ok {
		return &Agent{node: n, id: id}, nil
	}
	v, err := n.Host().Names().Show(ctx, name, false)
	if err != nil {
		return nil, err
	}
	ref, ok := v.AsRef()
	switch {
	case !ok || ref.Kind != capabilities.KindAgent:
		return nil, parley.Refuse(parley.UnknownName, "%.200q is not an agent", name)
	case ref.Target.Node != n.id || !ref.Facet.IsFull():
		return nil, parley.Refuse(parley.NotPermitted, "the host cannot act as %.200q", name)
	}
	n.hostAliases.put(name, ref.Target, epoch)
	return &Agent{node: n, id: ref.Target}, nil
}

// message is a message to a mailbox's actor. Exactly one of its methods is called, once. Handle is called with the
// mailbox's state in memory. Fail is called if the mailbox cannot be read, or if the append that the message follows
// from was lost.
type message interface {
	handle(b *mailboxActor)
	fail(err error)
}

// delivery is a message in an actor's queue.
type delivery struct {
	message
	after  persistence.Position // the append that it follows from
	called bool                 // it came from outside
}

// request is a message with a result.
type request[T any] interface {
	handle(b *mailboxActor) (T, error)
}

// relay is a request that is forwarded to another mailbox before there is a result. The handler makes sure that reply gets
// just one.
type relay[T any] interface {
	handle(b *mailboxActor, reply replyTo[T])
}

// call sends a request to the agent's mailbox. It returns the result when all that the result follows from is durable.
func call[T any](ctx context.Context, a *Agent, r request[T]) (T, error) {
	reply := newReply[T]()
	if err := a.node.registry.call(a.id, &requestMessage[T]{r, reply}); err != nil {
		var zero T
		return zero, err
	}
	return reply.wait(ctx, a.node)
}

// callRelay is call for a relay.
func callRelay[T any](ctx context.Context, a *Agent, r relay[T]) (T, error) {
	reply := newReply[T]()
	if err := a.node.registry.call(a.id, &relayMessage[T]{r, reply}); err != nil {
		var zero T
		return zero, err
	}
	return reply.wait(ctx, a.node)
}

// begin is call for a caller without a goroutine: then gets the result, once. It must not block.
func begin[T any](a *Agent, r request[T], then func(T, error)) {
	reply := replyTo[T]{then: then}
	if err := a.node.registry.call(a.id, &requestMessage[T]{r, reply}); err != nil {
		reply.fail(err)
	}
}

// beginRelay is begin for a relay.
func beginRelay[T any](a *Agent, r relay[T], then func(T, error)) {
	reply := replyTo[T]{then: then}
	if err := a.node.registry.call(a.id, &relayMessage[T]{r, reply}); err != nil {
		reply.fail(err)
	}
}

// requestMessage is a request with the channel for its result.
type requestMessage[T any] struct {
	request request[T]
	reply   replyTo[T]
}

func (m *requestMessage[T]) handle(b *mailboxActor) {
	before := b.commands
	v, err := recalled(b.old, func() (T, error) {
		v, err := m.request.handle(b)
		if b.commands != before {
			err = unrepeatable(b, err)
		}
		return v, err
	})
	m.reply.release(b, v, err)
}

func (m *requestMessage[T]) fail(err error) { m.reply.fail(err) }

// relayMessage is a relay with the channel for its result.
type relayMessage[T any] struct {
	relay relay[T]
	reply replyTo[T]
}

func (m *relayMessage[T]) handle(b *mailboxActor) { m.relay.handle(b, m.reply) }
func (m *relayMessage[T]) fail(err error)         { m.reply.fail(err) }

// result is a value or an error.
type result[T any] struct {
	value T
	err   error
}

// replyTo takes the one result of a call: a channel with room for it, or a function that must not block.
type replyTo[T any] struct {
	ch   chan result[T]
	then func(T, error)
}

func newReply[T any]() replyTo[T] { return replyTo[T]{ch: make(chan result[T], 1)} }

func (r replyTo[T]) put(v T, err error) {
	if r.then != nil {
		r.then(v, err)
		return
	}
	r.ch <- result[T]{v, err}
}

// release sends a result once all that b's state follows from is durable. If that was lost, it sends the error.
func (r replyTo[T]) release(b *mailboxActor, v T, err error) {
	if parley.CodeOf(err) == parley.NoSuchMessage && b.reg.isRecovering(b.node.journal) {
		err = errRecovering()
	}
	b.release(func(lost error) {
		if lost != nil {
			err = lost
		}
		r.put(v, err)
	})
}

// fail sends an error.
func (r replyTo[T]) fail(err error) {
	var zero T
	r.put(zero, err)
}

// wait blocks until there is a result or ctx ends.
func (r replyTo[T]) wait(ctx context.Context, n *Node) (T, error) {
	if ctx.Done() == nil {
		got := <-r.ch
		return got.value, got.err
	}
	select {
	case got := <-r.ch:
		return got.value, got.err
	case <-ctx.Done():
		var zero T
		return zero, errEnded(ctx, n)
	}
}

// query returns what look finds in the agent's state. Look changes nothing, and keeps no part of the state that may
// change.
func query[T any](ctx context.Context, a *Agent, look func(s *mailbox.State, now capabilities.Time) (T, error)) (T, error) {
	return read(ctx, a, queryState[T]{look})
}

// queryState is a request that only reads the state.
type queryState[T any] struct {
	read func(s *mailbox.State, now capabilities.Time) (T, error)
}

func (m queryState[T]) handle(b *mailboxActor) (T, error) { return m.read(b.state, b.node.now()) }

// none is the result of a request of which only success matters.
type none = struct{}

// activate has a mailbox read, with all that goes before any message: its state is made from the log, deliveries and
// acks are resumed, and deadlines are met.
type activate struct{}

func (activate) handle(*mailboxActor) {}
func (activate) fail(error)           {}

// resume is activate for a mailbox with unfinished work. A mailbox that cannot be read now is tried again later.
type resume struct {
	node    *Node
	mailbox capabilities.ID
	done    func() // nil if there is no waiter
}

func (m resume) handle(*mailboxActor) {
	if m.done != nil {
		m.done()
	}
}

func (m resume) fail(err error) {
	if m.done != nil {
		m.done()
	}
	m.node.log.Warn("mail not resumed", "mailbox", m.mailbox.String(), "error", err)
	resumeLater(m.node, m.mailbox, err)
}
