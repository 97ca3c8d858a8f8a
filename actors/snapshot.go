package actors

import (
	"context"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/mailbox"
)

// Snapshot says how an agent is: what it is called, what it does, and which calls it waits for permission to make.
type Snapshot struct {
	ID      capabilities.ID     `json:"id"`
	Title   string              `json:"title"`
	Name    string              `json:"name,omitempty"` // the reader's name for it
	Kind    string              `json:"kind"`           // host or guest
	Status  string              `json:"status"`         // initializing, idle, running, error, closed
	Error   string              `json:"error,omitempty"`
	Labels  map[string]string   `json:"labels"`
	Pending []PendingPermission `json:"pendingPermissions"`
	Queued  int                 `json:"queued"`                // messages that wait for its program
	Cut     []CutMessage        `json:"interrupted,omitempty"` // the newest messages whose runs were interrupted, oldest first
	Asks    int                 `json:"openForms"`             // forms that it asked and that are open
	Runtime string              `json:"runtime,omitempty"`     // exec or acp, if it has a program
	User    string              `json:"user,omitempty"`        // that the program runs as, if one is named for it
	Wrap    []string            `json:"wrap,omitempty"`        // words before the program's command, if it has its own
	Held    bool                `json:"held,omitempty"`        // the node was restored, and does not start the program yet
	Policy  string              `json:"policy,omitempty"`
	Created capabilities.Time   `json:"createdAt"`
	Updated capabilities.Time   `json:"updatedAt"`
	Node    capabilities.NodeID `json:"node"`

	version  uint64          // of the mailbox, when it was so
	host, by capabilities.ID // who rule the agent
}

// PendingPermission is a call that an agent asks whether it may make.
type PendingPermission struct {
	Form   capabilities.ID   `json:"form"`
	Number uint64            `json:"number"` // in the agent's mailbox
	Tool   string            `json:"tool"`
	Input  string            `json:"input"` // a JSON document; cut short in a list
	Asked  capabilities.Time `json:"askedAt"`
}

// CutMessage is a message for which an agent's program ran when its node ended, so that the run did as well. It is not run
// for again. It is left out once the agent has dismissed it.
type CutMessage struct {
	Message capabilities.ID   `json:"message"`
	Number  uint64            `json:"number"` // in the agent's mailbox
	Text    string            `json:"text"`   // cut short
	At      capabilities.Time `json:"at"`     // when it was sent
}

// maxShownText bounds, in characters, what a CutMessage shows of its text.
const maxShownText = 120

// maxShownInput bounds, in characters, what a snapshot shows of a call's input. The form has all of it.
const maxShownInput = 2000

// snapshotOf says how an agent is by its mailbox's state.
func snapshotOf(s *mailbox.State) Snapshot {
	p := s.Profile
	snap := Snapshot{
		ID: s.ID, Title: p.Title, Kind: string(p.Kind), Status: p.Status, Error: p.Error, Labels: maps.Clone(p.Labels), Pending: []PendingPermission{},
		Queued: s.Queued(), Asks: int(s.Summary().Open), Created: p.Created, Updated: p.Updated, Node: s.ID.Node,
		version: s.Version, host: p.Host, by: p.By,
	}
	if snap.Labels == nil {
		snap.Labels = map[string]string{}
	}
	if s.HasProgram() {
		program := s.Program()
		snap.Runtime, snap.User, snap.Wrap = program.Runtime, program.User, program.Wrap
	}
	if policy := s.Policy(); policy != mailbox.AskOnMiss {
		snap.Policy = policy
	}
	for _, m := range s.Approvals() {
		input := []rune(m.Form.Description)
		snap.Pending = append(snap.Pending, PendingPermission{
			Form: m.ID(), Number: m.Number, Tool: m.Form.Title, Input: string(input[:min(len(input), maxShownInput)]), Asked: m.Form.Date,
		})
	}
	for _, m := range s.Interrupted() {
		text := mailbox.ShowText(m.Posted.Text)
		if shown := []rune(text[:min(len(text), 4*maxShownText)]); len(shown) > maxShownText || len(text) > 4*maxShownText {
			text = strings.ToValidUTF8(string(shown[:min(len(shown), maxShownText)]), "") + "…"
		}
		snap.Cut = append(snap.Cut, CutMessage{Message: m.ID(), Number: m.Number, Text: text, At: m.Date()})
	}
	return snap
}

// marked returns a snapshot that says whether the node holds the agent's program.
func (n *Node) marked(s Snapshot) Snapshot {
	s.Held = s.Runtime != "" && n.supervisor.isHeld()
	return s
}

// matches reports whether a filter picks the agent.
func (s Snapshot) matches(f Filter) bool {
	for k, v := range f.Labels {
		if have, ok := s.Labels[k]; !ok || have != v {
			return false
		}
	}
	if len(f.Statuses) == 0 {
		return s.Status != mailbox.Closed
	}
	return slices.Contains(f.Statuses, s.Status)
}

// to gives the snapshot as an agent may see it, by the name that it has for it: what the calls are that an agent waits
// to make, and what went wrong, is for itself, its host and its maker.
func (s Snapshot) to(reader capabilities.ID, name string) Snapshot {
	s.Name = name
	if reader == s.ID || reader == s.host || reader == s.by {
		return s
	}
	s.Error, s.Cut, s.User, s.Wrap, s.Pending = "", nil, "", nil, slices.Clone(s.Pending)
	for i := range s.Pending {
		s.Pending[i].Tool, s.Pending[i].Input = "", ""
	}
	return s
}

// Filter picks agents. The zero value picks all that are not archived.
type Filter struct {
	Labels   map[string]string `json:"labels,omitempty"`   // all of them
	Statuses []string          `json:"statuses,omitempty"` // any of them; default: all but closed
}

// Snapshot says how the agent is, as things are on disk.
func (a *Agent) Snapshot(ctx context.Context) (Snapshot, error) {
	return visitFor(ctx, a, func(b *mailboxActor) (Snapshot, error) { return snapshotOf(b.state), nil })
}

// Seen gives the snapshot of another agent as a may see it.
func (a *Agent) Seen(ctx context.Context, s Snapshot) (Snapshot, error) {
	name, err := visitFor(ctx, a, func(b *mailboxActor) (string, error) { return b.state.NameOf(s.ID), nil })
	return a.node.marked(s).to(a.id, name), err
}

// MayLookInto refuses with NOT_PERMITTED an agent that is neither another one's host nor its maker nor that one itself.
func (a *Agent) MayLookInto(ctx context.Context, agent *Agent) error {
	_, err := visitFor(ctx, agent, func(b *mailboxActor) (struct{}, error) {
		if a.id == agent.id || b.state.RuledBy(a.id) {
			return struct{}{}, nil
		}
		return struct{}{}, parley.Refuse(parley.NotPermitted, "that is for the agent itself, its host and its maker")
	})
	return err
}

// Report says what the agent, which some client serves, does now.
func (a *Agent) Report(ctx context.Context, status, problem string) error {
	return a.do(ctx, mailbox.ReportStatus{Status: status, Error: problem})
}

// Describe replaces what the agent is known by. A nil title or labels stays as it is.
func (a *Agent) Describe(ctx context.Context, title *string, labels map[string]string) error {
	return a.do(ctx, mailbox.UpdateAgent{Title: title, Labels: labels})
}

// SetPolicy says what becomes of an agent's calls that need permission. The agent a is its host.
func (a *Agent) SetPolicy(ctx context.Context, agent *Agent, policy string) error {
	return agent.do(ctx, mailbox.SetPolicy{Policy: policy, By: a.id})
}

// Interrupt ends the run of an agent's program, and what it was asking. It returns when the program has ended. The
// agent a is its host, its maker, or the agent itself.
func (a *Agent) Interrupt(ctx context.Context, agent *Agent) error {
	stopped, err := visitFor(ctx, agent, func(b *mailboxActor) (*run, error) {
		if a.id != agent.id && !b.state.RuledBy(a.id) {
			return nil, parley.Refuse(parley.NotPermitted, "only the agent's host interrupts it")
		}
		return b.stopRun(mailbox.InterruptRun{Note: "the run was interrupted", Also: b.node.supervisor.formsOfRun(b.reg.id)})
	})
	if err != nil {
		return err
	}
	return stopped.wait(ctx)
}

// Archive puts an agent out of use, with what it does and asks. Its log stays. It returns when nothing of its program is
// left. The agent a is its host or its maker.
func (a *Agent) Archive(ctx context.Context, agent *Agent) error {
	stopped, err := visitFor(ctx, agent, func(b *mailboxActor) (*run, error) { return b.stopRun(mailbox.ArchiveAgent{By: a.id}) })
	if err != nil {
		return err
	}
	left := agent.node.supervisor.terminate(agent.id)
	if err := stopped.wait(ctx); err != nil {
		return err
	}
	return awaitClosed(ctx, left)
}
