package transport

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Dial connects to a node's own listener at one of the hints, tried in order, if it is not connected already.
// The connection stays, and is made again when it is lost, until Hangup or Close, or until the node admits this
// one no more. NOT_PERMITTED says that the node does not, NODE_UNREACHABLE that it is not there. The hints may lead
// anywhere: they are of one who is trusted.
func (t *Transport) Dial(ctx context.Context, node capabilities.NodeID, hints []string, token string) error {
	return t.DialWithin(ctx, node, hints, token, events.AnyNetwork)
}

// DialWithin is Dial by hints that strangers gave: no address is tried that is nearer than a network.
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

// turnToDial waits while another dials the node. Without an error and without a release it is connected.
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

// headStart is how long an address is tried before the next one is, beside it.
const headStart = 250 * time.Millisecond

// target is where a node may be, what it is shown, and the nearest network in which it is tried.
type target struct {
	addresses []string
	token     string
	most      events.Network
}

// attempt is what came of trying an address.
type attempt struct {
	link *link
	err  error
}

// reach tries the addresses, in their order but not for long alone, until the node itself has spoken.
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
				return nil, parley.Refuse(parley.NotPermitted, "node %s does not admit this one", node)
			}
			failures = append(failures, a.err)
			next.Reset(0)
		case <-ctx.Done():
			return nil, unreachable(node, ctx.Err())
		}
	}
	return nil, unreachable(node, errors.Join(failures...))
}

// attempt tries one address. Any of the others will do when the connection is lost later.
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

// keep puts a new link in the place of the one before.
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

// forget drops a link whose connection has ended for good.
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

// Hangup ends the connection that Dial made to a node, if there is one.
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

// Connected reports whether there is a connection to a node now, whoever made it. A node that is not connected
// may still be met at the hub.
func (t *Transport) Connected(node capabilities.NodeID) bool {
	t.mu.Lock()
	link, closed := t.dialed[node], t.closed
	t.mu.Unlock()
	return link.connected() || !closed && t.listener != nil && len(t.listener.of(node)) > 0
}

// Disconnect ends the connections of a node to this one's listener. It may connect again if Admit lets it.
func (t *Transport) Disconnect(node capabilities.NodeID) {
	if t.listener != nil && node != t.me {
		t.listener.makeRoom(node, 0)
	}
}
