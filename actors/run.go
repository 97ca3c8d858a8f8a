package actors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley"
	"parley/actors/runtime"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// startNextRun begins the next run of the agent's program, if a message waits for it. It is called after every message.
func (b *mailboxActor) startNextRun() {
	if b.state == nil || !b.state.Runs.HasProgram() || b.state.Runs.Queued() == 0 || b.state.Runs.Held() {
		return
	}
	if err := b.startRun(mailbox.StartRun{}); err != nil {
		b.node.log.Warn("a run does not begin", "mailbox", b.reg.id.String(), "error", err)
	}
}

// getsReady reports whether a program is prepared before its first message.
func getsReady(p events.ProgramSet) bool { return p.Keep || p.Runtime == "acp" }

// prepareOrRun prepares a new agent's program if that needs it. Otherwise it begins the first run, unless wait is set.
func prepareOrRun(b *mailboxActor, wait bool) {
	p := b.state.Runs.Program()
	var err error
	switch {
	case getsReady(p):
		if _, err = b.decide(mailbox.PrepareProgram{Status: mailbox.Initializing}); err == nil {
			b.release(func(lost error) {
				if lost == nil {
					b.node.supervisor.prepare(b.reg.id, p)
				}
			})
		}
	case !wait:
		err = b.startRun(mailbox.StartRun{Unprompted: true})
	}
	if err != nil {
		b.node.log.Warn("a new agent's program does not begin", "mailbox", b.reg.id.String(), "error", err)
	}
}

// startRun decides on a run, and has the program run once the decision is durable.
func (b *mailboxActor) startRun(c mailbox.StartRun) error {
	sup := b.node.supervisor
	if _, running := b.state.Runs.Current(); running || !sup.reserveSlot(b.reg.id) {
		return nil
	}
	evs, err := b.decide(c)
	if err != nil || len(evs) == 0 {
		sup.releaseSlot()
		return err
	}
	e := evs[0].(*events.RunStarted)
	m, r := sup.begin(b.reg.id, b.state.Runs.Program(), e)
	p := promptOf(b, e)
	b.release(func(lost error) {
		if lost != nil {
			sup.abandon(r, lost)
			return
		}
		sup.launch(m, r, p)
	})
	return nil
}

// promptOf returns the prompt of a run.
func promptOf(b *mailboxActor, e *events.RunStarted) runtime.Prompt {
	p := runtime.Prompt{Run: e.Run.String(), Agent: b.reg.id.String()}
	if m, err := b.state.Mail.FindID(e.Prompt); err == nil && m.Posted != nil {
		p.Message, p.From, p.Text = m.ID().String(), m.From().String(), mailbox.ShowText(m.Posted.Text)
		if subject := m.Posted.Subject; subject != "" {
			p.Text = subject + "\n\n" + p.Text
		}
	}
	return p
}

// reconcileRun ends a run that is under way in the log only: the node has restarted since, or the end could not be recorded
// then. It is called before every message.
func (b *mailboxActor) reconcileRun() {
	if b.node.journal.Err() != nil {
		return
	}
	sup, fresh := b.node.supervisor, b.fresh
	b.fresh = false
	if fresh {
		forgetDropped(b)
	}
	var err error
	if run, running := b.state.Runs.Current(); running {
		if end, over := sup.ended(b.reg.id, run.Run, b.silent); over {
			_, err = b.decide(end)
		}
	} else if fresh && b.state.Runs.HasProgram() && b.state.Profile.Status == mailbox.Initializing && !sup.isPreparing(b.reg.id) {
		_, err = b.decide(mailbox.PrepareProgram{Status: mailbox.Idle}) // it is made ready for its first message
	}
	if err != nil {
		b.node.log.Warn("the end of a run is not written down", "mailbox", b.reg.id.String(), "error", err)
	}
}

// wasSilent reports whether the run in an agent's log began before the node's start, and has no known output.
func wasSilent(n *Node, s *mailbox.State) bool {
	run, running := s.Runs.Current()
	if !running {
		return false
	}
	if r := n.supervisor.currentRun(s.ID); r != nil && r.id == run.Run {
		return false
	}
	newest, _, err := (&Agent{node: n, id: s.ID}).Output().Latest(n.life, 1)
	return err == nil && (len(newest) == 0 || newest[0].Run != run.Run)
}

// stopRun decides on a command that ends the current run, and stops the program once that is durable.
func stopRun(b *mailboxActor, c mailbox.Command) (*run, error) {
	running, any := b.state.Runs.Current()
	if _, err := b.decide(c); err != nil || !any {
		return nil, err
	}
	r := b.node.supervisor.currentRun(b.reg.id)
	if r == nil || r.id != running.Run {
		return nil, nil
	}
	b.release(func(lost error) {
		if lost == nil {
			r.stop(errStopped)
		}
	})
	return r, nil
}

// publishStatus updates the directory and notifies the waiters for the agent's finish, once the state is durable.
func (b *mailboxActor) publishStatus(before uint64) {
	if b.state.ProfileVersion() == before {
		return
	}
	shown := b.shown
	var finished []*waiter[capabilities.ID, result[view.Finish]]
	if status, over := b.state.Finish(); over {
		finished = b.node.finished.take(b.reg.id)
		for _, f := range finished {
			defer b.release(func(lost error) { f.put(result[view.Finish]{view.FinishOf(status, shown), lost}) })
		}
	}
	b.release(func(lost error) {
		if lost == nil {
			b.node.directory.put(shown)
		}
	})
}

// startNextRun has a mailbox begin its program's next run, if there is one to begin. Then is called afterwards, with an
// error if the mailbox could not be read.
type startNextRun struct{ then func(error) }

func (m startNextRun) handle(b *mailboxActor) {
	b.startNextRun()
	m.then(nil)
}

func (m startNextRun) fail(err error) { m.then(err) }

// recordRun has a mailbox record a result of its program, such as the end of a run. Then is called when that is durable,
// or was lost.
type recordRun struct {
	node    *Node
	agent   capabilities.ID
	what    string
	command mailbox.Command
	then    func()
}

func (m *recordRun) handle(b *mailboxActor) {
	if _, err := b.decide(m.command); err != nil {
		m.report(err)
	}
	b.release(func(error) { m.then() })
}

func (m *recordRun) fail(err error) {
	m.report(err)
	resumeLater(m.node, m.agent, err)
	m.then()
}

func (m *recordRun) report(err error) {
	m.node.log.Error(m.what+" is not written down", "mailbox", m.agent.String(), "error", err)
}

// startProgram has a new agent's program get ready. Unless it is to wait for a message, it begins its first run.
type startProgram struct{ wait bool }

func (m startProgram) handle(b *mailboxActor) { prepareOrRun(b, m.wait) }
func (startProgram) fail(error)               {}

// Interrupt ends the run of an agent's program, and what it was asking. It returns when the program has ended. The
// agent a is its host, its maker, or the agent itself.
func (as Agents) Interrupt(ctx context.Context, agent *Agent) error {
	stopped, err := call(ctx, agent, interruptRun{by: as.agent.id})
	if err != nil {
		return err
	}
	return stopped.wait(ctx, as.agent.node)
}

// Archive puts an agent out of use, with what it does and asks. Its log stays. It returns when nothing of its program is
// left. The agent a is its host or its maker.
func (as Agents) Archive(ctx context.Context, agent *Agent) error {
	stopped, err := call(ctx, agent, archiveAgent{by: as.agent.id})
	if err != nil {
		return err
	}
	left := agent.node.supervisor.terminate(agent.id)
	if err := stopped.wait(ctx, as.agent.node); err != nil {
		return err
	}
	if err := errors.Join(LeasesOf(agent).EndAll(ctx), leaveTeams(ctx, agent)); err != nil {
		return err
	}
	return awaitClosed(ctx, as.agent.node, left)
}

// interruptRun ends the current run, on behalf of an agent. It returns the run that its program still has to end, or nil.
type interruptRun struct{ by capabilities.ID }

func (m interruptRun) handle(b *mailboxActor) (*run, error) {
	if m.by != b.reg.id && !b.state.Profile.ManagedBy(m.by) {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host interrupts it")
	}
	return stopRun(b, mailbox.InterruptRun{By: m.by, Note: "the run was interrupted", Also: b.node.supervisor.formsOfRun(b.reg.id)})
}

// Hold has the program of an agent be started for no message until it is let go again. With held it ends the run that is under
// way, and returns when the program has ended. The agent a is its host, its maker, or the agent itself.
func (as Agents) Hold(ctx context.Context, agent *Agent, held bool) error {
	stopped, err := call(ctx, agent, holdRuns{by: as.agent.id, held: held})
	if err != nil {
		return err
	}
	return stopped.wait(ctx, as.agent.node)
}

// holdRuns holds the agent's runs or lets them go. With held it ends the current one, as interruptRun does.
type holdRuns struct {
	by   capabilities.ID
	held bool
}

func (m holdRuns) handle(b *mailboxActor) (*run, error) {
	if m.by != b.reg.id && !b.state.Profile.ManagedBy(m.by) {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host stops and starts it")
	}
	if !m.held {
		_, err := b.decide(mailbox.HoldRuns{InterruptRun: mailbox.InterruptRun{By: m.by}})
		return nil, err
	}
	return stopRun(b, mailbox.HoldRuns{InterruptRun: mailbox.InterruptRun{By: m.by, Note: "the agent was stopped", Also: b.node.supervisor.formsOfRun(b.reg.id)}, Held: true})
}

// archiveAgent archives the agent, and ends its run as interruptRun does.
type archiveAgent struct{ by capabilities.ID }

func (m archiveAgent) handle(b *mailboxActor) (*run, error) {
	return stopRun(b, mailbox.ArchiveAgent{By: m.by})
}

// heldFile is the name of the file in the state folder by which the node starts no programs.
const heldFile = "programs-held"

// HoldPrograms has the node of a state folder start no programs until Programs.Start. No node may run in the folder.
func HoldPrograms(folder string) error {
	path := filepath.Join(folder, heldFile)
	if err := os.WriteFile(path, []byte("restored from a backup: parley node programs start\n"), 0o600); err != nil {
		return fmt.Errorf("hold the programs: %w", err)
	}
	return syncAll(path, folder)
}

// syncAll sees to it that files and folders are on disk.
func syncAll(paths ...string) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// areHeld reports whether the programs of the node in a state folder are held.
func areHeld(folder string) (bool, error) {
	_, err := os.Lstat(filepath.Join(folder, heldFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether programs are held: %w", err)
	}
	return true, nil
}

func errHeld() error {
	return parley.Refuse(parley.NotPermitted, "the node was restored from a backup, and starts no programs yet").
		WithHint("parley node programs start, when nothing else runs as this node")
}

// Defaults returns what holds for all programs of the node.
func (ps Programs) Defaults() ProgramDefaults { return ps.node.o.Programs }

// Held reports whether the node starts no programs until Start.
func (ps Programs) Held() bool { return ps.node.supervisor.isHeld() }

// Start lets a restored node start its programs, for queued messages and from now on.
func (ps Programs) Start(ctx context.Context) error {
	err := os.Remove(filepath.Join(ps.node.o.Folder, heldFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = syncAll(ps.node.o.Folder)
	}
	if err != nil {
		return fmt.Errorf("start the programs: %w", err)
	}
	ps.node.supervisor.unhold()
	agents, err := ps.node.Host().Agents().List(ctx, view.AgentFilter{})
	if err != nil {
		return err
	}
	for _, a := range agents {
		if a.Runtime != "" && a.Queued > 0 {
			ps.node.registry.tell(a.ID, 0, startNextRun{then: func(err error) {
				if err != nil {
					ps.node.log.Warn("a program is not started", "mailbox", a.ID.String(), "error", err)
				}
			}})
		}
	}
	return nil
}

func (c *supervisor) isHeld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

func (c *supervisor) unhold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
}

// Programs are the programs of the node's agents.
type Programs struct{ node *Node }

// Programs returns the programs of the node's agents.
func (n *Node) Programs() Programs { return Programs{n} }
