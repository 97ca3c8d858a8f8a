package peers

import (
	"context"
	"errors"
	"sync"

	"parley"
	"parley/actors/peers/window"
	"parley/actors/transport"
	"parley/capabilities"
	"parley/mailbox"
)

// maxAccepting bounds the packets of one node that are being accepted, in bytes.
const maxAccepting = 8 << 20

// ErrDelayed is the error of an item that could not be accepted now. It is sent again.
var ErrDelayed = errors.New("the other node could not store all of it now")

// Receive handles a packet whose signature was checked. A packet without a response is refused: its sender is not known,
// or it is malformed.
func (d *Directory) Receive(ctx context.Context, packet transport.Packet) (transport.Kind, []byte, bool) {
	if !d.isOpen() {
		return 0, nil, false // the node stops: the sender finds it gone
	}
	kind, response := d.respond(ctx, packet)
	if response == nil {
		d.refusedPackets.Add(1)
		d.refusedWarning.Do(func() {
			d.o.Log.Warn("packet refused", "from", packet.From.String(), "kind", packet.Kind)
		})
		return 0, nil, false
	}
	body, err := WritePacket(response)
	if err != nil {
		d.o.Log.Error("response", "error", err)
		return 0, nil, false
	}
	return kind, body, true
}

func (d *Directory) respond(ctx context.Context, packet transport.Packet) (transport.Kind, any) {
	if packet.Kind == KindAccept {
		return KindWelcome, d.respondAccept(ctx, packet)
	}
	if !d.belongs(ctx, packet.From) {
		return 0, nil
	}
	p := d.Peer(packet.From)
	if packet.Kind == KindLeave {
		p.leaves()
		return KindNoted, d.address()
	}
	p.recordContact()
	switch packet.Kind {
	case KindMail:
		mail, err := ReadPacket[MailPacket](packet.Body)
		if err != nil || mail.check() != nil {
			return 0, nil
		}
		acks := p.AcceptMail(ctx, mail)
		if acks == nil {
			return 0, nil
		}
		return KindAcks, AckPacket{acks, p.receives.newest()}
	case KindAnnounce:
		at, err := ReadPacket[AddressPacket](packet.Body)
		if err != nil {
			return 0, nil
		}
		d.updateAddress(ctx, p, at)
		return KindNoted, d.address()
	case KindFile:
		want, err := ReadPacket[FilePacket](packet.Body)
		if err != nil {
			return 0, nil
		}
		var piece PiecePacket
		if piece.Data, err = d.node.ServePiece(ctx, packet.From, want); err != nil {
			refused := parley.AsError(err)
			piece = PiecePacket{Code: string(refused.Code), Text: refused.Message}
		}
		return KindPiece, piece
	case KindUse:
		want, err := ReadPacket[UsePacket](packet.Body)
		if err != nil {
			return 0, nil
		}
		var used UsedPacket
		if used.Data, err = d.node.ServeUse(ctx, packet.From, want); err != nil {
			refused := parley.AsError(err)
			used = UsedPacket{Code: string(refused.Code), Text: refused.Message, Hint: refused.Hint}
		}
		return KindUsed, used
	}
	return 0, nil
}

// FetchPiece asks a node for a piece of a file. What it returns is not checked, but that it is of at most 128 KiB.
func (d *Directory) FetchPiece(ctx context.Context, node capabilities.NodeID, want FilePacket) ([]byte, error) {
	damaged := parley.Refuse(parley.FileDamaged, "node %s answers what is no piece of a file", node.Short())
	piece, err := callPeer[PiecePacket](ctx, d, node, KindFile, want, KindPiece, damaged)
	if err != nil {
		return nil, err
	}
	if len(piece.Data) > maxPiece {
		return nil, damaged
	}
	return piece.Data, piece.error()
}

// Use uses a resource of another node. What it returns is not checked.
func (d *Directory) Use(ctx context.Context, node capabilities.NodeID, want UsePacket) ([]byte, error) {
	used, err := callPeer[UsedPacket](ctx, d, node, KindUse, want, KindUsed, parley.Refuse(parley.NodeUnreachable, "node %s answers what is no use", node.Short()))
	if err != nil {
		return nil, err
	}
	return used.Data, used.error()
}

// callPeer sends a node a request and reads its response. It returns wrong for a response of another kind, and for one that cannot be read.
func callPeer[Resp any](ctx context.Context, d *Directory, node capabilities.NodeID, kind transport.Kind, want any, responds transport.Kind, wrong error) (resp Resp, err error) {
	body, err := WritePacket(want)
	if err != nil {
		return resp, err
	}
	link := d.transport()
	if link == nil || !d.Knows(node) {
		return resp, parley.Refuse(parley.NodeUnreachable, "node %s is not known any more", node.Short())
	}
	r, err := link.Call(ctx, node, kind, body)
	if err != nil {
		return resp, err
	}
	if resp, err = ReadPacket[Resp](r.Body); err != nil || r.Kind != responds {
		return resp, wrong
	}
	return resp, nil
}

// AcceptMail delivers the items of a packet. It returns an ack for each when the results are durable, or nil if ctx ends
// first.
func (p *Peer) AcceptMail(ctx context.Context, m MailPacket) []Ack {
	in := &intake{peer: p, epoch: m.Epoch, acks: make([]Ack, len(m.Items)), failed: map[capabilities.ID]bool{}}
	for _, i := range m.Introduced {
		p.d.introduced(ctx, p, i)
	}
	size := m.bytes()
	room := p.accepting.Add(size) <= maxAccepting
	defer p.accepting.Add(-size)
	if !room || p.d.node.Overloaded() || !p.receives.wait(ctx, m.Epoch, m.Number, p.d.node.Failures()) {
		for i := range in.acks {
			in.acks[i].Status = AckRetry
		}
		p.receives.fail(m.Epoch)
		return in.acks
	}
	in.open.Add(len(m.Items))
	for i, item := range m.Items {
		in.accept(ctx, i, item)
	}
	p.receives.admit(m.Epoch, m.Number)
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
	p.mailIn.Add(uint64(len(m.Items)))
	return in.acks
}

// bytes returns the size of the packet's items.
func (m *MailPacket) bytes() int64 {
	n := 0
	for _, p := range m.Items {
		n += len(p.Body)
	}
	return int64(n)
}

// intake is a packet of mail that is being delivered.
type intake struct {
	peer  *Peer
	epoch uint64
	acks  []Ack
	open  sync.WaitGroup

	mu     sync.Mutex
	failed map[capabilities.ID]bool // mailboxes that could not accept an item, and so accept none after it
}

// accept delivers one item. Those for one mailbox come to it in their order.
func (in *intake) accept(ctx context.Context, i int, item Item) {
	d := &Delivery{From: in.peer.id, Sender: capabilities.ID{ULID: item.From, Node: in.peer.id}, To: capabilities.ID{ULID: item.To, Node: in.peer.d.o.ID}, intake: in, index: i}
	var err error
	if d.Command, _, err = item.unpack(in.peer.id); err != nil {
		d.Done(err)
		return
	}
	in.peer.d.node.Accept(ctx, d)
}

// Delivery is an item of another node for a mailbox of this one.
type Delivery struct {
	From    capabilities.NodeID
	Sender  capabilities.ID // the mailbox of From
	To      capabilities.ID
	Command mailbox.Command

	intake *intake
	index  int // of the item in its packet
}

// Admitted reports whether the mailbox may decide on the item: everything before it was accepted, and nothing of that is
// lost. Failures is how often the journal has failed.
func (d *Delivery) Admitted(failures uint64) bool {
	in := d.intake
	return !in.hasFailed(d.To) && !in.peer.receives.hasFailed(in.epoch, failures) && !in.peer.receives.isPutOff(in.epoch, d.route())
}

func (d *Delivery) route() window.Route { return window.Route{From: d.Sender, To: d.To} }

// FollowsRefusal reports whether a copy of the same sender was refused in the same window. If its ack is lost the copy
// comes again, and may be accepted then. So nothing that follows it is accepted before the sender has the ack.
func (d *Delivery) FollowsRefusal() bool {
	return d.intake.peer.receives.hasRefused(d.intake.epoch, d.route())
}

// Decided notes how the mailbox has decided. After a transient error it accepts nothing more of the packet.
func (d *Delivery) Decided(err error) {
	_, isCopy := d.Command.(mailbox.RemoteDelivery)
	switch {
	case IsTransient(err):
		d.intake.fail(d.route(), err)
	case err != nil && isCopy:
		d.intake.peer.receives.refuse(d.intake.epoch, d.route())
	}
}

// Done notes the result of the item, once that is durable.
func (d *Delivery) Done(err error) {
	defer d.intake.open.Done()
	r := &d.intake.acks[d.index]
	switch {
	case err == nil:
		r.Status = AckAccepted
	case IsTransient(err):
		d.intake.fail(d.route(), err)
		r.Status = AckRetry
	default:
		r.Status = AckRefused
		r.Code, r.Text = Refusal(err)
	}
}

// fail accepts nothing more for a mailbox, nor of the window. So all of it is sent again in order. A quarantined
// mailbox holds up only itself. An item that costs too much for now holds up its route: it may be a guest's, and what else comes is its host's.
func (in *intake) fail(way window.Route, why error) {
	r := &in.peer.receives
	if parley.CodeOf(why) == parley.RateLimited && r.putOff(in.epoch, way) || errors.Is(why, ErrDelayed) && r.isPutOff(in.epoch, way) {
		return
	}
	in.mu.Lock()
	in.failed[way.To] = true
	in.mu.Unlock()
	if parley.CodeOf(why) != parley.CorruptLog {
		r.fail(in.epoch)
	}
}

func (in *intake) hasFailed(to capabilities.ID) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.failed[to]
}

// IsTransient reports whether a failure may pass.
func IsTransient(err error) bool {
	switch parley.CodeOf(err) {
	case parley.ReadOnly, parley.CorruptLog, parley.Internal, parley.RateLimited, parley.NotRunning:
		return true
	}
	return false
}
