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
	running    map[capabilities.ID]bool          // agents whose programs run, as their mailboxes have said since the start
	unreadable map[capabilities.ID]*parley.Error // why agents were put aside, or their logs cannot be read
	watches    map[*watch]bool
}

// watch collects the agents that have changed.
type watch struct {
	changed map[capabilities.ID]bool
	signal  func() // says that there are some; must not block
}

func newDirectory(n *Node) *directory {
	return &directory{
		node: n, running: map[capabilities.ID]bool{}, unreadable: map[capabilities.ID]*parley.Error{}, watches: map[*watch]bool{},
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

// fail notes why an agent is put aside, or cannot be read. It tells the watches.
func (d *directory) fail(id capabilities.ID, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unreadable[id] = parley.AsError(err)
	for w := range d.watches {
		w.tell(id)
	}
}

// recovered notes that an agent can be read again, if it could not. It tells the watches.
func (d *directory) recovered(id capabilities.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unreadable[id] == nil {
		return
	}
	delete(d.unreadable, id)
	for w := range d.watches {
		w.tell(id)
	}
}

// problem returns why an agent is put aside, or cannot be read; nil if it can, as far as is known.
func (d *directory) problem(id capabilities.ID) *parley.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unreadable[id]
}

// PutAside returns an error that counts the mailboxes that are put aside, and says why the first is; nil for none. One that nobody
// has looked at since the start is not known to be.
func PutAside(n *Node) *parley.Error {
	d := n.directory
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.unreadable) == 0 {
		return nil
	}
	why := d.unreadable[slices.MinFunc(slices.Collect(maps.Keys(d.unreadable)), capabilities.ID.Compare)]
	return parley.Refuse(why.Code, "mailboxes that cannot be read: %d; of the first: %s", len(d.unreadable), why.Message).
		WithHint("parley ls --status error lists them")
}

// read returns the status of an agent by its log. An agent whose log cannot be read has the status error.
func (d *directory) read(ctx context.Context, id capabilities.ID) (view.AgentStatus, error) {
	bare := view.AgentStatus{ID: id, Labels: map[string]string{}, Pending: []view.PendingPermission{}, Node: id.Node, Version: 1}
	if why := d.problem(id); why != nil {
		return failed(bare, why), nil
	}
	s, _, err := d.node.replay(ctx, id)
	if ctx.Err() != nil {
		return view.AgentStatus{}, errEnded(ctx, d.node)
	}
	if err != nil {
		d.fail(id, err)
		return failed(bare, parley.AsError(err)), nil
	}
	return d.confirm(ctx, statusOf(s))
}

// failed returns the status of an agent that is put aside, or cannot be read. What else is known of it stays.
func failed(s view.AgentStatus, why *parley.Error) view.AgentStatus {
	s.Status, s.Error = mailbox.Failed, why.Message
	return s
}

// mayMatch reports whether a filter may pick an agent with a note. It picks no others.
func (d *directory) mayMatch(f view.AgentFilter, id capabilities.ID, note string) bool {
	return mayMatch(f, note) || d.problem(id) != nil
}

// status returns the status of an agent, by its index entry. A mailbox without a readable note is read itself.
func (d *directory) status(ctx context.Context, id capabilities.ID, m persistence.Mailbox) (view.AgentStatus, error) {
	s, err := statusByNote(id, d.node.host, m)
	if err != nil {
		return d.read(ctx, id)
	}
	if why := d.problem(id); why != nil {
		return failed(s, why), nil
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
	now, err := (&Agent{node: d.node, id: s.ID}).Status(ctx)
	if why := d.problem(s.ID); err != nil && why != nil {
		return failed(s, why), nil
	}
	return now, err
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
