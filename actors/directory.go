package actors

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// directory has a snapshot of every agent of the node, so that a list of them, or one by its title, need not read
// their mailboxes. It is made when it is first asked for, and kept up from then on.
type directory struct {
	node *Node

	making sync.Mutex // held while it is made

	mu      sync.Mutex
	made    bool
	known   map[capabilities.ID]view.AgentStatus
	watches map[*watch]bool
}

// watch is told of agents that have changed.
type watch struct {
	changed map[capabilities.ID]bool
	signal  chan struct{} // has one when there are some
}

func newDirectory(n *Node) *directory {
	return &directory{node: n, known: map[capabilities.ID]view.AgentStatus{}, watches: map[*watch]bool{}}
}

// put notes how an agent is, unless something newer is known. It is called once that is durable.
func (d *directory) put(s view.AgentStatus) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.known[s.ID]; ok && old.Version >= s.Version {
		return
	}
	d.known[s.ID] = s
	for w := range d.watches {
		w.tell(s.ID)
	}
}

func (w *watch) tell(id capabilities.ID) {
	w.changed[id] = true
	select {
	case w.signal <- struct{}{}:
	default: // it has yet to look
	}
}

// readers is how many mailboxes are read at once to make the directory.
const readers = 4

// make reads what is not known yet from the log.
func (d *directory) make(ctx context.Context) error {
	d.making.Lock()
	defer d.making.Unlock()
	d.mu.Lock()
	made := d.made
	d.mu.Unlock()
	if made {
		return nil
	}
	ids := make(chan capabilities.ID)
	failed := make(chan error, readers)
	var work sync.WaitGroup
	for range readers {
		work.Go(func() {
			for id := range ids {
				if err := d.read(ctx, id); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	err := d.feed(ctx, ids, failed)
	close(ids)
	work.Wait()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made = true
	return nil
}

func (d *directory) feed(ctx context.Context, ids chan<- capabilities.ID, failed <-chan error) error {
	for id := range d.node.journal.Mailboxes() {
		d.mu.Lock()
		_, known := d.known[id]
		d.mu.Unlock()
		if known {
			continue
		}
		select {
		case ids <- id:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return errEnded(ctx)
		}
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// read takes in one agent. One whose log cannot be read is in the directory as that.
func (d *directory) read(ctx context.Context, id capabilities.ID) error {
	s, _, err := d.node.replay(ctx, id)
	if ctx.Err() != nil {
		return errEnded(ctx)
	}
	if err != nil {
		d.put(view.AgentStatus{ID: id, Status: "error", Error: parley.AsError(err).Message, Labels: map[string]string{}, Pending: []view.PendingPermission{}, Node: id.Node, Version: 1})
		return nil
	}
	if _, running := s.Run(); running || s.HasProgram() && s.Profile.Status == mailbox.Initializing { // its mailbox knows whether that is so
		snap, err := (&Agent{node: d.node, id: id}).Status(ctx)
		if err == nil {
			d.put(snap)
		}
		return err
	}
	d.put(snapshotOf(s))
	return nil
}

// all gives a snapshot of every agent, the oldest first.
func (d *directory) all(ctx context.Context) ([]view.AgentStatus, error) {
	if err := d.make(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	list := make([]view.AgentStatus, 0, len(d.known))
	for _, s := range d.known {
		list = append(list, s)
	}
	d.mu.Unlock()
	slices.SortFunc(list, func(a, b view.AgentStatus) int { return a.ID.Compare(b.ID) })
	return list, nil
}

func (d *directory) watch() *watch {
	w := &watch{changed: map[capabilities.ID]bool{}, signal: make(chan struct{}, 1)}
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

// news gives the agents that have changed since it was last called.
func (d *directory) news(w *watch) []view.AgentStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]view.AgentStatus, 0, len(w.changed))
	for id := range w.changed {
		list = append(list, d.known[id])
	}
	clear(w.changed)
	slices.SortFunc(list, func(a, b view.AgentStatus) int { return cmp.Or(cmp.Compare(a.Updated, b.Updated), a.ID.Compare(b.ID)) })
	return list
}
