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
func (w *Wire) Dial(ctx context.Context, node capabilities.NodeID, hints []string, token string) error {
	return w.DialWithin(ctx, node, hints, token, events.AnyNetwork)
}

// DialWithin is Dial by hints that strangers gave: no address is tried that is nearer than a network.
func (w *Wire) DialWithin(ctx context.Context, node capabilities.NodeID, hints []string, token string, most events.Network) error {
	if node == w.me {
		return parley.Refuse(parley.InvalidArgument, "a node does not dial itself")
	}
	if len(token) > maxToken {
		return parley.Refuse(parley.InvalidArgument, "a token of %d bytes: at most %d", len(token), maxToken)
	}
	list, err := servers(hints)
	if err != nil {
		return err
	}
	done, err := w.begin()
	if err != nil {
		return err
	}
	defer done()
	release, err := w.turnToDial(ctx, node)
	if err != nil || release == nil {
		return err
	}
	defer release()
	way, err := w.reach(ctx, node, target{list, token, most})
	if err != nil {
		return err
	}
	return w.keep(node, way)
}

// turnToDial waits while another dials the node. Without an error and without a release it is connected.
func (w *Wire) turnToDial(ctx context.Context, node capabilities.NodeID) (release func(), err error) {
	for {
		w.mu.Lock()
		if w.dialed[node].connected() {
			w.mu.Unlock()
			return nil, nil
		}
		other, taken := w.dialing[node]
		if !taken {
			mine := make(chan struct{})
			w.dialing[node] = mine
			w.mu.Unlock()
			return func() { w.dialingEnds(node, mine) }, nil
		}
		w.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, unreachable(node, ctx.Err())
		}
	}
}

func (w *Wire) dialingEnds(node capabilities.NodeID, mine chan struct{}) {
	w.mu.Lock()
	delete(w.dialing, node)
	w.mu.Unlock()
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
	way *way
	err error
}

// reach tries the addresses, in their order but not for long alone, until the node itself has spoken.
func (w *Wire) reach(ctx context.Context, node capabilities.NodeID, at target) (*way, error) {
	trying, stop := context.WithCancel(ctx)
	tried := make(chan attempt, len(at.addresses))
	open := 0
	defer func() {
		stop()
		for ; open > 0; open-- {
			if late := <-tried; late.way != nil {
				late.way.close()
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
			go func() { tried <- w.attempt(trying, node, address, at) }()
			next.Reset(headStart)
		case a := <-tried:
			open--
			if a.err == nil {
				return a.way, nil
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
func (w *Wire) attempt(ctx context.Context, node capabilities.NodeID, address string, at target) attempt {
	way, err := w.reachAt(ctx, node, address, at)
	if err != nil {
		return attempt{err: err}
	}
	if err := way.conn.SetServerPool(at.addresses); err != nil {
		way.close()
		return attempt{err: err}
	}
	return attempt{way: way}
}

func (w *Wire) reachAt(ctx context.Context, node capabilities.NodeID, address string, at target) (*way, error) {
	d := &dialer{first: ctx, later: w.ctx, most: at.most}
	defer d.settle()
	return w.connect(ctx, node.String(), address,
		nats.Secure(dialing(node)),
		nats.TLSHandshakeFirst(),
		nats.Token(at.token),
		w.proof(node),
		nats.DontRandomize(),
		nats.IgnoreDiscoveredServers(),
		nats.SkipHostLookup(), // the dialer does it, and stops when it should
		nats.SetCustomDialer(d))
}

// keep puts a new way in the place of the one before.
func (w *Wire) keep(node capabilities.NodeID, way *way) error {
	w.mu.Lock()
	old := w.dialed[node]
	if w.closed {
		old = way
	} else {
		w.dialed[node] = way
	}
	closed := w.closed
	w.mu.Unlock()
	if old != nil {
		old.close()
	}
	if closed {
		return errClosed()
	}
	if way.conn.IsClosed() { // before it was kept, and so it was not forgotten
		w.forget(way)
		return unreachable(node, nats.ErrConnectionClosed)
	}
	return nil
}

// forget drops a way whose connection has ended for good.
func (w *Wire) forget(way *way) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for node, kept := range w.dialed {
		if kept == way {
			delete(w.dialed, node)
			delete(w.habits, node)
		}
	}
}

// Hangup ends the connection that Dial made to a node, if there is one.
func (w *Wire) Hangup(node capabilities.NodeID) {
	w.mu.Lock()
	way := w.dialed[node]
	delete(w.dialed, node)
	delete(w.habits, node)
	w.mu.Unlock()
	if way != nil {
		way.close()
	}
}

// Connected reports whether there is a connection to a node now, whoever made it. A node that is not connected
// may still be met at the hub.
func (w *Wire) Connected(node capabilities.NodeID) bool {
	w.mu.Lock()
	way, closed := w.dialed[node], w.closed
	w.mu.Unlock()
	return way.connected() || !closed && w.listener != nil && len(w.listener.of(node)) > 0
}

// Disconnect ends the connections of a node to this one's listener. It may connect again if Admit lets it.
func (w *Wire) Disconnect(node capabilities.NodeID) {
	if w.listener != nil && node != w.me {
		w.listener.makeRoom(node, 0)
	}
}
