package sim

import (
	"fmt"
	"maps"
	"slices"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
	"parley/mailbox/quota"
)

// world is all nodes, the packets between them, and what is known of all together.
type world struct {
	nodes     []*node
	mailboxes map[capabilities.ID]*mailboxActor
	all       []*mailboxActor
	ids       uint64
	calls     uint64
	now       capabilities.Time
	packets   []*packet
	cut       map[[2]*node]bool // links that lose everything, by direction
	ops       []*op             // of clients, that have not ended

	limits quota.Limits
	peers  quota.Amounts
	schema *form.Schema
	votes  *form.Schema // of voteFields

	facts facts
	seen  *[states]int
	lines []string // the transcript; nil for none
	log   bool

	progress int // grows with everything that happens
}

// failure is the panic of a broken invariant.
type failure struct{ text string }

func (w *world) failf(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

func (w *world) trace(format string, args ...any) {
	if w.log {
		w.lines = append(w.lines, fmt.Sprintf(format, args...))
	}
}

// Quotas of agents and of other nodes, so small that they are met.
const (
	quotaForms     = 3
	quotaPeerForms = 2
	quotaInbox     = 3000
)

var formFields = []events.Field{{Name: "f"}, {Name: "who", Type: events.Capability}}

// base is a world with nothing but its agents, which others begin as.
type base struct {
	disks  [][]events.Section // by mailbox
	schema *form.Schema
	votes  *form.Schema
}

var bases = map[int]*base{} // by number of nodes

// newWorld returns a world of some nodes, with a host and an agent each. The hosts of neighbours have met.
func newWorld(nodes int, seen *[states]int, log bool) *world {
	w := &world{
		mailboxes: map[capabilities.ID]*mailboxActor{}, now: 1_000_000, cut: map[[2]*node]bool{}, facts: newFacts(), seen: seen,
	}
	w.limits.Quotas = quota.None()
	w.limits.Quotas[quota.Forms], w.limits.Quotas[quota.Inbox] = quotaForms, quotaInbox
	w.peers = quota.None()
	w.peers[quota.Forms] = quotaPeerForms
	for i := range nodes {
		n := &node{world: w, name: string(rune('A' + i)), id: capabilities.NodeOf([32]byte{31: byte('A' + i)}), peers: map[*node]*peer{}}
		w.nodes = append(w.nodes, n)
		for _, name := range []string{"h", string(rune('a' + i))} {
			b := &mailboxActor{node: n, id: n.newID(), name: name + "@" + n.name}
			n.mailboxes = append(n.mailboxes, b)
			w.mailboxes[b.id] = b
			w.all = append(w.all, b)
		}
	}
	known := bases[nodes]
	if known == nil {
		known = w.found()
		bases[nodes] = known
	}
	w.ids = 1000 // the same, whether the base was known or not
	w.schema, w.votes = known.schema, known.votes
	for i, b := range w.all {
		b.disk = slices.Clone(known.disks[i])
		b.shadow = newShadow()
		for _, s := range b.disk {
			b.observe(s)
		}
	}
	w.log = log
	return w
}

// found makes the agents, and lets the hosts of neighbours meet.
func (w *world) found() *base {
	states := map[*mailboxActor]*mailbox.State{}
	logs := map[*mailboxActor][]events.Recorded{}
	apply := func(b *mailboxActor, evs ...events.Event) {
		for _, e := range evs {
			r := events.Recorded{At: w.now, Event: e}
			if err := states[b].Apply(r); err != nil {
				w.failf("%s: %v", b.name, err)
			}
			logs[b] = append(logs[b], r)
		}
	}
	decide := func(b *mailboxActor, c mailbox.Command) {
		evs, err := states[b].Decide(c, w.now, b.node.newID)
		if err != nil {
			w.failf("%s: %v", b.name, err)
		}
		apply(b, evs...)
	}
	for _, n := range w.nodes {
		host, agent := n.mailboxes[0], n.mailboxes[1]
		for _, b := range n.mailboxes {
			states[b] = mailbox.New(b.id)
			kind := events.Guest
			if b == host {
				kind = events.Host
			}
			apply(b, &events.AgentCreated{Agent: b.id, Kind: kind, Name: b.name[:1], Host: host.id})
		}
		apply(host, &events.NameBound{Name: agent.name[:1], Value: capabilities.Reference(capabilities.Ref{Target: agent.id, Kind: capabilities.KindAgent})})
	}
	for i := range w.nodes[1:] {
		a, b := w.nodes[i].mailboxes[0], w.nodes[i+1].mailboxes[0]
		ga, gb := a.node.newID(), b.node.newID()
		decide(a, mailbox.AddPeer{Host: b.id, Name: b.node.name, Theirs: gb, Ours: ga, Stamp: 1})
		decide(b, mailbox.AddPeer{Host: a.id, Name: a.node.name, Theirs: ga, Ours: gb, Stamp: 1})
	}
	known := &base{}
	for _, b := range w.all {
		body, err := events.Append(nil, logs[b]...)
		if err != nil {
			w.failf("%s: %v", b.name, err)
		}
		known.disks = append(known.disks, []events.Section{{Mailbox: b.id, First: 1, Count: uint32(len(logs[b])), Body: body, Summary: states[b].Summary()}})
	}
	var err error
	if known.schema, err = form.Compile(formFields); err != nil {
		w.failf("the fields: %v", err)
	}
	if known.votes, err = form.Compile(voteFields); err != nil {
		w.failf("the fields: %v", err)
	}
	return known
}

func (w *world) mailbox(id capabilities.ID) *mailboxActor {
	b := w.mailboxes[id]
	if b == nil {
		w.failf("there is no agent %s", id)
	}
	return b
}

func (w *world) nodeOf(id capabilities.ID) *node { return w.mailbox(id).node }

func (w *world) host(n *node) *mailboxActor { return n.mailboxes[0] }

// quotaed adds the quotas of a sender to a command that delivers its mail.
func (w *world) quotaed(from, to *mailboxActor, c mailbox.Command) mailbox.Command {
	var quotas *quota.Amounts
	switch {
	case from.node != to.node:
		quotas = &w.peers
	case from != w.host(from.node):
		quotas = &w.limits.Quotas
	}
	switch c := c.(type) {
	case mailbox.AcceptDelivery:
		c.Quotas = quotas
		return c
	case mailbox.RemoteDelivery:
		c.Quotas = quotas
		if c.Form != nil {
			c.Schema = w.schemaOf(c.Form.Fields)
		}
		return c
	case mailbox.MintCapability:
		c.Quotas = quotas
		return c
	case mailbox.RemoteAnswer:
		c.Schema = w.schema
		if m, err := to.find(c.Form); err == nil {
			c.Schema = w.schemaOf(m.Form.Fields)
		}
		return c
	case mailbox.RecordAmendment:
		c.Quotas = quotas
		return c
	case mailbox.RemoteAmendment:
		c.Quotas, c.Schema = quotas, w.schemaOf(c.Amendment.Fields)
		return c
	}
	return c
}

// pack returns a command as an item for another node.
func (w *world) pack(from *mailboxActor, o mailbox.OutboxItem, c mailbox.Command) item {
	evs := mailbox.Pack(c)
	recorded := make([]events.Recorded, len(evs))
	for i, e := range evs {
		recorded[i].Event = e
	}
	body, err := events.Append(nil, recorded...)
	if err != nil {
		w.failf("%s: item %+v: %v", from.name, o, err)
	}
	return item{kind: o.Kind, from: from.id, to: w.mailbox(o.To), count: len(evs), body: body}
}

// unpack returns the command of an item from another node.
func (w *world) unpack(it item) mailbox.Command {
	recorded, err := events.Decode(it.body, it.count)
	if err != nil {
		w.failf("an item for %s: %v", it.to.name, err)
	}
	evs := make([]events.Event, len(recorded))
	for i, r := range recorded {
		evs[i] = r.Event
	}
	c, err := mailbox.Unpack(it.kind, it.from, evs)
	if err != nil {
		w.failf("an item for %s: %v", it.to.name, err)
	}
	return c
}

func nameOf(c mailbox.Command) string { return fmt.Sprintf("%T", c) }

// carry delivers a packet, unless its link is cut.
func (w *world) carry(i int) {
	m := w.packets[i]
	w.packets = slices.Delete(w.packets, i, i+1)
	if w.cut[[2]*node{m.from, m.to}] {
		w.trace("a packet from %s to %s is lost", m.from.name, m.to.name)
		w.sometimes(packetLost)
		return
	}
	w.progress++
	m.to.receive(m)
}

// setQuotas sets the quotas of mail: open forms of another node, and bytes of another agent.
func (w *world) setQuotas(forms, bytes int) {
	w.peers[quota.Forms], w.limits.Quotas[quota.Inbox] = int64(forms), int64(bytes)
}

// heal ends all partitions and full disks, and starts all nodes.
func (w *world) heal() {
	clear(w.cut)
	w.setQuotas(quotaPeerForms, quotaInbox)
	for _, n := range w.nodes {
		n.full = false
		n.start()
		n.reopen()
	}
}

// drain runs everything until nothing is left to do. It fails if that never ends.
func (w *world) drain() {
	const most = 20_000
	for range most {
		before := w.progress
		for _, n := range w.nodes {
			for _, b := range n.mailboxes {
				for len(b.inbox) > 0 {
					w.progress++
					b.handle()
				}
			}
			n.journal.begin(len(n.journal.queued))
			n.write(false)
			n.reopen()
			if n.journal.settle() {
				w.progress++
			}
			for len(n.timers) > 0 {
				t := n.timers[0]
				n.timers = n.timers[1:]
				w.progress++
				t.do()
			}
			n.tick()
			for _, other := range w.nodes {
				if p := n.peers[other]; p != nil && p.advance() {
					w.progress++
				}
			}
		}
		for len(w.packets) > 0 {
			w.carry(0)
		}
		if before != w.progress {
			continue
		}
		for _, n := range w.nodes { // what is missing now is lost
			for len(n.held) > 0 {
				w.progress++
				n.giveUp(0)
			}
			for _, other := range w.nodes {
				if p := n.peers[other]; p != nil {
					for _, call := range slices.Sorted(maps.Keys(p.calls)) {
						p.fail(call)
					}
				}
			}
		}
		if before == w.progress && len(w.packets) == 0 {
			return
		}
	}
	w.failf("the nodes never come to rest")
}
