package actors

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
	"parley/persistence"
)

// directory lists the agents of the node by their notes, which are in the log. So listing agents reads no mailboxes.
type directory struct {
	node *Node

	mu         sync.Mutex
	running    map[capabilities.ID]bool             // agents whose programs run, as their mailboxes have said since the start
	unreadable map[capabilities.ID]view.AgentStatus // agents whose logs could not be read
	watches    map[*watch]bool
}

// watch collects the agents that have changed.
type watch struct {
	changed map[capabilities.ID]bool
	signal  func() // says that there are some; must not block
}

func newDirectory(n *Node) *directory {
	return &directory{
		node: n, running: map[capabilities.ID]bool{}, unreadable: map[capabilities.ID]view.AgentStatus{}, watches: map[*watch]bool{},
	}
}

// put tells the watches of a new status of an agent. The caller makes sure that the status is durable.
func (d *directory) put(s view.AgentStatus) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if isAtWork(s) {
		d.running[s.ID] = true
	} else {
		delete(d.running, s.ID)
	}
	delete(d.unreadable, s.ID)
	for w := range d.watches {
		w.tell(s.ID)
	}
}

// isAtWork reports whether an agent's program runs or is prepared, as far as the log says. The node may have ended since.
func isAtWork(s view.AgentStatus) bool {
	return s.Runtime != "" && (s.Status == mailbox.Running || s.Status == mailbox.Initializing)
}

func (w *watch) tell(id capabilities.ID) {
	w.changed[id] = true
	w.signal()
}

// read returns the status of an agent by its log. An agent whose log cannot be read has the status error.
func (d *directory) read(ctx context.Context, id capabilities.ID) (view.AgentStatus, error) {
	d.mu.Lock()
	known, bad := d.unreadable[id]
	d.mu.Unlock()
	if bad {
		return known, nil
	}
	s, _, err := d.node.replay(ctx, id)
	if ctx.Err() != nil {
		return view.AgentStatus{}, errEnded(ctx, d.node)
	}
	if err != nil {
		status := unreadable(id, err)
		d.mu.Lock()
		d.unreadable[id] = status
		d.mu.Unlock()
		return status, nil
	}
	return d.confirm(ctx, statusOf(s))
}

func unreadable(id capabilities.ID, err error) view.AgentStatus {
	return view.AgentStatus{
		ID: id, Status: mailbox.Failed, Error: parley.AsError(err).Message, Labels: map[string]string{},
		Pending: []view.PendingPermission{}, Node: id.Node, Version: 1,
	}
}

// status returns the status of an agent, by its index entry. A mailbox without a readable note is read itself.
func (d *directory) status(ctx context.Context, id capabilities.ID, m persistence.Mailbox) (view.AgentStatus, error) {
	s, err := statusByNote(id, d.node.host, m)
	if err != nil {
		return d.read(ctx, id)
	}
	return d.confirm(ctx, s)
}

// confirm returns a status that is still right. That a program runs is only what the log says until the mailbox has
// looked. The node may have ended meanwhile.
func (d *directory) confirm(ctx context.Context, s view.AgentStatus) (view.AgentStatus, error) {
	if !isAtWork(s) {
		return s, nil
	}
	d.mu.Lock()
	running := d.running[s.ID]
	d.mu.Unlock()
	if running {
		return s, nil
	}
	return (&Agent{node: d.node, id: s.ID}).Status(ctx)
}

// all returns the status of every agent, oldest first.
func (d *directory) all(ctx context.Context) ([]view.AgentStatus, error) {
	var list []view.AgentStatus
	for id, m := range d.node.journal.Mailboxes() {
		s, err := d.status(ctx, id, m)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (d *directory) watch(signal func()) *watch {
	w := &watch{changed: map[capabilities.ID]bool{}, signal: signal}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watches[w] = true
	return w
}

func (d *directory) unwatch(w *watch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.watches, w)
}

// news returns the agents that have changed since the last call.
func (d *directory) news(ctx context.Context, w *watch) ([]view.AgentStatus, error) {
	d.mu.Lock()
	ids := slices.Collect(maps.Keys(w.changed))
	clear(w.changed)
	d.mu.Unlock()
	list := make([]view.AgentStatus, 0, len(ids))
	for _, id := range ids {
		m, _ := d.node.journal.Mailbox(id)
		s, err := d.status(ctx, id, m)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b view.AgentStatus) int { return cmp.Or(cmp.Compare(a.Updated, b.Updated), a.ID.Compare(b.ID)) })
	return list, nil
}
