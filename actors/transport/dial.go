package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Dial connects to a node's listener at one of the hints, if it is not connected already. The connection is made again
// when it is lost, until Hangup or Close, or until the node refuses this one. NOT_PERMITTED says that the node refuses,
// NODE_UNREACHABLE that it cannot be reached. The hints may lead anywhere, so they must come from a trusted source.
func (t *Transport) Dial(ctx context.Context, node capabilities.NodeID, hints []string, token string) error {
	return t.DialWithin(ctx, node, hints, token, events.AnyNetwork)
}

// DialWithin is Dial for hints from strangers. It tries no address that is nearer than a network.
func (t *Transport) DialWithin(ctx context.Context, node capabilities.NodeID, hints []string, token string, most events.Network) error {
	if node == t.me {
		return parley.Refuse(parley.InvalidArgument, "a node does not dial itself")
	}
	if len(token) > maxToken {
		return parley.Refuse(parley.InvalidArgument, "a token of %d bytes: at most %d", len(token), maxToken)
	}
	list, err := servers(hints)
	if err != nil {
		return err
	}
	done, err := t.begin()
	if err != nil {
		return err
	}
	defer done()
	release, err := t.turnToDial(ctx, node)
	if err != nil || release == nil {
		return err
	}
	defer release()
	link, err := t.reach(ctx, node, target{list, token, most})
	if err != nil {
		return err
	}
	return t.keep(node, link)
}

// turnToDial blocks while another goroutine dials the node. If it returns neither an error nor a release, the node is
// connected.
func (t *Transport) turnToDial(ctx context.Context, node capabilities.NodeID) (release func(), err error) {
	for {
		t.mu.Lock()
		if t.dialed[node].connected() {
			t.mu.Unlock()
			return nil, nil
		}
		other, taken := t.dialing[node]
		if !taken {
			mine := make(chan struct{})
			t.dialing[node] = mine
			t.mu.Unlock()
			return func() { t.dialingEnds(node, mine) }, nil
		}
		t.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, unreachable(node, ctx.Err())
		}
	}
}

func (t *Transport) dialingEnds(node capabilities.NodeID, mine chan struct{}) {
	t.mu.Lock()
	delete(t.dialing, node)
	t.mu.Unlock()
	close(mine)
}

// headStart is the time for which an address is tried alone, before the next one is tried too.
const headStart = 250 * time.Millisecond

// target has the addresses of a node and the token that it is shown. It also has the nearest network in which it is
// tried.
type target struct {
	addresses []string
	token     string
	most      events.Network
}

// attempt is the result of trying an address.
type attempt struct {
	link *link
	err  error
}

// reach tries the addresses in their order, each with a head start, until one of them is the node.
func (t *Transport) reach(ctx context.Context, node capabilities.NodeID, at target) (*link, error) {
	trying, stop := context.WithCancel(ctx)
	tried := make(chan attempt, len(at.addresses))
	open := 0
	defer func() {
		stop()
		for ; open > 0; open-- {
			if late := <-tried; late.link != nil {
				late.link.close()
			}
		}
	}()
	next := time.NewTimer(0)
	defer next.Stop()
	var failures []error
	for left := at.addresses; len(left) > 0 || open > 0; {
		select {
		case <-next.C:
			if len(left) == 0 {
				continue
			}
			address := left[0]
			left = left[1:]
			open++
			go func() { tried <- t.attempt(trying, node, address, at) }()
			next.Reset(headStart)
		case a := <-tried:
			open--
			if a.err == nil {
				return a.link, nil
			}
			if errors.Is(a.err, nats.ErrAuthorization) {
				return nil, parley.Refuse(parley.NotPermitted, "node %s does not admit this one", node.Short())
			}
			failures = append(failures, a.err)
			next.Reset(0)
		case <-ctx.Done():
			return nil, unreachable(node, ctx.Err())
		}
	}
	return nil, unreachable(node, errors.Join(failures...))
}

// attempt tries one address. A lost connection may later be made again to any of the others.
func (t *Transport) attempt(ctx context.Context, node capabilities.NodeID, address string, at target) attempt {
	link, err := t.reachAt(ctx, node, address, at)
	if err != nil {
		return attempt{err: err}
	}
	if err := link.conn.SetServerPool(at.addresses); err != nil {
		link.close()
		return attempt{err: err}
	}
	return attempt{link: link}
}

func (t *Transport) reachAt(ctx context.Context, node capabilities.NodeID, address string, at target) (*link, error) {
	d := &dialer{first: ctx, later: t.ctx, most: at.most}
	defer d.settle()
	return t.connect(ctx, node.String(), address,
		nats.Secure(dialing(node)),
		nats.TLSHandshakeFirst(),
		nats.Token(at.token),
		t.proof(node),
		nats.DontRandomize(),
		nats.IgnoreDiscoveredServers(),
		nats.SkipHostLookup(), // the dialer does it, and stops when it should
		nats.SetCustomDialer(d))
}

// keep replaces the link to a node.
func (t *Transport) keep(node capabilities.NodeID, link *link) error {
	t.mu.Lock()
	old := t.dialed[node]
	if t.closed {
		old = link
	} else {
		t.dialed[node] = link
	}
	closed := t.closed
	t.mu.Unlock()
	if old != nil {
		old.close()
	}
	if closed {
		return errClosed()
	}
	if link.conn.IsClosed() { // before it was kept, and so it was not forgotten
		t.forget(link)
		return unreachable(node, nats.ErrConnectionClosed)
	}
	return nil
}

// forget removes a link whose connection has ended for good.
func (t *Transport) forget(link *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for node, kept := range t.dialed {
		if kept == link {
			delete(t.dialed, node)
			delete(t.routeHints, node)
		}
	}
}

// Hangup closes the connection that Dial made to a node, if there is one.
func (t *Transport) Hangup(node capabilities.NodeID) {
	t.mu.Lock()
	link := t.dialed[node]
	delete(t.dialed, node)
	delete(t.routeHints, node)
	t.mu.Unlock()
	if link != nil {
		link.close()
	}
}

// Connected reports whether there is a connection to a node, from either side. A node that is not connected may be
// reached at the hub.
func (t *Transport) Connected(node capabilities.NodeID) bool {
	t.mu.Lock()
	link, closed := t.dialed[node], t.closed
	t.mu.Unlock()
	return link.connected() || !closed && t.listener != nil && len(t.listener.of(node)) > 0
}

// Disconnect closes a node's connections to this one's listener. The node may connect again if Admit allows it.
func (t *Transport) Disconnect(node capabilities.NodeID) {
	if t.listener != nil && node != t.me {
		t.listener.makeRoom(node, 0)
	}
}

// dialer dials for a connection: within one context at first, and within another after settle.
type dialer struct {
	later context.Context
	most  events.Network // the nearest in which it connects

	mu    sync.Mutex
	first context.Context // nil once the connection is made, or is not
	stops []func() bool
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.mu.Lock()
	first, ctx := d.first, d.later
	d.mu.Unlock()
	if first != nil {
		ctx = first
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := (&net.Dialer{ControlContext: within(d.most)}).DialContext(ctx, network, address)
	if err != nil || first == nil {
		return conn, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stops = append(d.stops, context.AfterFunc(first, func() { _ = conn.Close() }))
	return conn, nil
}

// settle lets the connection outlive its first context.
func (d *dialer) settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.first = nil
	for _, stop := range d.stops {
		stop()
	}
}
