package actors

import (
	"context"
	"sync"

	"parley"
	"parley/actors/transport"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// receive handles a packet from another node, whose signature was checked. What has no response was not
// worth one: its sender does not belong here.
func (n *Node) receive(ctx context.Context, l transport.Packet) (transport.Kind, []byte, bool) {
	if n.peers.isClosed() {
		return 0, nil, false // it stops: the sender finds it gone
	}
	kind, response := n.respond(ctx, l)
	if response == nil {
		n.refusedPackets.Add(1)
		n.sayRefused.Do(func() { n.log.Warn("packet refused", "from", l.From.String(), "kind", l.Kind) })
		return 0, nil, false
	}
	body, err := writePacket(response)
	if err != nil {
		n.log.Error("response", "error", err)
		return 0, nil, false
	}
	return kind, body, true
}

func (n *Node) respond(ctx context.Context, l transport.Packet) (transport.Kind, any) {
	if l.Kind == packetAccept {
		return packetWelcome, n.respondAccept(ctx, l)
	}
	if !n.peers.belongs(ctx, l.From) {
		return 0, nil
	}
	p := n.peers.of(l.From)
	if l.Kind == packetLeave {
		p.leaves()
		return packetNoted, n.placeNow()
	}
	p.hear()
	switch l.Kind {
	case packetMail:
		mail, err := readPacket[mailPacket](l.Body)
		if err != nil || mail.check() != nil {
			return 0, nil
		}
		return packetAcks, n.acceptMail(ctx, p, mail)
	case packetAnnounce:
		at, err := readPacket[placePacket](l.Body)
		if err != nil {
			return 0, nil
		}
		n.hearFrom(ctx, l.From, at)
		return packetNoted, n.placeNow()
	}
	return 0, nil
}

// acceptMail delivers the items of a packet and says what became of each, once that is on disk.
func (n *Node) acceptMail(ctx context.Context, p *peer, l mailPacket) any {
	in := &intake{node: n, from: p.id, window: &p.receives, epoch: l.Epoch, acks: make([]itemAck, len(l.Items)), failed: map[capabilities.ID]bool{}}
	for _, i := range l.Introduced {
		n.introduced(ctx, p.id, i)
	}
	size := l.bytes()
	taken := p.takes(size)
	defer p.takes(-size)
	if !taken || n.registry.overloaded(shareOfPeers) || !p.receives.wait(ctx, l.Epoch, l.Number, n.journal.Failures()) {
		for i := range in.acks {
			in.acks[i].Status = ackRetry
		}
		p.receives.fail(l.Epoch)
		return ackPacket{in.acks}
	}
	in.open.Add(len(l.Items))
	for i, item := range l.Items {
		in.take(ctx, i, item)
	}
	p.receives.admit(l.Epoch, l.Number)
	done := make(chan struct{})
	go func() {
		in.open.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return nil
	}
	p.mailIn.Add(uint64(len(l.Items)))
	return ackPacket{in.acks}
}

// intake is a packet of mail being delivered.
type intake struct {
	node   *Node
	from   capabilities.NodeID
	window *receiveWindow
	epoch  uint64
	acks   []itemAck
	open   sync.WaitGroup

	mu     sync.Mutex
	failed map[capabilities.ID]bool // mailboxes that could not take in something, and so take in nothing after it
}

// take delivers one item. Those for one mailbox come to it in their order.
func (in *intake) take(ctx context.Context, i int, item packetItem) {
	to := capabilities.ID{ULID: item.To, Node: in.node.id}
	c, evs, err := item.unpack(in.from)
	if err == nil {
		if _, there := in.node.journal.Mailbox(to); !there {
			err = parley.Refuse(parley.AgentNotFound, "there is no such agent")
		}
	}
	if copied, ok := c.(mailbox.RemoteDelivery); ok && err == nil && copied.Form != nil {
		err = in.node.checkForwarders(ctx, copied.Form, to)
	}
	if err != nil {
		in.ends(i, to, err, 0)
		return
	}
	in.node.registry.tell(to, 0, &acceptDelivery{intake: in, index: i, to: to, command: c, events: evs})
}

// acceptDelivery delivers an item of another node.
type acceptDelivery struct {
	intake  *intake
	index   int // of the item
	to      capabilities.ID
	command mailbox.Command
	events  []events.Event
}

func (m *acceptDelivery) handle(b *mailboxActor) {
	in := m.intake
	if in.hasFailed(m.to) || in.window.hasFailed(in.epoch, b.failures) {
		in.ends(m.index, m.to, errDelayed, 0)
		return
	}
	at, err := b.acceptRemoteWithin(in.from, m.command, m.events)
	if isTransient(err) {
		in.fail(m.to, err)
	}
	b.release(func(lost error) {
		if lost != nil {
			err = lost
		}
		in.ends(m.index, m.to, err, at)
	})
}

func (m *acceptDelivery) fail(err error) { m.intake.ends(m.index, m.to, err, 0) }

// checkForwarders refuses a form of another node that says of an agent of this one that it handed it on, when that agent
// did not: what it hands on is in its own log before its home can have heard of it.
func (n *Node) checkForwarders(ctx context.Context, form *events.FormRequested, to capabilities.ID) error {
	if len(form.Chain) > mailbox.MaxHolders {
		return nil // the mailbox says so
	}
	for i, by := range form.Chain {
		if by.Node != n.id {
			continue
		}
		next := to
		if i+1 < len(form.Chain) {
			next = form.Chain[i+1]
		}
		if _, there := n.journal.Mailbox(by); there {
			handed, err := call(ctx, &Agent{node: n, id: by}, queryForwarded{form.ID, next})
			if err != nil {
				return errDelayed // nothing is known: it comes again
			}
			if handed {
				continue
			}
		}
		return parley.Refuse(parley.NotPermitted, "the form says that an agent of this node forwarded it, which it did not")
	}
	return nil
}

// queryForwarded reports whether the agent forwarded a form to another.
type queryForwarded struct{ form, to capabilities.ID }

func (m queryForwarded) handle(b *mailboxActor) (bool, error) {
	return b.state.HasForwarded(m.form, m.to), nil
}

// ends notes the result of one item.
func (in *intake) ends(i int, to capabilities.ID, err error, at capabilities.Time) {
	defer in.open.Done()
	r := &in.acks[i]
	switch {
	case err == nil:
		r.Status, r.At = ackAccepted, at
	case isTransient(err):
		in.fail(to, err)
		r.Status = ackRetry
	default:
		r.Status = ackRefused
		r.Code, r.Text = refusal(err)
	}
}

// fail accepts nothing more for a mailbox, nor of the window, so that all of it is sent again in order. A quarantined
// mailbox holds up only itself.
func (in *intake) fail(to capabilities.ID, why error) {
	in.mu.Lock()
	in.failed[to] = true
	in.mu.Unlock()
	if parley.CodeOf(why) != parley.CorruptLog {
		in.window.fail(in.epoch)
	}
}

func (in *intake) hasFailed(to capabilities.ID) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.failed[to]
}

// isTransient reports whether what failed may be done later.
func isTransient(err error) bool {
	switch parley.CodeOf(err) {
	case parley.ReadOnly, parley.CorruptLog, parley.Internal, parley.RateLimited, parley.NotRunning:
		return true
	}
	return false
}

// acceptRemote has the mailbox decide on what one of another node says. It returns when a form was settled by it.
func (b *mailboxActor) acceptRemote(c mailbox.Command, _ []events.Event) (at capabilities.Time, err error) {
	settle, settles := c.(mailbox.RemoteAnswer)
	if settles {
		if err := b.seal(&settle.SettleForm); err != nil {
			return 0, err
		}
		if m, found := b.state.Mail.FindFormID(settle.Form); found == nil && m.Form.IsOpen() {
			if settle.Schema, err = b.schema(settle.By, m.Form, settle.Values, nil); err != nil {
				return 0, later(err)
			}
		}
		c = settle
	}
	_, err = b.decide(c)
	if !settles {
		return 0, err
	}
	m, found := b.state.Mail.FindFormID(settle.Form)
	if found != nil {
		return 0, err
	}
	if err != nil && settle.Answer.IsZero() && b.isRepeated(m.Form, settle.SettleForm) {
		err = nil
	}
	if a := m.Form.Answered; a != nil {
		at = a.Date
	} else if e := m.Form.Ended; e != nil {
		at = e.Date
	}
	return at, err
}

// isRepeated reports whether a form was settled by just what is being said again, because word of it was lost. It is for
// what has no ID of its own, of programs before this one.
func (b *mailboxActor) isRepeated(f *mailbox.Form, c mailbox.SettleForm) bool {
	if e := f.Ended; e != nil {
		return c.Reason == e.Reason && c.By == e.By && c.Note == e.Note
	}
	a := f.Answered
	if a == nil || c.Reason != "" || a.By != c.By || len(a.Grants) != len(c.Grants) {
		return false
	}
	was, err := b.node.secrets.Open(a.Values)
	if err != nil {
		return false
	}
	for i, g := range a.Grants {
		if g != c.Grants[i] {
			return false
		}
	}
	return was.Equal(capabilities.Record(c.Values))
}

// bytes returns the size of the packet's items.
func (l *mailPacket) bytes() int64 {
	n := 0
	for _, p := range l.Items {
		n += len(p.Body)
	}
	return int64(n)
}

// takes counts bytes of packets that are being taken in, and reports whether there was room for them.
func (p *peer) takes(bytes int64) bool { return p.taking.Add(bytes) <= maxTaking }
