package peers

import (
	"context"
	"slices"
	"time"

	"parley"
	"parley/actors/transport"
	"parley/capabilities"
	"parley/mailbox"
)

// MaxSecret bounds the secret of an invitation, in bytes.
const MaxSecret = 255

// MovesBurst is how many new addresses of a node are recorded before only one is within movesEvery.
const MovesBurst = 20

const movesEvery = time.Minute

// updateAddress records the addresses that a known node announces.
func (d *Directory) updateAddress(ctx context.Context, p *Peer, at AddressPacket) {
	if now := p.Address(); at.Stamp <= now.Stamp || slices.Equal(at.Hints, now.Hints) || !p.moves.Allow() {
		return // the node announces them again until they are recorded
	}
	if err := d.node.Record(ctx, mailbox.UpdatePeer{Node: p.id, Hints: at.Hints, Stamp: at.Stamp}); err != nil {
		d.o.Log.Warn("a node's new address is not recorded", "node", p.id.String(), "error", err)
	}
}

// introduced records another node's addresses, as a node gives them. A known node announces its own.
func (d *Directory) introduced(ctx context.Context, by *Peer, i Introduction) {
	if i.Node == d.o.ID || d.Knows(i.Node) {
		return
	}
	err := d.node.Record(ctx, mailbox.UpdatePeer{Node: i.Node, By: by.id, Hints: i.Hints, Stamp: i.Stamp})
	if err == nil {
		return
	}
	by.introducedWarning.Do(func() { // a node that introduces too many does so often
		d.o.Log.Warn("introductions are not recorded", "by", by.id.String(), "node", i.Node.String(), "error", err)
	})
}

// respondAccept welcomes a node that shows an invitation, or refuses it. It returns nil for a packet that gets no
// response.
func (d *Directory) respondAccept(ctx context.Context, packet transport.Packet) any {
	a, err := ReadPacket[AcceptPacket](packet.Body)
	if err != nil || len(a.Secret) > MaxSecret {
		return nil
	}
	if !d.strangers.Allow() {
		return nil
	}
	grant, err := d.node.Redeem(ctx, mailbox.RedeemInvitation{
		Invitation: capabilities.ID{ULID: a.Invitation, Node: d.o.ID}, Digest: Digest(a.Secret),
		Host: capabilities.ID{ULID: a.Host, Node: packet.From}, Grant: capabilities.ID{ULID: a.Invitation, Node: packet.From},
		Hints: a.Hints, Stamp: a.Stamp, Network: d.transport().NetworkOf(packet.From),
	}, packet.From)
	if err != nil {
		code, text := Refusal(err)
		return WelcomePacket{Code: code, Text: text}
	}
	d.Peer(packet.From).recordContact()
	at := d.address()
	return WelcomePacket{Host: d.node.Host().ULID, Grant: grant.ULID, Hints: at.Hints, Stamp: at.Stamp}
}

// Accept shows an invitation to the node that made it, and adds that node's host under a name. It returns the host.
func (d *Directory) Accept(ctx context.Context, name string, l capabilities.Locator) (capabilities.ID, error) {
	other := l.ID.Node
	if err := d.checkAccept(ctx, name, l); err != nil {
		return capabilities.ID{}, err
	}
	over := d.await(other)
	if over == nil {
		return capabilities.ID{}, parley.Refuse(parley.RateLimited, "an invitation of that node is being accepted already")
	}
	defer over()
	if len(l.Hints) > 0 {
		if err := d.transport().Dial(ctx, other, l.Hints, Token(l.ID.ULID, l.Secret)); err != nil && !d.o.Hub && !d.Knows(other) {
			return capabilities.ID{}, notAccepted(err)
		}
	}
	w, err := d.show(ctx, l)
	if err != nil {
		return capabilities.ID{}, err
	}
	host := capabilities.ID{ULID: w.Host, Node: other}
	return host, d.node.Record(ctx, mailbox.AddPeer{
		Host: host, Name: name, Hints: w.Hints, Stamp: w.Stamp, Network: d.transport().NetworkOf(other),
		Theirs: capabilities.ID{ULID: w.Grant, Node: other}, Ours: capabilities.ID{ULID: l.ID.ULID, Node: d.o.ID},
	})
}

// show shows an invitation to its maker, and returns the maker's welcome.
func (d *Directory) show(ctx context.Context, l capabilities.Locator) (w WelcomePacket, err error) {
	at := d.address()
	body, err := WritePacket(AcceptPacket{Invitation: l.ID.ULID, Secret: l.Secret, Host: d.node.Host().ULID, Hints: at.Hints, Stamp: at.Stamp})
	if err != nil {
		return w, err
	}
	response, err := d.transport().Call(ctx, l.ID.Node, KindAccept, body)
	if err != nil {
		return w, notAccepted(err)
	}
	w, err = ReadPacket[WelcomePacket](response.Body)
	switch {
	case err != nil || response.Kind != KindWelcome:
		return w, parley.Refuse(parley.NodeUnreachable, "the other node's answer is none")
	case w.Code != "":
		return w, RemoteError(w.Code, w.Text)
	}
	return w, nil
}

// notAccepted returns the error of an invitation that could not be shown. A maker's listener refuses a node whose
// invitation is not open. That is another error than a maker that cannot be reached.
func notAccepted(err error) error {
	if parley.CodeOf(err) == parley.NotPermitted {
		return parley.Refuse(parley.InvitationUsed, "the other node takes this invitation no more: it was used, was revoked, or has ended").
			WithHint("ask for another")
	}
	if e := parley.AsError(err); e.Code == parley.NodeUnreachable {
		return e.WithHint("the invitation stays good: try again, or ask for another if the node has moved")
	}
	return err
}

func (d *Directory) checkAccept(ctx context.Context, name string, l capabilities.Locator) error {
	switch {
	case l.Kind != capabilities.KindInvitation || l.Secret == "" || len(l.Secret) > MaxSecret:
		return parley.Refuse(parley.InvalidArgument, "this locator is not an invitation")
	case l.ID.Node == d.o.ID:
		return parley.Refuse(parley.InvalidArgument, "this invitation is this node's own")
	}
	return d.node.CheckAccept(ctx, name, capabilities.ID{ULID: l.ID.ULID, Node: d.o.ID})
}
