package web

import (
	"cmp"
	"encoding/json"
	"strings"
)

// notice is a report of a coding agent on its doing, as the Agent Client Protocol has it. The agent may write anything.
type notice struct {
	Kind    string      `json:"sessionUpdate"`
	ID      string      `json:"toolCallId"`
	Title   string      `json:"title"`
	Status  string      `json:"status"`
	Line    string      `json:"parley/line"`
	Text    string      `json:"text"`
	Entries []planEntry `json:"entries"`
}

// planEntry is one step of a plan.
type planEntry struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// Sign returns a character for the status of a step.
func (e planEntry) Sign() string { return signOf(e.Status) }

// State returns the status of a step in words.
func (e planEntry) State() string { return stateOf(e.Status) }

// toolLine is a tool call in a line.
type toolLine struct {
	Line   string
	Status string
}

// Sign returns a character for the status of the call.
func (t toolLine) Sign() string { return signOf(t.Status) }

// State returns the status of the call in words.
func (t toolLine) State() string { return stateOf(t.Status) }

func signOf(status string) string {
	switch status {
	case "completed":
		return "✓"
	case "failed":
		return "✕"
	case "in_progress":
		return "◌"
	}
	return "○"
}

func stateOf(status string) string {
	switch status {
	case "completed":
		return "done"
	case "failed", "pending":
		return status
	case "in_progress":
		return "in progress"
	}
	return "reported"
}

// maxSteps bounds the steps of a plan that are shown.
const maxSteps = 50

// notice adds a report to the activity. It shows a tool call in one line, where it began, and the latest plan of a run.
func (d *drawing) notice(s source) {
	var n notice
	_ = json.Unmarshal([]byte(s.piece.Text), &n) // what is wrong in it is left out
	run := s.piece.Run
	m := moment{Key: s.key, At: s.at, run: run}
	switch n.Kind {
	case "tool_call", "tool_call_update":
		id := run.String() + n.ID
		if at, known := d.tools[id]; known {
			d.done[at].Tool = d.done[at].Tool.with(n)
			return
		}
		d.finish()
		d.tools[id] = len(d.done)
		m.Kind, m.Tool = "tool", toolLine{}.with(n)
	case "plan":
		d.finish()
		if at, known := d.plans[run]; known {
			d.done[at].Plan = nil
		}
		d.plans[run] = len(d.done)
		m.Kind, m.Plan = "plan", n.Entries[:min(len(n.Entries), maxSteps)]
	case "agent_thought_chunk":
		if d.finish(); len(d.done) > 0 {
			if last := &d.done[len(d.done)-1]; last.Kind == "thought" && last.run == run && len(last.Text) < maxBlock {
				last.Text += n.Text
				return
			}
		}
		m.Kind, m.Text = "thought", n.Text
	default:
		return
	}
	d.done = append(d.done, m)
}

// with returns the line after a report on its call. The runtime has put the call into words, with the status behind.
func (t toolLine) with(n notice) toolLine {
	line := n.Line
	if n.Status != "" {
		t.Status = n.Status
		line = strings.TrimSuffix(line, " · "+n.Status)
	}
	t.Line = cmp.Or(line, t.Line, strings.TrimSpace(n.Title), "a tool")
	return t
}
