package peers

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"parley"
	"parley/actors/transport"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// fakeNode is a Node whose mailboxes have the items that a test gives them.
type fakeNode struct {
	system *actor.ActorSystem

	mu       sync.Mutex
	items    map[capabilities.ID][]Outgoing
	acked    []uint64
	accepted []mailbox.Command
}

func (n *fakeNode) Host() capabilities.ID                                      { return capabilities.ID{} }
func (n *fakeNode) Now() capabilities.Time                                     { return 1 }
func (n *fakeNode) Failures() uint64                                           { return 0 }
func (n *fakeNode) Overloaded() bool                                           { return false }
func (n *fakeNode) Record(context.Context, mailbox.Command) error              { return nil }
func (n *fakeNode) CheckAccept(context.Context, string, capabilities.ID) error { return nil }

func (n *fakeNode) Redeem(context.Context, mailbox.RedeemInvitation, capabilities.NodeID) (capabilities.ID, error) {
	return capabilities.ID{}, nil
}

func (n *fakeNode) Accept(_ context.Context, d *Delivery) {
	n.mu.Lock()
	n.accepted = append(n.accepted, d.Command)
	n.mu.Unlock()
	d.Decided(nil)
	d.Done(nil)
}

func (n *fakeNode) Collect(id capabilities.ID, r Request, reply func(Collected)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var c Collected
	taken := r.Skip(nil)
	for _, o := range n.items[id] {
		if !taken[o.Item.Seq] {
			c.Items = append(c.Items, o)
		}
	}
	reply(c)
}

func (n *fakeNode) Acknowledge(id capabilities.ID, item mailbox.OutboxItem, _ string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acked = append(n.acked, item.Seq)
	for i, o := range n.items[id] {
		if o.Item.Seq == item.Seq {
			n.items[id] = append(n.items[id][:i:i], n.items[id][i+1:]...)
			return
		}
	}
}

func (n *fakeNode) Spawn(_ capabilities.NodeID, producer actor.Producer) func(any) {
	pid := n.system.Root.Spawn(actor.PropsFromProducer(producer))
	return func(message any) { n.system.Root.Send(pid, message) }
}

// fakeLink is a Link to nodes whose responses a test gives.
type fakeLink struct {
	call func(kind transport.Kind, body []byte) (transport.Kind, any, error)
}

func (l *fakeLink) Call(_ context.Context, to capabilities.NodeID, kind transport.Kind, body []byte) (transport.Packet, error) {
	kind, response, err := l.call(kind, body)
	if err != nil {
		return transport.Packet{}, err
	}
	written, err := WritePacket(response)
	return transport.Packet{From: to, Kind: kind, Body: written}, err
}

func (l *fakeLink) Dial(context.Context, capabilities.NodeID, []string, string) error { return nil }
func (l *fakeLink) DialWithin(context.Context, capabilities.NodeID, []string, string, events.Network) error {
	return nil
}
func (l *fakeLink) NetworkOf(capabilities.NodeID) events.Network { return events.AnyNetwork }
func (l *fakeLink) Hangup(capabilities.NodeID)                   {}
func (l *fakeLink) Disconnect(capabilities.NodeID)               {}
func (l *fakeLink) Hints() []string                              { return nil }
func (l *fakeLink) Address() string                              { return "" }

// open returns a directory on a node and a link, and the node.
func open(tb testing.TB, l *fakeLink) (*Directory, *fakeNode) {
	tb.Helper()
	n := &fakeNode{
		system: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })),
		items:  map[capabilities.ID][]Outgoing{},
	}
	d := New(Options{Node: n, Log: slog.New(slog.DiscardHandler)})
	life, end := context.WithCancel(context.Background())
	d.Start(life, l)
	tb.Cleanup(func() {
		d.Close()
		end()
		d.Stop()
		n.system.Shutdown()
	})
	return d, n
}

func (n *fakeNode) ServePiece(context.Context, capabilities.NodeID, FilePacket) ([]byte, error) {
	return nil, parley.Refuse(parley.NoSuchFile, "there are no files")
}

func (n *fakeNode) ServeUse(context.Context, capabilities.NodeID, UsePacket) ([]byte, error) {
	return nil, parley.Refuse(parley.NotPermitted, "there is no such resource")
}
