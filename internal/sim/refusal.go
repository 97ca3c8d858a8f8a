package sim

import (
	"slices"

	"parley"
	"parley/mailbox"
)

// mailBehindRefusal has a quota of another node refuse a form of a host. The host then sends more mail the same way.
// The node may crash before the refusal is in its log.
func (w *world) mailBehindRefusal(n *node, d *draw) {
	to := w.neighbour(n, d)
	if n.down || to.down {
		return
	}
	b := w.host(n)
	w.setQuotas(0, quotaInbox)
	w.run(b, mailbox.RequestForm{Schema: w.schema, Form: parley.Form{To: to.name, Description: "d1", Fields: formFields}})
	for i := 0; i < 8 && !b.acks.HasRefusedCopy(); i++ {
		w.exchange(n, to)
	}
	w.setQuotas(quotaPeerForms, quotaInbox)
	for range 1 + d.n(2) {
		w.run(b, mailbox.PostMessage{To: to.name, Post: parley.Post{Text: "behind"}})
	}
	for range d.n(6) {
		w.exchange(n, to)
	}
	if d.oneIn(2) {
		n.crash(d.oneIn(2))
	}
}

// neighbour draws a node whose host has met that of another.
func (w *world) neighbour(n *node, d *draw) *node {
	at := slices.Index(w.nodes, n)
	if at == 0 || at+1 < len(w.nodes) && d.oneIn(2) {
		return w.nodes[at+1]
	}
	return w.nodes[at-1]
}

// exchange has two nodes handle and store what they have, and send it to each other.
func (w *world) exchange(a, b *node) {
	for _, n := range []*node{a, b} {
		for _, x := range n.mailboxes {
			for range len(x.inbox) {
				x.handle()
			}
		}
		n.journal.begin(len(n.journal.queued))
		n.write(false)
		n.journal.settle()
	}
	a.peer(b).advance()
	b.peer(a).advance()
	for i := 0; i < len(w.packets); {
		if m := w.packets[i]; m.from == a && m.to == b || m.from == b && m.to == a {
			w.carry(i)
			continue
		}
		i++
	}
}

// withRefusal returns a node that would lose the refusal of a copy in a crash. It returns n if there is none.
func (w *world) withRefusal(n *node) *node {
	for _, b := range w.all {
		if b.acks.HasRefusedCopy() {
			return b.node
		}
	}
	return n
}
