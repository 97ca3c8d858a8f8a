package actors

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// directory holds the status of every agent of the node, so that listing agents reads no mailboxes. It is filled at its
// first use and kept up to date from then on.
type directory struct {
	node *Node

	making sync.Mutex // held while it is made

	mu      sync.Mutex
	made    bool
	known   map[capabilities.ID]view.AgentStatus
	watches map[*watch]bool
}

// watch collects the agents that have changed.
type watch struct {
	changed map[capabilities.ID]bool
	signal  chan struct{} // has one when there are some
}

func newDirectory(n *Node) *directory {
	return &directory{node: n, known: map[capabilities.ID]view.AgentStatus{}, watches: map[*watch]bool{}}
}

// put records the status of an agent, unless a newer one is known. The caller makes sure that the status is durable.
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
	default: // the signal is pending
	}
}

// readers is the number of mailboxes that are read at once to fill the directory.
const readers = 4

// make reads the agents that are not known yet from the log.
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

// read adds one agent. An agent whose log cannot be read is added with the status error.
func (d *directory) read(ctx context.Context, id capabilities.ID) error {
	s, _, err := d.node.replay(ctx, id)
	if ctx.Err() != nil {
		return errEnded(ctx)
	}
	if err != nil {
		d.put(view.AgentStatus{ID: id, Status: "error", Error: parley.AsError(err).Message, Labels: map[string]string{}, Pending: []view.PendingPermission{}, Node: id.Node, Version: 1})
		return nil
	}
	if _, running := s.Runs.Current(); running || s.Runs.HasProgram() && s.Profile.Status == mailbox.Initializing { // its mailbox knows whether that is so
		status, err := (&Agent{node: d.node, id: id}).Status(ctx)
		if err == nil {
			d.put(status)
		}
		return err
	}
	d.put(statusOf(s))
	return nil
}

// all returns the status of every agent, oldest first.
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

// news returns the agents that have changed since the last call.
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

// visibility is the set of the node's agents that an agent sees, with its names for them.
type visibility struct {
	everything bool // the node's host sees all
	names      map[capabilities.ID]string
}

func (s visibility) includes(id capabilities.ID) bool {
	_, named := s.names[id]
	return s.everything || named
}

// visibility returns the agents that the agent sees: itself and those that it holds. The node's host sees all.
func (as Agents) visibility(ctx context.Context) (visibility, error) {
	names, err := query(ctx, as.agent, func(s *mailbox.State, now capabilities.Time) (map[capabilities.ID]string, error) {
		return s.NamedAgents(now), nil
	})
	if err != nil {
		return visibility{}, err
	}
	if _, named := names[as.agent.id]; !named {
		names[as.agent.id] = "SELF"
	}
	return visibility{everything: as.agent.IsHost(), names: names}, nil
}

// List returns the agents of the node that the agent sees, oldest first.
func (as Agents) List(ctx context.Context, f view.AgentFilter) ([]view.AgentStatus, error) {
	s, err := as.visibility(ctx)
	if err != nil {
		return nil, err
	}
	all, err := as.agent.node.directory.all(ctx)
	if err != nil {
		return nil, err
	}
	list := []view.AgentStatus{}
	for _, status := range all {
		if s.includes(status.ID) && f.Matches(status) {
			list = append(list, markHeld(as.agent.node, status).For(as.agent.id, s.names[status.ID]))
		}
	}
	return list, nil
}

// Follow calls tell for each agent that the agent sees and the filter matches, and again for each that changes, until
// ctx ends or tell fails. If only is not zero, it is the one agent that is followed. An agent that the filter no longer
// matches is reported once more, as gone. Follow calls all, unless it is nil, after the agents that there are at first.
func (as Agents) Follow(ctx context.Context, f view.AgentFilter, only capabilities.ID, tell func(s view.AgentStatus, gone bool) error, all func()) error {
	d := as.agent.node.directory
	w := d.watch()
	defer d.unwatch(w)
	told := map[capabilities.ID]uint64{}
	news, err := d.all(ctx)
	for err == nil {
		if err = as.tell(ctx, news, f, only, told, tell); err != nil {
			break
		}
		if all != nil {
			all()
			all = nil
		}
		select {
		case <-w.signal:
			news = d.news(w)
		case <-ctx.Done():
			return nil
		case <-as.agent.node.life.Done():
			return errClosing()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// tell reports agents that are newer than what was reported. Told has the reported version of each agent that the
// filter still matches.
func (as Agents) tell(ctx context.Context, all []view.AgentStatus, f view.AgentFilter, only capabilities.ID, told map[capabilities.ID]uint64, tell func(view.AgentStatus, bool) error) error {
	seen, err := as.visibility(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if !only.IsZero() && s.ID != only || !seen.includes(s.ID) {
			continue
		}
		picked, before := f.Matches(s), told[s.ID]
		if !picked && before == 0 || s.Version <= before {
			continue
		}
		told[s.ID] = s.Version
		if !picked {
			delete(told, s.ID)
		}
		if err := tell(markHeld(as.agent.node, s).For(as.agent.id, seen.names[s.ID]), !picked); err != nil {
			return err
		}
	}
	return nil
}

// maxOffered is the number of candidates in the error for an ambiguous name.
const maxOffered = 5

// Find returns an agent of the node by an ID or a locator, by one of the caller's names, by the beginning of an ID if
// only one agent has it, or by a whole title that only one has. It refuses with AGENT_NOT_FOUND, AMBIGUOUS, and
// NOT_PERMITTED for an agent of another node.
func (as Agents) Find(ctx context.Context, ref string) (*Agent, error) {
	id, err := as.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	if id.Node != as.agent.node.id {
		return nil, parley.Refuse(parley.NotPermitted, "%.200q is an agent of another node, which alone knows what it does", ref)
	}
	return &Agent{node: as.agent.node, id: id, by: as.agent.by}, nil
}

func (as Agents) find(ctx context.Context, ref string) (capabilities.ID, error) {
	if ref == "" {
		return capabilities.ID{}, parley.Refuse(parley.InvalidArgument, "which agent? give an ID, the beginning of one, a name or a title")
	}
	seen, err := as.visibility(ctx)
	if err != nil {
		return capabilities.ID{}, err
	}
	if id, ok := as.exactly(ref, seen); ok {
		return id, nil
	}
	v, err := as.agent.Names().Show(ctx, ref, false)
	switch {
	case parley.CodeOf(err) == parley.NotPermitted:
		return capabilities.ID{}, err // the reference was revoked
	case err == nil:
		if ref, ok := v.AsRef(); ok && ref.Kind == capabilities.KindAgent {
			return ref.Target, nil
		}
	}
	all, err := as.agent.node.directory.all(ctx)
	if err != nil {
		return capabilities.ID{}, err
	}
	begins := func(s view.AgentStatus) bool { return strings.HasPrefix(s.ID.ULID.String(), strings.ToUpper(ref)) }
	titled := func(s view.AgentStatus) bool { return s.Title == ref }
	for _, fits := range []func(view.AgentStatus) bool{begins, titled} {
		var found []view.AgentStatus
		for _, s := range all {
			if seen.includes(s.ID) && fits(s) {
				found = append(found, s)
			}
		}
		if len(found) == 1 {
			return found[0].ID, nil
		}
		if len(found) > 1 {
			return capabilities.ID{}, ambiguous(ref, found, seen)
		}
	}
	return capabilities.ID{}, parley.Refuse(parley.AgentNotFound, "no agent %.200q", ref).
		WithHint("parley ls lists the agents")
}

// exactly returns the agent of a whole ID, with or without its node, or of a locator.
func (as Agents) exactly(ref string, seen visibility) (capabilities.ID, bool) {
	id, err := capabilities.ParseID(ref)
	if capabilities.IsLocator(ref) {
		var l capabilities.Locator
		l, err = capabilities.ParseLocator(ref)
		id = l.ID
	} else if err != nil {
		id, err = capabilities.ParseLocalID(ref, as.agent.node.id)
	}
	if err != nil || !seen.includes(id) {
		return id, false
	}
	if id.Node != as.agent.node.id {
		return id, true
	}
	_, there := as.agent.node.journal.Mailbox(id)
	return id, there
}

func ambiguous(ref string, found []view.AgentStatus, seen visibility) error {
	words := make([]string, 0, maxOffered+1)
	for _, s := range found[:min(len(found), maxOffered)] {
		name := seen.names[s.ID]
		if name == "" {
			name = s.Title
		}
		words = append(words, strings.TrimSpace(s.ID.ULID.String()+" "+name))
	}
	if more := len(found) - maxOffered; more > 0 {
		words = append(words, "…")
	}
	return parley.Refuse(parley.Ambiguous, "%.200q could be any of %d agents: %s", ref, len(found), strings.Join(words, ", ")).
		WithHint("give more of the ID")
}

// Agents are the agents of the node as one of them sees and controls them.
type Agents struct{ agent *Agent }

// Agents returns the agents of the node as the agent sees and controls them.
func (a *Agent) Agents() Agents { return Agents{a} }
