package wire

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"parley"
	"parley/capabilities"
)

// Dial connects to a node's own listener at one of the hints, tried in order, if it is not connected already.
// The connection stays, and is made again when it is lost, until Hangup or Close, or until the node admits this
// one no more. NOT_PERMITTED says that the node does not, NODE_UNREACHABLE that it is not there.
func (w *Wire) Dial(ctx context.Context, node capabilities.NodeID, hints []string, token string) error {
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
	way, err := w.reach(ctx, node, list, token)
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

// reach tries one address after the other, until the node itself has spoken.
func (w *Wire) reach(ctx context.Context, node capabilities.NodeID, addresses []string, token string) (*way, error) {
	var failures []error
	for _, address := range addresses {
		way, err := w.reachAt(ctx, node, address, token)
		if err == nil {
			err = way.conn.SetServerPool(addresses) // any of them will do when the connection is lost
			if err == nil {
				return way, nil
			}
			way.close()
		}
		if ctx.Err() != nil {
			return nil, unreachable(node, ctx.Err())
		}
		if errors.Is(err, nats.ErrAuthorization) {
			return nil, parley.Refuse(parley.NotPermitted, "node %s does not admit this one", node)
		}
		failures = append(failures, err)
	}
	return nil, unreachable(node, errors.Join(failures...))
}

func (w *Wire) reachAt(ctx context.Context, node capabilities.NodeID, address, token string) (*way, error) {
	d := &dialer{first: ctx, later: w.ctx}
	defer d.settle()
	return w.connect(ctx, node.String(), address,
		nats.Secure(dialing(node)),
		nats.TLSHandshakeFirst(),
		nats.Token(token),
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
