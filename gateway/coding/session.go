package coding

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/runtime"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/people"
	"parley/mailbox"
)

// Sessions are the living sessions of coding agents. What a session is stands in the log; here is what passes: when it was
// active last, and whether it works now. It may be used by many goroutines.
type Sessions struct {
	node  *actors.Node
	log   *slog.Logger
	wakes string // folder of the wake files; "" for none

	mu        sync.Mutex
	living    map[capabilities.ID]*session // by the session's agent
	addresses map[capabilities.ID]bool     // whose sessions are known
	wanted    map[*session]bool            // whose mail has changed
	changed   chan struct{}                // something is wanted; has room for one
}

// session is a living session. The lock of Sessions guards what changes.
type session struct {
	agent, address capabilities.ID
	id             string          // the coding agent's
	program        string          // that is the coding agent, as hooks name it; "" if it is not known
	process        runtime.Process // zero for one that is not known

	active time.Time                   // when a hook came last
	works  bool                        // a turn is under way
	wakes  bool                        // a change of its wake file is noticed
	woken  time.Time                   // when that was changed last, or a waiter was told
	waits  int                         // waiters that are told when it is to be woken
	nudge  chan struct{}               // tells one of them; has room for one
	seen   uint64                      // the mail that it was changed for
	reads  chan struct{}               // holds one while a call of read_mail is under way
	since  time.Time                   // when it came to its process
	lost   map[place]capabilities.Time // when texts were fetched that its transcript has not got
	kept   map[place]bool              // texts that its transcript has
	stops  []func()                    // of the watches of its mail

	leases     string    // of others, of which it was told last: their numbers
	toldLeases time.Time // when
}

// place is a message in one of the two mailboxes that a session reads.
type place struct {
	mailbox capabilities.ID
	number  uint64
}

// New returns the sessions of a node. Wakes is the folder of the files that change when a session has mail; "" for none.
func New(node *actors.Node, log *slog.Logger, wakes string) *Sessions {
	return &Sessions{
		node: node, log: log, wakes: wakes, living: map[capabilities.ID]*session{}, addresses: map[capabilities.ID]bool{}, wanted: map[*session]bool{}, changed: make(chan struct{}, 1),
	}
}

// of returns the living session of an agent, or nil.
func (l *Sessions) of(agent capabilities.ID) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.living[agent]
}

// find returns the living session of the innermost of some processes that has one, or the one with an ID. It returns nil if
// there is none.
func (l *Sessions) find(noted []runtime.Process, id string) (found *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range noted {
		for _, s := range l.living {
			if s.process == p && (found == nil || s.active.After(found.active)) { // a process may work in several
				found = s
			}
		}
		if found != nil {
			return found
		}
	}
	for _, s := range l.living {
		if id != "" && s.id == id {
			return s
		}
	}
	return nil
}

// Process returns the process of an address's living session, by the coding agent's ID for it; zero for one that is not known.
func (l *Sessions) Process(address capabilities.ID, id string) runtime.Process {
	return l.Processes(address)[id]
}

// Processes returns the processes of the living sessions of an address, by the coding agent's IDs for these.
func (l *Sessions) Processes(address capabilities.ID) map[string]runtime.Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]runtime.Process{}
	for _, s := range l.living {
		if s.address == address {
			all[s.id] = s.process
		}
	}
	return all
}

// Addresses returns the agents that coding agents act for, as the log has them: also those of another machine that had the node.
func (l *Sessions) Addresses(ctx context.Context) (ids []capabilities.ID, err error) {
	for _, kind := range []string{people.CodingAgent, people.CodingSession} {
		some, err := l.node.Host().Agents().List(ctx, view.AgentFilter{Labels: map[string]string{people.LabelKind: kind}})
		if err != nil {
			return nil, err
		}
		for _, a := range some {
			ids = append(ids, cmp.Or(a.Of, a.ID))
		}
	}
	slices.SortFunc(ids, capabilities.ID.Compare)
	return slices.Compact(ids), nil
}

// latest reports whether a session is the one of its address that was active last. That has the address's mail.
func (l *Sessions) latest(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.living {
		if other.address == s.address && other.active.After(s.active) {
			return false
		}
	}
	return true
}

// all returns the living sessions.
func (l *Sessions) all() []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	some := make([]*session, 0, len(l.living))
	for _, s := range l.living {
		some = append(some, s)
	}
	return some
}

// with changes sessions under the lock.
func (l *Sessions) with(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// want has the courier look at the mail of a session. It does not block.
func (l *Sessions) want(s *session) {
	l.mu.Lock()
	l.wanted[s] = true
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// take returns the sessions whose mail has changed.
func (l *Sessions) take() []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	some := make([]*session, 0, len(l.wanted))
	for s := range l.wanted {
		some = append(some, s)
	}
	clear(l.wanted)
	return some
}

// Open takes up the sessions of an address that had not ended when the node did, or logs why it cannot: without one its
// coding agent acts for the address.
func (l *Sessions) Open(address capabilities.ID) {
	if err := l.open(context.Background(), address); err != nil {
		l.log.Warn("the sessions of a coding agent are not known", "address", address, "error", err)
	}
}

// open takes up the living sessions of an address, once.
func (l *Sessions) open(ctx context.Context, address capabilities.ID) error {
	l.mu.Lock()
	known := l.addresses[address]
	l.mu.Unlock()
	if known {
		return nil
	}
	all, err := actors.SessionsOf(l.agent(address)).List(ctx)
	if err != nil {
		return err
	}
	status, err := l.agent(address).Status(ctx)
	if err != nil {
		return err
	}
	program := status.Labels[people.LabelProgram]
	for _, s := range all {
		if s.IsLiving() {
			l.takeUp(address, s.Agent, s.Session, program, runtime.Process(s.Process), s.Began.Std())
		}
	}
	l.with(func() { l.addresses[address] = true })
	return nil
}

// takeUp has a session be among the living, and watches its mail.
func (l *Sessions) takeUp(address, agent capabilities.ID, id, program string, p runtime.Process, active time.Time) *session {
	l.mu.Lock()
	s, known := l.living[agent]
	if !known {
		s = &session{agent: agent, address: address, reads: make(chan struct{}, 1), lost: map[place]capabilities.Time{}, kept: map[place]bool{}, nudge: make(chan struct{}, 1), since: active}
		s.wakes = hasWakeFile(l, s) // of before a restart of the node
		l.living[agent] = s
	}
	if known && s.process != p {
		s.since = time.Now() // what its former process has fetched, and is not in the transcript by now, never will be
	}
	s.id, s.program, s.process, s.active = id, program, p, active
	l.mu.Unlock()
	if !known {
		for _, box := range []capabilities.ID{agent, address} {
			stop := l.agent(box).Mail().Watch(func() { l.want(s) })
			l.with(func() { s.stops = append(s.stops, stop) })
		}
		l.want(s)
	}
	return s
}

// drop takes a session from the living.
func (l *Sessions) drop(agent capabilities.ID) {
	l.mu.Lock()
	s := l.living[agent]
	delete(l.living, agent)
	var stops []func()
	if s != nil {
		stops = s.stops
		delete(l.wanted, s)
	}
	l.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	if s != nil {
		l.unwake(s)
	}
}

// close ends the watches of all sessions, which live on.
func (l *Sessions) close() {
	for _, s := range l.all() {
		for _, stop := range s.stops {
			stop()
		}
	}
}

// Enter returns the agent of a coding agent's session, which it makes or takes up, and the host's name for it. The agent is
// zero if there is none and none is begun. The caller registers one at a time.
func (l *Sessions) Enter(ctx context.Context, guest capabilities.ID, name string, r api.Register, p runtime.Process) (agent capabilities.ID, called string, err error) {
	agent, err = l.session(ctx, l.agent(guest), name, r, p)
	if s := l.of(agent); s != nil && !r.Server {
		l.with(func() { s.active = time.Now() })
	}
	if err == nil && !agent.IsZero() {
		called, err = nameOf(ctx, l, agent)
	}
	return agent, called, err
}

func (l *Sessions) session(ctx context.Context, address *actors.Agent, name string, r api.Register, p runtime.Process) (none capabilities.ID, err error) {
	if err := l.open(ctx, address.ID()); err != nil {
		return none, err
	}
	var here *session
	if p.PID != 0 {
		here = l.find([]runtime.Process{p}, "")
	}
	named := l.find(nil, r.Session)
	for _, s := range []**session{&here, &named} {
		if *s != nil && (*s).address != address.ID() {
			*s = nil
		}
	}
	if named != nil && p.PID != 0 && named.process != p && named.process.IsRunning() {
		l.log.Warn("a session of a coding agent is another running one's", "session", named.agent, "process", p.PID, "of", named.process.PID)
		return none, nil // who names it works for the address, and neither takes it over nor ends it
	}
	begins, ends := r.Mail != nil && r.Mail.Moment == api.MomentStart, r.Mail != nil && r.Mail.Moment == api.MomentEnd
	// The hook of the start may have been lost. The one before a clear is the last to say which session the process was in.
	clears := ends && r.Mail.Source == "clear" && r.Single && here == nil && p.PID != 0
	switch {
	case named != nil && (named.process == p || p.PID == 0): // who cannot be told moves nothing
		return named.agent, nil
	case r.Session == "" || r.Server || ends && !clears: // it is of one that others begin
		if s := cmp.Or(here, named); s != nil {
			return s.agent, nil
		}
		return none, nil
	}
	all, err := actors.SessionsOf(address).List(ctx)
	if err != nil {
		return none, err
	}
	c := mailbox.StartSession{Session: r.Session, Process: events.SessionProcess(p)}
	i := slices.IndexFunc(all, func(s mailbox.Session) bool { return s.Session == r.Session })
	if i < 0 { // after a clear and a kill, the conversation of before is all that can be resumed
		i = slices.IndexFunc(all, func(s mailbox.Session) bool { return s.Former == r.Session && !s.IsLiving() })
	}
	switch {
	case i >= 0:
		c.Agent = all[i].Agent
	case ends:
		return none, nil
	case here != nil && r.Single && (!begins || r.Mail.Source == "clear"): // it goes on under another ID
		c.Agent = here.agent
	default:
		if c.Agent, err = l.make(ctx, address, name, all); err != nil {
			return none, err
		}
	}
	if err := actors.SessionsOf(address).Start(ctx, c); err != nil {
		return none, err
	}
	if here != nil && here.agent != c.Agent && r.Single {
		if err := l.End(ctx, here.agent); err != nil {
			return none, err
		}
	}
	l.takeUp(address.ID(), c.Agent, c.Session, r.Program, p, time.Now())
	return c.Agent, nil
}

// make makes the agent of another session of an address. Of those that have ended it archives one where there are too
// many.
func (l *Sessions) make(ctx context.Context, address *actors.Agent, name string, all []mailbox.Session) (id capabilities.ID, err error) {
	if len(all) >= mailbox.MaxSessions {
		if err := l.archiveOne(ctx, address, all); err != nil {
			return id, err
		}
	}
	status, err := address.Status(ctx)
	if err != nil {
		return id, err
	}
	titles := map[string]bool{} // of sessions that were named before the address had another name, too
	for _, s := range all {
		seen, err := l.agent(s.Agent).Status(ctx)
		if err != nil {
			return id, err
		}
		titles[seen.Title] = true
	}
	for n := 1; ; n++ {
		title := fmt.Sprintf("%s · %d", cmp.Or(status.Title, name), n)
		if titles[title] {
			continue
		}
		wanted := actors.NewAgent{
			Kind: events.Guest, Name: fmt.Sprintf("%s-%d", name, n), Title: title, Of: address.ID(),
			Labels: map[string]string{people.LabelKind: people.CodingSession, people.LabelProgram: status.Labels[people.LabelProgram], people.LabelFolder: status.Labels[people.LabelFolder]},
		}
		if wanted.Labels[people.LabelFolder] == "" { // a guest that was named
			wanted.Labels = map[string]string{people.LabelKind: people.CodingSession}
		}
		made, err := l.node.Host().Make(ctx, wanted)
		if err == nil {
			return made.ID(), nil
		}
		if parley.CodeOf(err) != parley.NameTaken || n > 4*mailbox.MaxSessions {
			return id, err
		}
		if made := orphan(ctx, l, wanted.Name, address.ID(), all); made != nil {
			return made.ID(), nil
		}
	}
}

// orphan returns the agent under a name, if it was made for a session of an address that was never begun: the node ended
// between the two.
func orphan(ctx context.Context, l *Sessions, name string, address capabilities.ID, all []mailbox.Session) *actors.Agent {
	agent, err := l.node.ActAs(ctx, name)
	if err != nil || slices.ContainsFunc(all, func(s mailbox.Session) bool { return s.Agent == agent.ID() }) {
		return nil
	}
	status, err := agent.Status(ctx)
	if err != nil || status.Of != address || status.Status == mailbox.Closed {
		return nil
	}
	return agent
}

// nameOf returns the name under which the host holds the agent of a session.
func nameOf(ctx context.Context, l *Sessions, id capabilities.ID) (string, error) {
	return l.node.Host().Names().Of(ctx, id)
}

// End ends a session of a coding agent. What it was not shown returns to where others are offered it.
func (l *Sessions) End(ctx context.Context, agent capabilities.ID) error {
	s := l.of(agent)
	if s == nil {
		return nil
	}
	address := l.agent(s.address)
	err := actors.SessionsOf(address).End(ctx, agent)
	if err == nil {
		err = l.returnOffers(ctx, s, nil)
	}
	if err != nil {
		return err
	}
	l.drop(agent)
	for _, other := range l.all() {
		if other.address == s.address {
			l.want(other)
		}
	}
	return nil
}

// keepEnded is how long the agent of a session that has ended is kept, for one who resumes it.
const keepEnded = 24 * time.Hour

// sweep ends the sessions whose processes are gone, archives the agents of those that ended a day ago and have nothing
// open with others, and looks again whether sleepers are to be woken.
func (l *Sessions) sweep(ctx context.Context) {
	for _, s := range l.all() {
		l.mu.Lock()
		process := s.process
		l.mu.Unlock()
		if process.PID != 0 {
			if !process.IsRunning() {
				if err := l.End(ctx, s.agent); err != nil {
					l.log.Warn("a session whose process is gone is not ended", "session", s.agent, "error", err)
				}
				continue
			}
		}
		l.want(s)
	}
}

// archiveEnded archives the agents of sessions that have ended some time before. What they have open ends with them.
func (l *Sessions) archiveEnded(ctx context.Context, before time.Time) {
	l.mu.Lock()
	var addresses []capabilities.ID
	for id := range l.addresses {
		addresses = append(addresses, id)
	}
	l.mu.Unlock()
	for _, id := range addresses {
		address := l.agent(id)
		all, err := actors.SessionsOf(address).List(ctx)
		for _, s := range all {
			if s.IsLiving() || !s.Ended.Std().Before(before) {
				continue
			}
			failed := l.settle(ctx, address, s)
			if failed == nil {
				_, failed = l.archive(ctx, address, s, true)
			}
			err = cmp.Or(err, failed)
		}
		if err != nil {
			l.log.Warn("sessions that have ended are not archived", "address", id, "error", err)
		}
	}
}

// archiveOne archives the first session that has ended and has nothing open. It refuses with QUOTA_EXCEEDED if there is
// none.
func (l *Sessions) archiveOne(ctx context.Context, address *actors.Agent, all []mailbox.Session) error {
	for _, s := range all {
		if s.IsLiving() {
			continue
		}
		if done, err := l.archive(ctx, address, s, false); done || err != nil {
			return err
		}
	}
	return parley.Refuse(parley.QuotaExceeded, "%d sessions of one folder are as many as there may be", mailbox.MaxSessions).
		WithHint("end some of them, or settle what the ended ones have open: parley ls shows them")
}

// settle ends what a session has open that has ended. What it asked is withdrawn, since nobody waits for it any more. What it was asked goes
// on to its address, or is declined where that may not have it.
func (l *Sessions) settle(ctx context.Context, address *actors.Agent, s mailbox.Session) error {
	agent := l.agent(s.Agent)
	var open []view.Message
	for m, err := range agent.Mail().All(ctx, view.MessageFilter{All: true, Open: true}) {
		if err != nil {
			return err
		}
		open = append(open, m)
	}
	for _, m := range open {
		form := capabilities.FormID(m.MessageID)
		err := error(nil)
		if m.Sent {
			_, err = agent.Cancel(ctx, form, sessionOver)
		} else if m.AnswerNeeded && !slices.ContainsFunc(m.ForwardedTo, func(f view.Forwarded) bool { return f.ID == address.ID() }) {
			to := address.ID().String()
			if err = l.Reach(ctx, agent, agent, address, &to); err == nil {
				err = agent.Forward(ctx, form, to)
			}
			if err != nil && parley.CodeOf(err) != parley.Internal {
				_, err = agent.Decline(ctx, form, m.AnswerRevision(), sessionOver)
			}
		}
		if code := parley.CodeOf(err); err != nil && !strings.HasPrefix(string(code), "ALREADY_") && code != parley.AnswerPending {
			return err
		}
	}
	return nil
}

// sessionOver is why what a session had open has ended.
const sessionOver = "The session has ended."

// archive archives the agent of a session that has ended, and frees its name. One that has something open stays; what it was asked is not
// open with it if its address has that too.
func (l *Sessions) archive(ctx context.Context, address *actors.Agent, s mailbox.Session, passedOn bool) (done bool, err error) {
	agent := l.agent(s.Agent)
	if owes, err := actors.Owes(ctx, agent, passedOn); owes || err != nil {
		return false, err
	}
	name, err := nameOf(ctx, l, s.Agent)
	if err != nil {
		return false, err
	}
	if err := l.node.Host().Agents().Archive(ctx, agent); err != nil {
		return false, err
	}
	if name != "" {
		if err := l.node.Host().Names().Remove(ctx, name); err != nil {
			return false, err
		}
	}
	return true, actors.SessionsOf(address).Forget(ctx, s.Agent)
}

// agent returns the handle of an agent of the node.
func (l *Sessions) agent(id capabilities.ID) *actors.Agent { return actors.AgentOf(l.node, id) }

// Agent returns the agent of the session that a process of a coding agent belongs to now, or nil.
func (l *Sessions) Agent(of runtime.Owner) *actors.Agent {
	if s := l.find(of.Noted, of.Session); s != nil && s.address == of.Agent {
		return l.agent(s.agent)
	}
	return nil
}

// Has reports whether an agent is that of a living session.
func (l *Sessions) Has(agent capabilities.ID) bool { return l.of(agent) != nil }
