package actors

import (
	"context"
	"maps"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// maxShownText bounds, in characters, what a CutMessage shows of its text.
const maxShownText = 120

// maxShownInput bounds, in characters, what a snapshot shows of a call's input. The form has all of it.
const maxShownInput = 2000

// snapshotOf returns the status of an agent by the state of its mailbox.
func snapshotOf(s *mailbox.State) view.AgentStatus {
	p := s.Profile
	snap := view.AgentStatus{
		ID: s.ID, Title: p.Title, Kind: string(p.Kind), Status: p.Status, Error: p.Error, Labels: maps.Clone(p.Labels), Pending: []view.PendingPermission{},
		Queued: s.Queued(), Asks: int(s.Summary().Open), Created: p.Created, Updated: p.Updated, Node: s.ID.Node,
		Version: s.Version, Host: p.Host, Maker: p.By,
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
		snap.Pending = append(snap.Pending, view.PendingPermission{
			Form: m.ID(), Number: m.Number, Tool: m.Form.Title, Input: string(input[:min(len(input), maxShownInput)]), Asked: m.Form.Date,
		})
	}
	for _, m := range s.Interrupted() {
		text := mailbox.ShowText(m.Posted.Text)
		if shown := []rune(text[:min(len(text), 4*maxShownText)]); len(shown) > maxShownText || len(text) > 4*maxShownText {
			text = strings.ToValidUTF8(string(shown[:min(len(shown), maxShownText)]), "") + "…"
		}
		snap.Cut = append(snap.Cut, view.CutMessage{Message: m.ID(), Number: m.Number, Text: text, At: m.Date()})
	}
	return snap
}

// marked returns a snapshot that says whether the node holds the agent's program.
func (n *Node) marked(s view.AgentStatus) view.AgentStatus {
	s.Held = s.Runtime != "" && n.supervisor.isHeld()
	return s
}

// Status returns the status of the agent, as it is on disk.
func (a *Agent) Status(ctx context.Context) (view.AgentStatus, error) {
	return query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (view.AgentStatus, error) { return snapshotOf(s), nil })
}

// Seen returns the status of another agent as a may see it.
func (a *Agent) Seen(ctx context.Context, s view.AgentStatus) (view.AgentStatus, error) {
	name, err := query(ctx, a, func(st *mailbox.State, _ capabilities.Time) (string, error) { return st.NameOf(s.ID), nil })
	return a.node.marked(s).For(a.id, name), err
}

// MayLookInto refuses with NOT_PERMITTED an agent that is neither another one's host nor its maker nor that one itself.
func (a *Agent) MayLookInto(ctx context.Context, agent *Agent) error {
	_, err := query(ctx, agent, func(s *mailbox.State, _ capabilities.Time) (none, error) {
		if a.id == agent.id || s.RuledBy(a.id) {
			return none{}, nil
		}
		return none{}, parley.Refuse(parley.NotPermitted, "that is for the agent itself, its host and its maker")
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
