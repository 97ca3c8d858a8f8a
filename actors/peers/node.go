package peers

import (
	"context"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/transport"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Node is what the package needs of the node that it carries mail for. Its methods are called by many goroutines.
type Node interface {
	// Host returns the mailbox of the node's host.
	Host() capabilities.ID

	// Now returns the node's time, which never goes back.
	Now() capabilities.Time

	// Failures returns how often the journal has failed. What was appended before a failure may be lost.
	Failures() uint64

	// Overloaded reports whether too much waits to accept mail of other nodes.
	Overloaded() bool

	// Collect asks a mailbox for items. It does not block. Reply is called once, when the items are durable, and does not
	// block either. A mailbox that has no more items than it gives calls Peer.Set first.
	Collect(mailbox capabilities.ID, r Request, reply func(Collected))

	// Accept has a mailbox decide on an item. Items that are given one after another come to a mailbox in that order. The
	// mailbox asks d.Admitted first, calls d.Decided when it has decided, and d.Done once, when the result is durable.
	Accept(ctx context.Context, d *Delivery)

	// Acknowledge records another node's reply to an item of a mailbox. Refused is the reason of a refusal; "" means
	// that the item was accepted.
	Acknowledge(mailbox capabilities.ID, item mailbox.OutboxItem, refused string)

	// Record has the host's mailbox decide on a command, and returns when that is durable.
	Record(ctx context.Context, c mailbox.Command) error

	// Redeem has the host's mailbox accept a node that shows an invitation. It returns the grant by which that node
	// reaches the host.
	Redeem(ctx context.Context, c mailbox.RedeemInvitation, node capabilities.NodeID) (grant capabilities.ID, err error)

	// CheckAccept refuses to take up an invitation that the host has taken up, or has no free name for.
	CheckAccept(ctx context.Context, name string, invitation capabilities.ID) error

	// ServePiece returns a piece of a file that another node asks for, if it may have it.
	ServePiece(ctx context.Context, node capabilities.NodeID, p FilePacket) ([]byte, error)

	// ServeUse uses a resource for an agent of another node, and returns how the use is, as JSON.
	ServeUse(ctx context.Context, node capabilities.NodeID, p UsePacket) ([]byte, error)

	// Spawn starts the actor of a peer under supervision. The function that it returns sends the actor a message.
	Spawn(node capabilities.NodeID, producer actor.Producer) (tell func(message any))
}

// Link is the way to other nodes. Package transport has its contract.
type Link interface {
	Call(ctx context.Context, to capabilities.NodeID, kind transport.Kind, body []byte) (transport.Packet, error)
	Dial(ctx context.Context, node capabilities.NodeID, hints []string, token string) error
	DialWithin(ctx context.Context, node capabilities.NodeID, hints []string, token string, most events.Network) error
	NetworkOf(node capabilities.NodeID) events.Network
	Hangup(node capabilities.NodeID)
	Disconnect(node capabilities.NodeID)
	Hints() []string
	Address() string
}

// Options configure a Directory.
type Options struct {
	Node   Node
	ID     capabilities.NodeID // this node
	Public string              // address that other nodes are told in place of the listener's; "" is the listener's
	Hub    bool                // other nodes can be met without their addresses
	Log    *slog.Logger
}

// Request is a request for a mailbox's items for a node.
type Request struct {
	Node  capabilities.NodeID
	Skip  func(taken map[uint64]bool) map[uint64]bool // adds the items that are on their way to those not to be sent
	Bytes int                                         // at which to stop
}

// Collected is what a mailbox gave.
type Collected struct {
	Items []Outgoing
	More  bool // than Items
	Err   error
}

// Outgoing is an item to be sent.
type Outgoing struct {
	Item       mailbox.OutboxItem
	Written    Item
	Introduces []capabilities.NodeID // nodes that the receiver has to know
}
