package actors

import (
	"context"

	"parley"
	"parley/capabilities"
)

// NewInvitation says whom to invite. The host of the node that accepts it will be held under Name.
type NewInvitation struct {
	Name  string            `json:"name"`
	Until capabilities.Time `json:"until,omitzero"` // default: a day from now
}

// Invitation is good for one node, once, until its time. Locator is the secret that makes it so: it is shown
// when the invitation is made, and never again.
type Invitation struct {
	ID      capabilities.ID   `json:"id"`
	Name    string            `json:"name"`
	Until   capabilities.Time `json:"until"`
	Locator string            `json:"locator,omitempty"`
}

// Accepted says whom the host holds now.
type Accepted struct {
	Name string              `json:"name"`
	Node capabilities.NodeID `json:"node"`
	Host capabilities.ID     `json:"host"`
}

// Peer is another node that this one knows.
type Peer struct {
	Node      capabilities.NodeID `json:"node"`
	Name      string              `json:"name,omitempty"` // the host's name for the other's host
	Host      capabilities.ID     `json:"host,omitzero"`  // zero if it is known only by introduction
	Hints     []string            `json:"hints,omitempty"`
	Reachable bool                `json:"reachable"`
	Heard     capabilities.Time   `json:"lastHeard,omitzero"` // zero if not since this node started
	Waiting   int                 `json:"waiting"`            // parcels for it that have not arrived
	Traffic   Traffic             `json:"traffic"`
}

// Traffic counts what went between this node and another, or all others, since this one started.
type Traffic struct {
	LettersIn  uint64 `json:"lettersIn"`
	LettersOut uint64 `json:"lettersOut"`
	BytesIn    uint64 `json:"bytesIn"`
	BytesOut   uint64 `json:"bytesOut"`
	MailIn     uint64 `json:"mailIn"` // parcels
	MailOut    uint64 `json:"mailOut"`
	Refused    uint64 `json:"refused"` // letters that were forged, altered, malformed, oversized or foreign
}

func errNoPeers() error {
	return parley.Refuse(parley.NodeUnreachable, "this node does not reach others").
		WithHint("parley serve --peer-listen ADDR, or --nats URL, lets it")
}

// Invite makes an invitation. Only the node's host may. NAME_TAKEN says that the name is not free.
func (a *Agent) Invite(ctx context.Context, n NewInvitation) (Invitation, error) {
	return Invitation{}, errNoPeers()
}

// Uninvite revokes the invitation under a name. UNKNOWN_NAME says that none is open.
func (a *Agent) Uninvite(ctx context.Context, name string) error { return errNoPeers() }

// Invitations lists those that are open, oldest first, without their secrets.
func (a *Agent) Invitations(ctx context.Context) ([]Invitation, error) {
	return []Invitation{}, nil
}

// Accept takes an invitation up. Afterwards each node's host holds the other's, this one under name.
// INVITATION_USED says that another was faster, or that it has ended; NODE_UNREACHABLE, that it should be
// tried again.
func (a *Agent) Accept(ctx context.Context, name, locator string) (Accepted, error) {
	return Accepted{}, errNoPeers()
}

// Nodes lists the nodes that this one knows, in the order in which it came to.
func (n *Node) Nodes(ctx context.Context) ([]Peer, error) { return []Peer{}, nil }

// Traffic counts what went between this node and all others.
func (n *Node) Traffic() Traffic { return Traffic{} }
