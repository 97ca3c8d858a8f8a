package mailbox

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/quota"
	"parley/mailbox/right"
)

// Grants holds the grants that the agent gave, and those by which other nodes reach it. It also holds the state of the
// grants that it was given.
//
// Between nodes, a grant belongs to a node as a whole and is kept in the mailbox of its target: that mailbox decides
// which nodes may reach the agent. Within a node, grants belong to agents. A node signs for all its agents, so no other
// node could tell them apart.
type Grants struct {
	self capabilities.ID

	given   capabilities.Ledger                        // by the agent, to others
	minted  capabilities.Ledger                        // by which other nodes can reach the agent
	replies map[capabilities.NodeID]capabilities.Grant // by which other nodes may reply
	revoked map[capabilities.ID]capabilities.Time      // when grants ended, of those given to the agent or by it
	uses    map[capabilities.ID]uint32                 // of grants given to the agent
	roots   map[capabilities.ID]capabilities.ID        // of references given to the agent, by their grants

	Answers right.Ledger // rights to answer forms in the agent's place
}

func newGrants(self capabilities.ID) Grants {
	return Grants{self: self, revoked: map[capabilities.ID]capabilities.Time{}, uses: map[capabilities.ID]uint32{}}
}

// All returns the grants that the agent gave, oldest first: those that its mail carried, and the reply grants. The slice is the
// caller's.
func (l *Grants) All() []capabilities.Grant {
	all := make([]capabilities.Grant, 0, l.Len())
	for g := range l.Each() {
		all = append(all, *g)
	}
	return all
}

// Len returns the number of grants of All.
func (l *Grants) Len() int { return l.given.Len() + len(l.replies) }

// Each returns an iterator over the grants of All. They may only be read, and only while the mailbox stays as it is.
func (l *Grants) Each() iter.Seq[*capabilities.Grant] {
	return func(yield func(*capabilities.Grant) bool) {
		given, replies := l.given.Grants(), l.replyGrants()
		for len(given)+len(replies) > 0 {
			next := &given
			if len(given) == 0 || len(replies) > 0 && replies[0].At < given[0].At {
				next = &replies
			}
			g := &(*next)[0]
			*next = (*next)[1:]
			if !yield(g) {
				return
			}
		}
	}
}

// Minted returns the grants by which other nodes can reach the agent, oldest first. The slice is the caller's.
func (l *Grants) Minted() []capabilities.Grant { return l.minted.All() }

// Grant returns a grant that the agent gave; a zero one for any other.
func (l *Grants) Grant(id capabilities.ID) capabilities.Grant {
	g, _ := l.given.Get(id)
	return g
}

// get returns a grant that the agent gave.
func (l *Grants) get(id capabilities.ID) (capabilities.Grant, bool) {
	if g, ok := l.given.Get(id); ok {
		return g, true
	}
	for _, g := range l.replies {
		if g.ID == id {
			g.Revoked = l.revoked[id]
			return g, true
		}
	}
	return capabilities.Grant{}, false
}

// addReply grants the node of a recipient to reply to the agent, because mail went there. The grant has the ID of that
// mail. It can be revoked as any other grant; the next mail makes another.
func (l *Grants) addReply(to, mail capabilities.ID, at capabilities.Time) {
	if !isRemote(to, l.self.Node) {
		return
	}
	if g, ok := l.replies[to.Node]; ok {
		if _, gone := l.revoked[g.ID]; !gone {
			return
		}
	}
	l.putReply(capabilities.Grant{
		ID: mail, Target: l.self, Kind: capabilities.KindAgent, Name: capabilities.NameSelf, To: to, By: l.self, Message: mail, At: at,
	})
}

func (l *Grants) putReply(g capabilities.Grant) {
	if l.replies == nil {
		l.replies = map[capabilities.NodeID]capabilities.Grant{}
	}
	l.replies[g.To.Node] = g
}

// replyGrants returns the grants by which other nodes may reply, oldest first.
func (l *Grants) replyGrants() []capabilities.Grant {
	all := slices.Collect(maps.Values(l.replies))
	for i := range all {
		all[i].Revoked = l.revoked[all[i].ID]
	}
	slices.SortFunc(all, func(a, b capabilities.Grant) int {
		return cmp.Or(cmp.Compare(a.At, b.At), a.ID.Compare(b.ID), a.To.Compare(b.To))
	})
	return all
}

// countUse counts a use of a grant that the agent was given.
func (l *Grants) countUse(grant capabilities.ID) {
	if !grant.IsZero() {
		l.uses[grant]++
	}
}

// needsMint reports whether a grant has to be recorded at its target: another agent than the giver and the receiver,
// that is given to another node.
//
// Each grant of a resource has: its home decides on each use.
func (l *Grants) needsMint(g capabilities.Grant) bool {
	if g.Kind.IsResource() {
		return true
	}
	return isRemote(g.To, l.self.Node) && g.Kind == capabilities.KindAgent && g.Target != l.self && g.To != g.Target
}

// addMinted adds a grant by which another node can reach the agent. It is revoked at once if its parent is.
func (l *Grants) addMinted(g capabilities.Grant) {
	l.minted.Add(g)
	for _, id := range []capabilities.ID{g.ID, g.Parent} {
		if at, gone := l.revoked[id]; gone {
			l.minted.Mark(g.ID, at)
		}
	}
}

// IsRevoked reports whether a grant was revoked that the agent was given, or gave.
func (l *Grants) IsRevoked(id capabilities.ID) bool { return l.isRevoked(id) }

// isRevoked reports whether a grant was revoked that the agent was given, or gave.
func (l *Grants) isRevoked(id capabilities.ID) bool {
	_, gone := l.revoked[id]
	return gone
}

// admit returns the grant by which a node may reach the agent: the one that it presents, or its reply grant. It refuses
// with NOT_PERMITTED a node that has neither, and a use that the grant does not permit.
func (l *Grants) admit(from, via capabilities.ID, use capabilities.Use, now capabilities.Time) (capabilities.Grant, error) {
	g, minted := l.minted.Get(via)
	switch {
	case minted && g.Revoked != 0:
		return g, parley.Refuse(parley.NotPermitted, "the reference was revoked at %s", g.Revoked)
	case minted && g.To.Node == from.Node:
		return g, g.Facet.Permits(use, now, l.uses[via])
	}
	g, replies := l.replies[from.Node]
	if at, gone := l.revoked[g.ID]; replies && gone {
		return g, parley.Refuse(parley.NotPermitted, "the grant to reply was revoked at %s", at)
	} else if replies {
		return g, nil
	}
	return g, parley.Refuse(parley.NotPermitted, "the sender does not hold the agent that this is for")
}

// presented returns the grant to present to the home of a reference's target. It is zero if all of it was made on this
// node.
func (l *Grants) presented(via, to capabilities.ID) capabilities.ID {
	if root, derived := l.roots[via]; derived {
		via = root
	}
	if isRemote(to, l.self.Node) || isRemote(via, l.self.Node) {
		return via
	}
	return capabilities.ID{}
}

// recordRoots records the roots of the references in a received value.
func (l *Grants) recordRoots(v capabilities.Value) {
	if !v.Has(capabilities.Value.IsRef) {
		return
	}
	visitRefs(v, func(r capabilities.Ref) bool {
		if !r.Root.IsZero() {
			l.setRoot(r.Grant, r.Root)
		}
		return true
	})
}

func (l *Grants) setRoot(grant, root capabilities.ID) {
	if l.roots == nil {
		l.roots = map[capabilities.ID]capabilities.ID{}
	}
	l.roots[grant] = root
}

// maxMinted bounds the grants by which one agent can be reached from other nodes.
const maxMinted = 100_000

// MintCapability records a grant at its target. Via is the grant by which the giver's node
// holds the target; zero if that node may reply to the target's mail. The command is checked in full, even if it comes
// from this node.
type MintCapability struct {
	Grant capabilities.Grant
	Via   capabilities.ID

	Quotas *quota.Amounts // the giver's; nil for none
}

func (c MintCapability) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	g := c.Grant
	if _, before := s.Grants.minted.Get(g.ID); before {
		return nil, nil
	}
	if g.Target != s.ID || !(g.Kind == capabilities.KindAgent || s.Resource.made != nil) || g.By == s.ID || g.ID.IsZero() || g.ID.Node != g.By.Node || g.To.IsZero() {
		return nil, parley.Refuse(parley.NotPermitted, "this is no grant that could be made of this agent")
	}
	if len(g.Name) > maxGrantName || !utf8.ValidString(g.Name) {
		return nil, parley.Refuse(parley.InvalidArgument, "the grant's name is no name")
	}
	if err := g.Facet.Check(); err != nil {
		return nil, err
	}
	if s.Grants.minted.Len() >= maxMinted {
		return nil, parley.Refuse(parley.TooLarge, "the agent can be reached by %d grants already", maxMinted)
	}
	if s.Resource.made != nil {
		if err := mintResource(c, s, now); err != nil {
			return nil, err
		}
	} else if s.isRemote(g.By) || s.isRemote(c.Via) {
		held, err := s.Grants.admit(g.By, c.Via, capabilities.UseGive, now)
		if err != nil {
			return nil, err
		}
		if held.Facet.Uses != 0 || held.Facet.Narrow(g.Facet) != g.Facet {
			return nil, parley.Refuse(parley.NotPermitted, "the grant gives more than its giver holds")
		}
		c.Via = held.ID // the new grant ends with the giver's
	}
	g.Parent, g.Revoked = c.Via, 0
	g.At = clampDate(g.At, now)
	e := &events.CapabilityMinted{Grant: g}
	if err := checkRoom(s, c.Quotas, e, now); err != nil {
		return nil, err
	}
	return []events.Event{e}, nil
}

// RevokeCapability revokes a grant that the agent gave, with everything derived from it.
type RevokeCapability struct{ Grant capabilities.ID }

func (c RevokeCapability) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	g, ok := s.Grants.get(c.Grant)
	if r, err := s.Grants.Answers.Get(c.Grant); err == nil {
		g, ok = r.Grant, true
	}
	if !ok {
		return nil, parley.Refuse(parley.NotPermitted, "this agent gave no grant %s", c.Grant).
			WithHint("parley grants lists what it gave")
	}
	if g.Revoked != 0 {
		return nil, nil
	}
	return []events.Event{&events.CapabilityRevoked{Grant: c.Grant, By: s.ID, Date: now}}, nil
}

// RecordRevocation records that a grant which the agent was given is revoked. It comes from a mailbox of this node. If it was
// made to forward a form of the agent's, the forward is taken back.
type RecordRevocation struct {
	Grant capabilities.ID
	By    capabilities.ID
	Date  capabilities.Time

	Form, To capabilities.ID // what it was made for, if that is known: the form, and to whom
}

// RemoteRevocation is a RecordRevocation from another node. A grant that never concerned the agent is ignored.
type RemoteRevocation struct{ RecordRevocation }

func (c RecordRevocation) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if known, err := c.isRecorded(s); known || err != nil {
		return nil, err
	}
	return c.revoked(s, c.Date)
}

// revoked returns the events of the revocation. Uses by the grant that wait for a decision end with it.
func (c RecordRevocation) revoked(s *State, at capabilities.Time) ([]events.Event, error) {
	evs := []events.Event{&events.CapabilityRevoked{Grant: c.Grant, By: c.By, Date: at}}
	if e := c.takenBack(s, at); e != nil {
		evs = append(evs, e)
	}
	ended, err := endAsked(s, func(u *ResourceUse) bool { return u.isBy(c.Grant, &s.Grants) }, parley.Refuse(parley.NotPermitted, "the reference was revoked at %s", at), at)
	return append(evs, ended...), err
}

// takenBack returns the event that takes back the forward of an open form that was made by the grant; nil if there is none.
func (c RecordRevocation) takenBack(s *State, at capabilities.Time) *events.FormRouted {
	if !c.Form.IsZero() {
		m, err := s.Mail.openForm(c.Form)
		if err != nil || m.Form.From != s.ID {
			return nil
		}
		return c.takesBack(m.Form, at)
	}
	if n, ok := s.Mail.asks.forwards[handedOn{c.By, c.Grant}]; ok {
		return c.takesBack(s.Mail.live[n].Form, at)
	}
	return nil
}

func (c RemoteRevocation) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if known, err := c.isRecorded(s); known || err != nil || !c.concerns(s) {
		return nil, err
	}
	return c.revoked(s, clampDate(c.Date, now))
}

// isRecorded reports whether the grant is revoked already. It refuses a grant that is not the sender's to revoke.
func (c RecordRevocation) isRecorded(s *State) (bool, error) {
	if c.Grant.IsZero() { // the zero ID is the parent of all that the agent gave of its own
		return false, parley.Refuse(parley.InvalidArgument, "there is no grant without an ID")
	}
	if _, gone := s.Grants.revoked[c.Grant]; gone {
		return true, nil
	}
	if _, own := s.Grants.given.Get(c.Grant); own {
		return false, parley.Refuse(parley.NotPermitted, "grant %s is this agent's own to revoke", c.Grant)
	}
	return false, nil
}

// concerns reports whether the grant ever concerned the agent: the agent can be reached by it, or was given something
// by it.
func (c RecordRevocation) concerns(s *State) bool {
	other := func(r capabilities.Ref) bool { return r.Grant != c.Grant }
	if _, minted := s.Grants.minted.Get(c.Grant); minted || len(s.Grants.given.Cut(c.Grant)) > 0 {
		return true
	}
	for _, v := range s.Names.values { // those in the tables have no grants
		if !visitRefs(v, other) {
			return true
		}
	}
	return s.Mail.refs.concern(c.Grant, c.By) || c.takenBack(s, c.Date) != nil
}

// granted applies a new grant of the agent's own. Other nodes can use it once its target knows of it. An answerer
// learns of its answer after the home has it: if its own grant was revoked meanwhile, the new one is revoked at once.
func (f fold) granted(g capabilities.Grant) {
	if _, before := f.Grants.given.Get(g.ID); before {
		return
	}
	f.Grants.given.Add(g)
	switch {
	case f.Grants.needsMint(g):
		f.Outbox.enqueue(events.OutboxMint, g.ID, g.Target)
	case f.isRemote(g.To) && g.Target == f.ID:
		f.Grants.minted.Add(g)
	}
	if at, gone := f.Grants.revoked[g.Parent]; gone {
		f.revokeGiven(g, at)
	}
}

// revoked applies the revocation of a grant, and revokes everything that the agent derived from it.
func (f fold) revoked(grant capabilities.ID, at capabilities.Time) {
	if _, before := f.Grants.revoked[grant]; before {
		return
	}
	if f.Grants.Answers.Revoke(grant, at) {
		return // nothing else derives from it
	}
	f.Grants.revoked[grant] = at
	for _, g := range f.Grants.minted.Cut(grant) {
		f.Grants.minted.Mark(g.ID, at)
	}
	for _, g := range f.Grants.given.Cut(grant) {
		f.revokeGiven(g, at)
	}
}

// revokeGiven revokes a grant of the agent's own, and enqueues the revocation for its holder.
func (f fold) revokeGiven(g capabilities.Grant, at capabilities.Time) {
	f.Grants.given.Mark(g.ID, at)
	f.Grants.revoked[g.ID] = at
	for _, own := range f.Grants.minted.Cut(g.ID) { // grants of the agent itself
		f.Grants.minted.Mark(own.ID, at)
	}
	f.Outbox.enqueue(events.OutboxRevocation, g.ID, g.To)
	if f.Grants.needsMint(g) {
		f.Outbox.enqueue(events.OutboxRevocation, g.ID, g.Target)
	}
}

// revokeUnused revokes grants whose delivery was refused or dropped.
func (f fold) revokeUnused(grants []capabilities.Grant, at capabilities.Time) {
	for _, g := range grants {
		if own, ok := f.Grants.given.Get(g.ID); ok && own.Revoked == 0 {
			f.revokeGiven(own, at)
		}
	}
}

// maxReceiver bounds the name of a right's receiver, in bytes.
const maxReceiver = 255

// GrantAnswer makes a right to answer an open form in the agent's place. It is for whoever shows the secret with the
// digest. Without Outcomes it has those of From, the right that it derives from. Without that too, it denies and allows
// an approval once, or answers and declines a form. It ends with the form at the latest.
type GrantAnswer struct {
	Form     capabilities.FormRef
	From     capabilities.ID
	Outcomes []string
	Facet    capabilities.Facet // its end and uses
	Name     string             // of the receiver, for people
	Digest   []byte
	By       events.TokenRef
}

func (c GrantAnswer) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	m, err := s.answerable(c.Form)
	if err != nil {
		return nil, err
	}
	if err := checkText("a receiver's name", c.Name, maxReceiver); err != nil {
		return nil, err
	}
	if c.Facet.Mode != capabilities.Full || c.Facet.Until != 0 && c.Facet.Until <= now {
		return nil, parley.Refuse(parley.InvalidArgument, "the right to answer would have no use")
	}
	if err := s.Grants.Answers.Room(m.Form.ID); err != nil {
		return nil, err
	}
	e := &events.AnswerGranted{
		Grant: capabilities.Grant{
			ID: ids(), Parent: c.From, Target: m.Form.Resolver, Kind: capabilities.KindResolver, Facet: c.Facet,
			Name: c.Name, To: s.ID, By: s.ID, Message: m.Form.ID, At: now,
		},
		Outcomes: slices.Compact(slices.Sorted(slices.Values(c.Outcomes))), Revision: m.Form.Revision(), Digest: c.Digest, By: c.By,
	}
	if err := s.Grants.Answers.Narrow(e, now); err != nil {
		return nil, err
	}
	all, usual := m.Form.outcomes()
	if len(e.Outcomes) == 0 {
		e.Outcomes = usual
	}
	for _, o := range e.Outcomes {
		if !slices.Contains(all, o) {
			return nil, parley.Refuse(parley.InvalidArgument, "message %d has no outcome %s", m.Number, parley.Quoted(o, 40)).
				WithHint("it has %s", strings.Join(all, ", "))
		}
	}
	return []events.Event{e}, nil
}

// outcomes returns the outcomes that an answer to the form may choose, and those of a right that names none.
func (q *Question) outcomes() (all, usual []string) {
	if q.Kind == events.Approval {
		for _, o := range q.Fields[0].Options {
			all = append(all, o.Value)
		}
		return all, all[:min(len(all), withoutRule)]
	}
	all = []string{right.Answer, right.Decline}
	return all, all
}

// UseAnswer uses a right to answer, for an outcome. The mark is equal for equal answers.
type UseAnswer struct {
	Grant   capabilities.ID
	Digest  []byte
	Outcome string
	Mark    string
}

func (c UseAnswer) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	r, m, err := s.RightTo(c.Grant, c.Digest)
	if err != nil {
		return nil, err
	}
	evs, err := s.Grants.Answers.Use(r, c.Outcome, c.Mark, now)
	if err != nil {
		return nil, err
	}
	return evs, m.Form.checkRevision(r.Revision, "the form")
}

// RightTo returns the right to answer whose secret has a digest, and its form. It refuses with UNAUTHENTICATED a secret
// that is not good. It refuses a form that has ended with the error that tells how.
func (s *State) RightTo(grant capabilities.ID, digest []byte) (*right.Right, *Message, error) {
	r, err := s.Grants.Answers.Check(grant, digest)
	if err != nil {
		return nil, nil, err
	}
	m, err := s.Mail.FindFormID(r.Form())
	if err == nil && !m.Form.IsOpen() {
		err = m.Form.endedError("the form", func(id capabilities.ID) (string, error) {
			if id == s.ID { // others read this
				return "the agent that gave the right, or by the right", nil
			}
			return s.Names.describe(id)
		})
	}
	return r, m, err
}
