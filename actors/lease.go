package actors

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Leases are the leases as an agent asks for them and sees them. Their home is the mailbox of its host.
type Leases struct{ agent *Agent }

// LeasesOf returns the leases as an agent asks for them and sees them.
func LeasesOf(a *Agent) Leases { return Leases{a} }

// leaseholder is an agent as the home of its leases knows it.
type leaseholder struct {
	id, of capabilities.ID // of is the address of one that is a session
	home   *Agent
}

// holder refuses with AGENT_ARCHIVED an agent that has no leases.
func (l Leases) holder(ctx context.Context) (leaseholder, error) {
	return query(ctx, l.agent, func(s *mailbox.State, _ capabilities.Time) (leaseholder, error) {
		if s.Profile.Archived {
			return leaseholder{}, errArchived()
		}
		return leaseholder{s.ID, s.Profile.Of, AgentOf(l.agent.node, s.Profile.Host)}, nil
	})
}

// Ask asks for a lease, and returns it when it is on disk: held, or waiting if the command says so. The agent is the holder.
func (l Leases) Ask(ctx context.Context, c mailbox.AskLease) (view.Lease, error) {
	who, err := l.holder(ctx)
	if err != nil {
		return view.Lease{}, err
	}
	c.Holder, c.Of = who.id, who.of
	held, err := call(ctx, who.home, askLease{c})
	if err != nil && c.Team != "" {
		err = elsewhere(ctx, l.agent, c.Team, "team", "a lease binds agents of its holder's host", err)
	}
	return held, err
}

type askLease struct{ command mailbox.AskLease }

func (m askLease) handle(b *mailboxActor) (view.Lease, error) {
	if b.node.isArchived(m.command.Holder) {
		return view.Lease{}, errArchived()
	}
	_, err := b.decide(m.command)
	if refused, ok := errors.AsType[*mailbox.Leased](err); ok {
		return view.Lease{}, leased(b, refused, m.command.Holder)
	}
	if err != nil {
		return view.Lease{}, err
	}
	one, _ := m.command.Existing(b.state)
	return shownLease(b, one, m.command.Holder)
}

// leased returns the error of what another's lease is on: who holds it, until when, and how to ask.
func leased(b *mailboxActor, refused *mailbox.Leased, who capabilities.ID) error {
	shown, err := shownLease(b, refused.Lease, who)
	if err != nil {
		return err
	}
	return LeasedTo(shown, refused.File, b.node.clock())
}

// LeasedTo returns the error LEASED of a file that another's lease is on, or of what it was asked for. It has none of the holder's words
// but its name.
func LeasedTo(l view.Lease, file string, now capabilities.Time) *parley.Error {
	name := l.HolderName
	if name == "" {
		name = l.Holder.String()
	}
	what := "it"
	if file != "" {
		what = parley.Quoted(file, 200)
	} else if len(l.Patterns) > 0 {
		what = parley.Quoted(l.Patterns[0], 200)
	}
	verb := "is leased by"
	if l.State == view.LeaseWaiting {
		verb = "is waited for by"
	}
	left := max(l.Until.Std().Sub(now.Std()).Round(time.Second), time.Second)
	return parley.Refuse(parley.Leased, "%s %s %s (lease %d), for %s more at most", what, verb, parley.Quoted(name, 80), l.Lease, left).
		WithHint("parley send %s asks its holder; parley lease --wait waits for it", parley.Quoted(name, 80))
}

// shownLease returns a lease as an agent sees it, by the host's names.
func shownLease(b *mailboxActor, l mailbox.Lease, who capabilities.ID) (view.Lease, error) {
	v := b.viewer()
	a := l.Asked
	shown := view.Lease{
		Lease: a.Lease, Holder: a.Holder, HolderName: v.nameOf(a.Holder), Patterns: slices.Clone(a.Patterns), Shared: a.Shared, For: a.For,
		State: view.LeaseHeld, Until: l.Until, Behind: b.state.Leases.Ahead(a.Lease), Own: a.Holder == who,
	}
	if !l.Held {
		shown.State = view.LeaseWaiting
	}
	if t := b.state.Teams.Of(a.Team); t != nil {
		shown.Team = t.Name
	}
	if m, there := b.node.journal.Mailbox(a.Holder); there {
		if s, err := statusByNote(a.Holder, b.node.host, m); err == nil {
			shown.Title = s.Title
		}
	}
	if a.Holder == b.reg.id && shown.HolderName == "" {
		shown.HolderName = "host"
	}
	return shown, v.absent
}

// Renew has a lease of the agent's end after another time from now.
func (l Leases) Renew(ctx context.Context, number uint64, length time.Duration) (view.Lease, error) {
	who, err := l.holder(ctx)
	if err != nil {
		return view.Lease{}, err
	}
	return call(ctx, who.home, renewLease{mailbox.RenewLease{Lease: number, By: who.id, Length: length}})
}

type renewLease struct{ command mailbox.RenewLease }

func (m renewLease) handle(b *mailboxActor) (view.Lease, error) {
	if _, err := b.decide(m.command); err != nil {
		return view.Lease{}, err
	}
	one, _ := b.state.Leases.Of(m.command.Lease)
	return shownLease(b, one, m.command.By)
}

// End releases a lease of the agent's, or has it wait no longer. The host breaks that of another.
func (l Leases) End(ctx context.Context, number uint64) error {
	who, err := l.holder(ctx)
	if err != nil {
		return err
	}
	return who.home.do(ctx, mailbox.EndLease{Lease: number, By: who.id})
}

// EndAll releases all leases of the agent, at the end of its session or when it is archived.
func (l Leases) EndAll(ctx context.Context) error {
	home, err := query(ctx, l.agent, func(s *mailbox.State, _ capabilities.Time) (capabilities.ID, error) { return s.Profile.Host, nil })
	if err != nil {
		return err
	}
	return AgentOf(l.agent.node, home).do(ctx, mailbox.EndLeasesOf{Holder: l.agent.id})
}

// List returns the agent's own leases and those that bind it, by their numbers. The host sees all.
func (l Leases) List(ctx context.Context) (view.Leases, error) {
	who, err := l.holder(ctx)
	if err != nil {
		return view.Leases{}, err
	}
	return read(ctx, who.home, listLeases{who})
}

type listLeases struct{ who leaseholder }

func (m listLeases) handle(b *mailboxActor) (view.Leases, error) {
	all := view.Leases{Leases: []view.Lease{}}
	for _, one := range b.state.Leases.All() {
		if m.who.id != b.reg.id && one.Asked.Holder != m.who.id && !mailbox.Binds(b.state, &one, m.who.id, m.who.of) {
			continue
		}
		shown, err := shownLease(b, one, m.who.id)
		if err != nil {
			return all, err
		}
		all.Leases = append(all.Leases, shown)
	}
	return all, nil
}

// Blocking returns the lease of another agent by which this one may not write one of some files, and that file. There is none if the
// lease has no number. Files are absolute paths with slashes, and trees such that are changed with all that is below them.
func (l Leases) Blocking(ctx context.Context, files, trees []string) (view.Lease, string, error) {
	if len(files)+len(trees) == 0 {
		return view.Lease{}, "", nil
	}
	who, err := l.holder(ctx)
	if parley.CodeOf(err) == parley.AgentArchived {
		return view.Lease{}, "", nil
	}
	if err != nil {
		return view.Lease{}, "", err
	}
	got, err := read(ctx, who.home, blockingLease{who, files, trees})
	return got.lease, got.file, err
}

type blockingLease struct {
	who          leaseholder
	files, trees []string
}

// blockingFile is a lease, and the file that it is on.
type blockingFile struct {
	lease view.Lease
	file  string
}

func (m blockingLease) handle(b *mailboxActor) (got blockingFile, err error) {
	one, file := mailbox.Blocking(b.state, m.who.id, m.who.of, m.files, m.trees)
	if one == nil {
		return got, nil
	}
	got.file = file
	got.lease, err = shownLease(b, *one, m.who.id)
	return got, err
}

// Await blocks until a lease of the agent's is held, or has ended, which its state says then.
func (l Leases) Await(ctx context.Context, number uint64) (view.Lease, error) {
	who, err := l.holder(ctx)
	if err != nil {
		return view.Lease{}, err
	}
	changed := make(chan none, 1)
	node := l.agent.node
	defer node.leases.drop(node.leases.wait(leaseKey{who.home.id, number}, changed))
	for {
		now, err := read(ctx, who.home, findLease{number, who.id})
		if err != nil || now.State != view.LeaseWaiting {
			return now, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return now, errEnded(ctx, node)
		case <-node.life.Done():
			return now, errClosing()
		}
	}
}

// leaseKey is a lease by its home.
type leaseKey struct {
	home   capabilities.ID
	number uint64
}

type findLease struct {
	number uint64
	who    capabilities.ID
}

func (m findLease) handle(b *mailboxActor) (view.Lease, error) {
	one, ok := b.state.Leases.Of(m.number)
	if !ok {
		return view.Lease{Lease: m.number, Patterns: []string{}, State: view.LeaseEnded}, nil
	}
	if one.Asked.Holder != m.who && b.reg.id != m.who {
		return view.Lease{}, parley.Refuse(parley.NotPermitted, "lease %d is another's", m.number)
	}
	return shownLease(b, one, m.who)
}

// leaseChanged returns the lease that an event has be held, or end; 0 for any other.
func leaseChanged(e events.Event) uint64 {
	switch e := e.(type) {
	case *events.LeaseGranted:
		return e.Lease
	case *events.LeaseEnded:
		return e.Lease
	}
	return 0
}

// expireLeases ends the leases whose time has come, and once after the mailbox was read those of agents that are archived: the
// node may have ended between the two.
func expireLeases(b *mailboxActor) {
	if len(b.state.Leases.All()) == 0 {
		return
	}
	commands := []mailbox.Command{mailbox.ExpireLeases{}}
	if b.unswept {
		commands = append(commands, mailbox.EndLeasesOf{Gone: b.node.isArchived})
		b.unswept = false
	}
	for _, c := range commands {
		if _, err := b.decide(c); err != nil {
			b.node.log.Warn("leases are not ended", "mailbox", b.reg.id.String(), "error", err)
		}
	}
}
