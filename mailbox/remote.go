package mailbox

import (
	"slices"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Pack returns a command to a mailbox of another node as the events that the receiver would record.
func Pack(c Command) []events.Event {
	switch c := c.(type) {
	case AcceptDelivery:
		if c.Form != nil {
			return []events.Event{c.Form}
		}
		return []events.Event{c.Posted}
	case RecordOutcome:
		return c.pack()
	case RecordRevocation:
		return []events.Event{&events.CapabilityRevoked{Grant: c.Grant, By: c.By, Date: c.Date}}
	case MintCapability:
		g := c.Grant
		g.Parent = c.Via
		return []events.Event{&events.CapabilityMinted{Grant: g}}
	case SettleForm:
		e := &events.AnswerQueued{Form: c.Form, Reason: c.Reason, Note: c.Note, Grants: c.Grants, Answer: c.Answer}
		if c.Reason == "" {
			e.Values = capabilities.Record(c.Values)
		}
		return []events.Event{e}
	case ForwardForm:
		return []events.Event{&events.FormForwarded{Form: c.Form, By: c.By, To: c.To, Via: c.Via}}
	}
	return nil
}

func (c RecordOutcome) pack() []events.Event {
	switch {
	case c.Answered != nil:
		return []events.Event{c.Answered}
	case c.Cancelled != nil:
		return []events.Event{c.Cancelled}
	}
	evs := make([]events.Event, len(c.Forwarded))
	for i := range c.Forwarded {
		evs[i] = &c.Forwarded[i]
	}
	return evs
}

// Unpack reads a command from a mailbox of another node. From is the sender, which its node's signature has proved. It
// refuses with NOT_PERMITTED a command that is not the sender's to give, and with INVALID_ARGUMENT anything that is no
// command. The command is checked further when it is decided.
func Unpack(kind events.OutboxKind, from capabilities.ID, evs []events.Event) (Command, error) {
	if len(evs) == 0 || len(evs) > 1 && kind != events.OutboxForwarded {
		return nil, parley.Refuse(parley.InvalidArgument, "a delivery of %d events", len(evs))
	}
	c, by, ok := unpack(kind, from, evs)
	if !ok {
		return nil, parley.Refuse(parley.InvalidArgument, "a delivery of kind %d with %s in it", kind, events.Name(evs[0]))
	}
	if by != from {
		return nil, parley.Refuse(parley.NotPermitted, "the delivery is not of the one that it came from")
	}
	return c, nil
}

// unpack returns the command, and the agent that may give it.
func unpack(kind events.OutboxKind, from capabilities.ID, evs []events.Event) (c Command, by capabilities.ID, ok bool) {
	switch e := evs[0].(type) {
	case *events.FormRequested:
		return RemoteDelivery{AcceptDelivery: AcceptDelivery{Form: e}}, e.From, kind == events.OutboxCopy
	case *events.MessagePosted:
		return RemoteDelivery{AcceptDelivery: AcceptDelivery{Posted: e}}, e.From, kind == events.OutboxCopy
	case *events.FormAnswered:
		return RemoteOutcome{RecordOutcome: RecordOutcome{Form: e.Form, Answered: e}, Home: from}, from, kind == events.OutboxOutcome
	case *events.FormCancelled:
		return RemoteOutcome{RecordOutcome: RecordOutcome{Form: e.Form, Cancelled: e}, Home: from}, from, kind == events.OutboxOutcome
	case *events.FormForwarded:
		if kind == events.OutboxForward {
			return RemoteForward{ForwardForm{Form: e.Form, By: e.By, To: e.To, Via: e.Via}}, e.By, true
		}
		l := RemoteOutcome{RecordOutcome: RecordOutcome{Form: e.Form}, Home: from}
		for _, h := range evs {
			f, same := h.(*events.FormForwarded)
			if !same {
				return nil, from, false
			}
			l.Forwarded = append(l.Forwarded, *f)
		}
		return l, from, kind == events.OutboxForwarded
	case *events.CapabilityRevoked:
		c := RemoteRevocation{RecordRevocation{Grant: e.Grant, By: e.By, Date: e.Date}}
		if e.Grant.Node != from.Node { // it made no such grant
			return nil, capabilities.ID{}, kind == events.OutboxRevocation
		}
		return c, e.By, kind == events.OutboxRevocation
	case *events.CapabilityMinted:
		return MintCapability{Grant: e.Grant, Via: e.Grant.Parent}, e.Grant.By, kind == events.OutboxMint
	case *events.AnswerQueued:
		return unpackAnswer(e, from, kind)
	}
	return nil, from, false
}

func unpackAnswer(e *events.AnswerQueued, from capabilities.ID, kind events.OutboxKind) (Command, capabilities.ID, bool) {
	c := RemoteAnswer{SettleForm: SettleForm{Form: e.Form, By: from, Reason: e.Reason, Note: e.Note, Grants: e.Grants, Answer: e.Answer}}
	if e.Reason == "" {
		values, isRecord := e.Values.AsRecord()
		if !isRecord {
			return nil, from, false
		}
		c.Values = values
	}
	return c, from, kind == events.OutboxAnswer
}

// Introduces returns the nodes, beside the two ends, that the receiver of a packet needs to know: those of the
// references it gives and of the agents it admits.
func Introduces(evs []events.Event) []capabilities.NodeID {
	var all []capabilities.NodeID
	refs := func(v capabilities.Value) {
		visitRefs(v, func(r capabilities.Ref) bool {
			all = append(all, r.Target.Node)
			return true
		})
	}
	for _, e := range evs {
		switch e := e.(type) {
		case *events.MessagePosted:
			for _, sp := range e.Text {
				refs(sp.Value)
			}
		case *events.AnswerQueued:
			refs(e.Values)
		case *events.CapabilityMinted:
			all = append(all, e.Grant.To.Node)
		case *events.FormForwarded:
			all = append(all, e.To.Node)
		}
	}
	return all
}

// Between nodes authority is held by node, and looked after at the home of its target: who may reach an agent
// from elsewhere stands in that agent's own log. Within a node it is by agent, which the node sees to itself;
// as it signs for all its agents, nobody else could.

// maxMinted bounds the grants by which one agent can be reached from other nodes.
const maxMinted = 100_000

// MintCapability asks the target of a grant to be reachable by the grant. Via is the grant by which the giver's node
// holds the target; zero if it may reply to the target's mail. Nothing in the command is trusted, wherever it comes
// from.
type MintCapability struct {
	Grant capabilities.Grant
	Via   capabilities.ID

	Quotas *Amounts // the giver's; nil for none
}

func (c MintCapability) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	g := c.Grant
	if _, before := s.minted.Get(g.ID); before {
		return nil, nil
	}
	if g.Target != s.ID || g.Kind != capabilities.KindAgent || g.By == s.ID || g.ID.IsZero() || g.ID.Node != g.By.Node || g.To.IsZero() {
		return nil, parley.Refuse(parley.NotPermitted, "this is no grant that could be made of this agent")
	}
	if len(g.Name) > maxGrantName || !utf8.ValidString(g.Name) {
		return nil, parley.Refuse(parley.InvalidArgument, "the grant's name is no name")
	}
	if err := g.Facet.Check(); err != nil {
		return nil, err
	}
	if s.minted.Len() >= maxMinted {
		return nil, parley.Refuse(parley.TooLarge, "the agent can be reached by %d grants already", maxMinted)
	}
	if s.isOutside(g.By) || s.isOutside(c.Via) {
		held, err := s.admit(g.By, c.Via, capabilities.UseGive, now)
		if err != nil {
			return nil, err
		}
		if held.Facet.Uses != 0 || held.Facet.Narrow(g.Facet) != g.Facet {
			return nil, parley.Refuse(parley.NotPermitted, "the grant gives more than its giver holds")
		}
		c.Via = held.ID // it falls with what its giver holds the agent by
	}
	g.Parent, g.Revoked = c.Via, 0
	g.At = clampDate(g.At, now)
	e := &events.CapabilityMinted{Grant: g}
	if err := s.checkRoom(c.Quotas, e, now); err != nil {
		return nil, err
	}
	return []events.Event{e}, nil
}

// isOutside reports whether an ID was made on another node. The zero ID was not.
func (s *State) isOutside(id capabilities.ID) bool { return !id.IsZero() && id.Node != s.ID.Node }

// admit returns the grant by which a node holds this agent: the one that it shows, or the leave to reply. It refuses
// with NOT_PERMITTED a node that does not hold the agent, and a use that the grant does not permit.
func (s *State) admit(from, via capabilities.ID, use capabilities.Use, now capabilities.Time) (capabilities.Grant, error) {
	g, minted := s.minted.Get(via)
	switch {
	case minted && g.Revoked != 0:
		return g, parley.Refuse(parley.NotPermitted, "the reference was revoked at %s", g.Revoked)
	case minted && g.To.Node == from.Node:
		return g, g.Facet.Permits(use, now, s.used[via])
	}
	g, dealt := s.replyGrants[from.Node]
	if at, gone := s.revoked[g.ID]; dealt && gone {
		return g, parley.Refuse(parley.NotPermitted, "the leave to write back was revoked at %s", at)
	} else if dealt {
		return g, nil
	}
	return g, parley.Refuse(parley.NotPermitted, "the sender does not hold the agent that this is for")
}

// presentedGrant returns the grant to show where a reference is used. It is zero for an agent of this node that was always
// held so.
func (s *State) presentedGrant(via, to capabilities.ID) capabilities.ID {
	if root, derived := s.roots[via]; derived {
		via = root
	}
	if s.isOutside(to) || s.isOutside(via) {
		return via
	}
	return capabilities.ID{}
}

// recordRoots records the roots of the references in a value that mail brought.
func (s *State) recordRoots(v capabilities.Value) {
	if !v.Has(capabilities.Value.IsRef) {
		return
	}
	visitRefs(v, func(r capabilities.Ref) bool {
		if !r.Root.IsZero() {
			if s.roots == nil {
				s.roots = map[capabilities.ID]capabilities.ID{}
			}
			s.roots[r.Grant] = r.Root
		}
		return true
	})
}

// needsMint reports whether another agent, the target of a grant, has to be told of it. An agent that is given itself is
// not told: it has no use for that.
func (s *State) needsMint(g capabilities.Grant) bool {
	return s.isOutside(g.To) && g.Kind == capabilities.KindAgent && g.Target != s.ID && g.To != g.Target
}

// grantAdded applies a new grant of the agent's own. Others can use it once its target knows of it.
func (s *State) grantAdded(g capabilities.Grant) {
	switch {
	case s.needsMint(g):
		s.enqueue(events.OutboxMint, g.ID, g.Target)
		s.pendingMints++
	case s.isOutside(g.To) && g.Target == s.ID:
		s.minted.Add(g)
	}
}

func (s *State) applyMinted(e *events.CapabilityMinted) {
	s.minted.Add(e.Grant)
	for _, id := range []capabilities.ID{e.Grant.ID, e.Grant.Parent} {
		if at, gone := s.revoked[id]; gone {
			s.minted.Mark(e.Grant.ID, at)
		}
	}
}

// dropQueued drops what is queued for a form's home when the form ends. It revokes what was given with it, unless the
// outcome gives it.
func (s *State) dropQueued(f *Form, at capabilities.Time) {
	if f.QueuedAnswer == nil && len(f.QueuedForwards) == 0 {
		return
	}
	s.outbox = slices.DeleteFunc(s.outbox, func(p OutboxItem) bool {
		return p.Kind == events.OutboxAnswer && p.Subject == f.ID ||
			p.Kind == events.OutboxForward && f.queuedForward(p.Subject) >= 0
	})
	if f.QueuedAnswer != nil && !s.isOutcome(f, f.QueuedAnswer) {
		s.revokeUnused(f.QueuedAnswer.Grants, at)
	}
	for _, w := range f.QueuedForwards {
		if g, ok := s.given.Get(w.Via); ok {
			s.revokeUnused([]capabilities.Grant{g}, at)
		}
	}
	f.QueuedAnswer, f.QueuedForwards = nil, nil
}

// isOutcome reports whether a form ended by the queued answer. An answer without an ID, from an earlier program, is
// compared by its agent alone.
func (s *State) isOutcome(f *Form, kept *events.AnswerQueued) bool {
	if kept.Answer.IsZero() || f.Answered != nil && f.Answered.Answer.IsZero() {
		return f.Answered != nil && f.Answered.By == s.ID
	}
	return f.EndedBy(kept.Answer)
}

// revokeUnused revokes grants that came to nothing.
func (s *State) revokeUnused(grants []capabilities.Grant, at capabilities.Time) {
	for _, g := range grants {
		if own, ok := s.given.Get(g.ID); ok && own.Revoked == 0 {
			s.revokeGiven(own, at)
		}
	}
}

// RecordRevocation takes in the revocation of a grant that the agent was given. It comes from a mailbox of this node.
type RecordRevocation struct {
	Grant capabilities.ID
	By    capabilities.ID
	Date  capabilities.Time
}

// RemoteRevocation is a RecordRevocation from another node. A grant that never concerned the agent is ignored.
type RemoteRevocation struct{ RecordRevocation }

func (c RecordRevocation) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if known, err := c.isRecorded(s); known || err != nil {
		return nil, err
	}
	return []events.Event{&events.CapabilityRevoked{Grant: c.Grant, By: c.By, Date: c.Date}}, nil
}

func (c RemoteRevocation) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if known, err := c.isRecorded(s); known || err != nil || !s.concerns(c.Grant, c.By) {
		return nil, err
	}
	return []events.Event{&events.CapabilityRevoked{Grant: c.Grant, By: c.By, Date: clampDate(c.Date, now)}}, nil
}

// isRecorded reports whether the grant is revoked already. It refuses a grant that is not another's to revoke.
func (c RecordRevocation) isRecorded(s *State) (bool, error) {
	if c.Grant.IsZero() { // the parent of all that the agent gave of its own
		return false, parley.Refuse(parley.InvalidArgument, "there is no grant without an ID")
	}
	if _, gone := s.revoked[c.Grant]; gone {
		return true, nil
	}
	if _, own := s.given.Get(c.Grant); own {
		return false, parley.Refuse(parley.NotPermitted, "grant %s is this agent's own to revoke", c.Grant)
	}
	return false, nil
}

// concerns reports whether a grant of another's ever concerned the agent: the agent can be reached by it, or was given
// something by it.
func (s *State) concerns(grant, by capabilities.ID) bool {
	byIt := func(r capabilities.Ref) bool { return r.Grant == grant }
	if _, minted := s.minted.Get(grant); minted || len(s.given.Cut(grant)) > 0 {
		return true
	}
	for _, v := range s.names {
		if !visitRefs(v, func(r capabilities.Ref) bool { return !byIt(r) }) {
			return true
		}
	}
	return slices.ContainsFunc(s.messages, func(m *Message) bool {
		if m.From() == s.ID && byIt(s.refTo(m)) {
			return true
		}
		if m.From() != by && (m.Form == nil || m.Form.Answered == nil || m.Form.Answered.By != by) {
			return false
		}
		return slices.ContainsFunc(s.refEdges(m), func(e edge) bool {
			return !visitRefs(e.value, func(r capabilities.Ref) bool { return !byIt(r) })
		})
	})
}
