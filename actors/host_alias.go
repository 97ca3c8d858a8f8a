package actors

import (
	"context"
	"sync"
	"sync/atomic"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// hostAliasCache caches the agents that the host can act as, by the host's names. A change of those names empties it.
// Every call from outside needs one, and would otherwise queue at the host's mailbox first.
type hostAliasCache struct {
	epoch atomic.Uint64 // of the host's names
	mu    sync.Mutex
	known map[string]capabilities.ID
	of    uint64 // the epoch of known
}

func (c *hostAliasCache) get(name string) (id capabilities.ID, epoch uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	epoch = c.epoch.Load()
	if c.of != epoch || c.known == nil {
		c.known, c.of = map[string]capabilities.ID{}, epoch
	}
	id, ok = c.known[name]
	return id, epoch, ok
}

// put notes what was found out in an epoch, unless the names have changed since.
func (c *hostAliasCache) put(name string, id capabilities.ID, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == epoch && c.epoch.Load() == epoch {
		c.known[name] = id
	}
}

// note is told what happens in the host's mailbox, before anybody else can be.
func (c *hostAliasCache) note(evs []events.Event) {
	for _, e := range evs {
		switch e.(type) {
		case *events.NameBound, *events.NameUnbound, *events.CapabilityRevoked:
			c.epoch.Add(1)
			return
		}
	}
}

// ActAs gives the agent that the host holds, in full, under a name; "" is the host itself. It refuses with
// UNKNOWN_NAME, and with NOT_PERMITTED an agent of another node or one that is held in part.
func (n *Node) ActAs(ctx context.Context, name string) (*Agent, error) {
	if sp := capabilities.Special(name); name == "" || sp == capabilities.NameSelf || sp == capabilities.NameHost {
		return n.Host(), nil
	}
	id, epoch, ok := n.hostAliases.get(name)
	if ok {
		return &Agent{node: n, id: id}, nil
	}
	v, err := n.Host().Show(ctx, name, false)
	if err != nil {
		return nil, err
	}
	ref, ok := v.AsRef()
	switch {
	case !ok || ref.Kind != capabilities.KindAgent:
		return nil, parley.Refuse(parley.UnknownName, "%.200q is not an agent", name)
	case ref.Target.Node != n.id || !ref.Facet.IsFull():
		return nil, parley.Refuse(parley.NotPermitted, "the host cannot act as %.200q", name)
	}
	n.hostAliases.put(name, ref.Target, epoch)
	return &Agent{node: n, id: ref.Target}, nil
}
