package transport

import (
	"context"
	"net"
	"sync"

	"parley/events"
)

// dialer dials for a connection: at first as long as one context lasts, and again as long as another does.
type dialer struct {
	later context.Context
	most  events.Network // the nearest in which it connects

	mu    sync.Mutex
	first context.Context // nil once the connection is made, or is not
	stops []func() bool
}

// Dial is nats.CustomDialer.
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

// settle lets the connection outlive the context of its beginning.
func (d *dialer) settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.first = nil
	for _, stop := range d.stops {
		stop()
	}
}
