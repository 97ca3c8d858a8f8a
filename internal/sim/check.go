package sim

import (
	"maps"
	"slices"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// facts is what the logs of all nodes say together.
type facts struct {
	settled  map[capabilities.ID]*settlement
	sent     map[[2]*mailboxActor][]capabilities.ID         // copies for each pair of mailboxes, in the order of the sender's log
	places   map[[2]*mailboxActor]map[capabilities.ID][]int // of each in sent: a form is sent again if it was taken back meanwhile
	received map[[2]*mailboxActor]int                       // how many of sent have passed
	skipped  map[[2]*mailboxActor][]capabilities.ID
	refused  map[capabilities.ID]map[*mailboxActor]bool // copies that their mailbox refused for good
	mayReach map[reach]bool
	shared   []capabilities.ID // forms that were forwarded
	forged   map[capabilities.ID]bool
	granted  []capabilities.ID
	amended  map[amendment]string // the question of each revision, in the home's log
	reminded map[capabilities.ID]uint32
	ballots  map[ballot]bool // votes in the home's log

	amendmentRefused map[capabilities.ID]bool
	waits            []*waiting
}

// reach says that a node may send mail to a mailbox.
type reach struct {
	target *mailboxActor
	from   *node
}

// waiting is a client that waits.
type waiting struct {
	*wait
	mailbox *mailboxActor
	form    capabilities.ID
}

type settlement struct{ text string }

func newFacts() facts {
	return facts{
		settled: map[capabilities.ID]*settlement{}, sent: map[[2]*mailboxActor][]capabilities.ID{}, places: map[[2]*mailboxActor]map[capabilities.ID][]int{},
		received: map[[2]*mailboxActor]int{}, skipped: map[[2]*mailboxActor][]capabilities.ID{}, refused: map[capabilities.ID]map[*mailboxActor]bool{}, mayReach: map[reach]bool{},
		forged: map[capabilities.ID]bool{}, amended: map[amendment]string{}, reminded: map[capabilities.ID]uint32{},
		amendmentRefused: map[capabilities.ID]bool{}, ballots: map[ballot]bool{},
	}
}

func (f *facts) addWait(t *wait, b *mailboxActor, form capabilities.ID) {
	if !slices.ContainsFunc(f.waits, func(w *waiting) bool { return w.wait == t }) {
		f.waits = append(f.waits, &waiting{t, b, form})
	}
}

// shadow is what the durable log of a mailbox says, counted without package mailbox.
type shadow struct {
	version uint64
	copies  map[capabilities.ID]*copied
	own     int // open forms that the agent asked
	peers   map[*node]int
	inbox   map[*mailboxActor]int64 // bytes of open mail of other agents of the node
	minted  map[capabilities.ID]capabilities.ID
	revoked map[capabilities.ID]bool
	numbers uint64
}

// copied is a form or message in a mailbox.
type copied struct {
	from *mailboxActor
	size int64
	form bool
	open bool
	gone bool // dismissed

	formFacts
}

func newShadow() shadow {
	return shadow{
		copies: map[capabilities.ID]*copied{}, peers: map[*node]int{}, inbox: map[*mailboxActor]int64{}, minted: map[capabilities.ID]capabilities.ID{},
		revoked: map[capabilities.ID]bool{},
	}
}

// observe checks a section that has become durable.
func (b *mailboxActor) observe(s events.Section) {
	recorded, err := events.Decode(s.Body, int(s.Count))
	if err != nil {
		b.node.world.failf("%s: %v", b.name, err)
	}
	for _, r := range recorded {
		b.shadow.version++
		b.node.logged = max(b.node.logged, r.At)
		b.check(r.Event)
	}
}

func (b *mailboxActor) check(e events.Event) {
	w, f := b.node.world, &b.node.world.facts
	w.trace("    log of %s: %d %s", b.name, b.shadow.version, events.Name(e))
	switch e := e.(type) {
	case *events.FormRequested:
		b.arrives(e.ID, e.From, e.To, e.Number, (&mailbox.Message{Form: &mailbox.Form{Question: mailbox.Question{FormRequested: e}}}).Size(), true, e.Via)
		b.shadow.copies[e.ID].asked(e)
	case *events.MessagePosted:
		b.arrives(e.Message, e.From, e.To, e.Number, (&mailbox.Message{Posted: e}).Size(), false, e.Via)
	case *events.FormForwarded:
		if c := b.shadow.copies[e.Form]; c != nil && c.from == b {
			f.shared = append(f.shared, e.Form)
			b.sends(e.Form, w.mailbox(e.To))
			c.holders = append(c.holders, e.To)
		}
	case *events.FormAmended:
		b.amended(e)
	case *events.FormReminded:
		b.reminded(e)
	case *events.FormRouted:
		b.routed(e)
	case *events.VoteCast:
		b.voted(e)
	case *events.VoteWithdrawn:
		b.withdrawn(e)
	case *events.FormAnswered:
		b.elected(e.Form, e.By)
		b.settles(e.Form, answeredText(e))
		b.decided(e.Form, e.By, textOf(e.Values))
	case *events.FormCancelled:
		if e.Reason == events.Expired {
			b.expires(e)
		}
		b.settles(e.Form, endedText(e))
		if e.Reason == events.Declined {
			b.decided(e.Form, e.By, e.Note)
		}
	case *events.CapabilityGranted:
		f.granted = append(f.granted, e.Grant.ID)
		target := w.mailbox(e.Grant.Target)
		if target.node == b.node || f.mayReach[reach{target, b.node}] {
			f.mayReach[reach{target, w.nodeOf(e.Grant.To)}] = true
		}
	case *events.CapabilityMinted:
		by := w.nodeOf(e.Grant.By)
		if by != b.node && !f.mayReach[reach{b, by}] {
			w.failf("%s was granted by %s, which has no grant for it", b.name, by.name)
		}
		b.shadow.minted[e.Grant.ID] = e.Grant.Parent
		f.mayReach[reach{b, w.nodeOf(e.Grant.To)}] = true
	case *events.CapabilityRevoked:
		b.shadow.revoked[e.Grant] = true
	case *events.NodeMet:
		f.mayReach[reach{b, w.nodeOf(e.Host)}] = true
	}
}

// arrives checks a form or message that a mailbox has recorded: its own, or a copy of another's.
func (b *mailboxActor) arrives(id, from, to capabilities.ID, number uint64, size int64, isForm bool, via capabilities.ID) {
	w, s := b.node.world, &b.shadow
	if s.copies[id] != nil {
		w.failf("%s has %s twice", b.name, id.ULID)
	}
	if number != s.numbers {
		w.failf("%s: message %d has number %d", b.name, s.numbers, number)
	}
	s.numbers++
	c := &copied{from: w.mailbox(from), size: size, form: isForm, open: true}
	s.copies[id] = c
	if c.from == b {
		if isForm {
			s.own++
		}
		if b != b.node.mailboxes[0] && s.own > quotaForms {
			w.failf("%s has %d open forms, over its quota of %d", b.name, s.own, quotaForms)
		}
		b.sends(id, w.mailbox(to))
		return
	}
	if !w.facts.forged[id] {
		w.receives(c.from, b, id)
	}
	if c.from.node == b.node {
		if s.inbox[c.from] += size; c.from != b.node.mailboxes[0] && s.inbox[c.from] > quotaInbox {
			w.failf("%s holds %d bytes of %s, over its quota of %d", b.name, s.inbox[c.from], c.from.name, quotaInbox)
		}
		return
	}
	if !w.facts.mayReach[reach{b, c.from.node}] {
		w.failf("%s was reached from %s, which has no grant for it", b.name, c.from.node.name)
	}
	for g := via; !g.IsZero(); g = s.minted[g] {
		if s.revoked[g] {
			w.failf("%s was reached from %s by a revoked grant", b.name, c.from.name)
		}
	}
	if isForm {
		if s.peers[c.from.node]++; s.peers[c.from.node] > quotaPeerForms {
			w.failf("%s has %d open forms of %s, over its quota of %d", b.name, s.peers[c.from.node], c.from.node.name, quotaPeerForms)
		}
	}
}

// sends notes a copy for another mailbox. The target's node may reply.
func (b *mailboxActor) sends(id capabilities.ID, to *mailboxActor) {
	if to == b {
		return
	}
	f := &b.node.world.facts
	pair := [2]*mailboxActor{b, to}
	if f.places[pair] == nil {
		f.places[pair] = map[capabilities.ID][]int{}
	}
	f.places[pair][id] = append(f.places[pair][id], len(f.sent[pair]))
	f.sent[pair] = append(f.sent[pair], id)
	f.mayReach[reach{b, to.node}] = true
}

// receives checks that a copy was sent, and comes after those that were sent before it.
func (w *world) receives(from, to *mailboxActor, id capabilities.ID) {
	f, pair := &w.facts, [2]*mailboxActor{from, to}
	places := f.places[pair][id]
	if len(places) == 0 {
		w.failf("%s has %s from %s, which never sent it", to.name, id.ULID, from.name)
	}
	at := places[0]
	for _, again := range places[1:] { // the earlier ones were refused
		if at < f.received[pair] {
			at = again
		}
	}
	if at < f.received[pair] {
		w.failf("%s has message %d of %s after message %d", to.name, at, from.name, f.received[pair]-1)
	}
	f.skipped[pair] = append(f.skipped[pair], f.sent[pair][f.received[pair]:at]...)
	f.received[pair] = at + 1
}

// frees counts a copy no more.
func (b *mailboxActor) frees(c *copied) {
	switch {
	case c.from.node == b.node:
		b.shadow.inbox[c.from] -= c.size
	case c.form:
		b.shadow.peers[c.from.node]--
	}
}

// isFinal reports whether an error is a refusal for good.
func isFinal(err error) bool { return err != nil && !isTransient(err) }

// noteRefusal notes a copy that its mailbox has refused for good.
func (w *world) noteRefusal(b *mailboxActor, c mailbox.AcceptDelivery, err error) {
	if !isFinal(err) {
		return
	}
	id := copyID(c)
	if w.facts.refused[id] == nil {
		w.facts.refused[id] = map[*mailboxActor]bool{}
	}
	w.facts.refused[id][b] = true
	w.sometimes(copyRefused)
}

// copyID returns the ID of a form or message on its way.
func copyID(c mailbox.AcceptDelivery) capabilities.ID {
	if c.Form != nil {
		return c.Form.ID
	}
	return c.Posted.Message
}

// isAnswered reports whether a command is a settlement that its home has recorded.
func isAnswered(b *mailboxActor, c mailbox.Command) bool {
	a, ok := c.(mailbox.RemoteAnswer)
	if !ok {
		return false
	}
	m, err := b.find(a.Form)
	return err == nil && m.Form.EndedBy(a.Answer)
}

// checkEnd checks the world when it has come to rest: everybody knows everything, and nobody waits.
func (w *world) checkEnd() {
	f := &w.facts
	for _, o := range w.ops {
		w.failf("%s of %s never ends", o.what, o.mailbox.name)
	}
	for _, t := range f.waits {
		if t.outcome == "" && !t.refused {
			w.failf("%s never learns the outcome of %s", t.mailbox.name, t.form.ULID)
		}
	}
	for _, b := range w.all {
		if b.state == nil || b.state.Version != b.shadow.version {
			w.failf("%s is not at rest", b.name)
		}
		for _, o := range b.state.Outbox.Items() {
			w.failf("%s has item %+v left", b.name, o)
		}
		if b.encoded(b.state) != b.fold() {
			w.failf("the state of %s is not the fold of its log", b.name)
		}
		b.checkHolders()
	}
	for pair, ids := range f.sent {
		missing := append(slices.Clone(f.skipped[pair]), ids[f.received[pair]:]...)
		for _, id := range missing {
			if pair[1].shadow.copies[id] == nil && !f.refused[id][pair[1]] {
				w.failf("%s never got %s of %s", pair[1].name, id.ULID, pair[0].name)
			}
		}
	}
	w.checkGrants()
}

// checkGrants checks that no grant is valid that was derived from a revoked one.
func (w *world) checkGrants() {
	var all []capabilities.Grant
	for _, b := range w.all {
		all = append(all, b.state.Grants.All()...)
	}
	slices.SortFunc(all, func(a, b capabilities.Grant) int { return a.ID.ULID.Compare(b.ID.ULID) }) // parents are older
	ended := map[capabilities.ID]bool{}
	for _, b := range w.all {
		maps.Copy(ended, b.shadow.revoked)
	}
	for _, g := range all {
		ended[g.ID] = ended[g.ID] || g.Revoked != 0 || ended[g.Parent]
		if ended[g.ID] && g.Revoked == 0 {
			w.failf("%s has a valid grant of a revoked one: %+v", w.mailbox(g.By).name, g)
		}
	}
	for _, b := range w.all {
		for _, g := range b.state.Grants.Minted() {
			if ended[g.ID] && g.Revoked == 0 {
				w.failf("%s can be reached by the revoked grant %s", b.name, g.ID.ULID)
			}
		}
	}
}
