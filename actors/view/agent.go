package view

import (
	"encoding/json"
	"slices"

	"parley"
	"parley/capabilities"
)

// AgentStatus is an agent as it is now: its names, its state, and the calls that it waits for permission to make.
type AgentStatus struct {
	ID      capabilities.ID     `json:"id"`
	Title   string              `json:"title"`
	Name    string              `json:"name,omitempty"` // the viewer's name for it
	Kind    string              `json:"kind"`           // host or guest
	Status  string              `json:"status"`         // initializing, idle, running, error, closed
	State   AgentState          `json:"state"`          // what a person reads: it follows from the rest
	Error   string              `json:"error,omitempty"`
	Labels  map[string]string   `json:"labels"`
	Pending []PendingPermission `json:"pendingPermissions"`
	More    int                 `json:"morePermissions,omitempty"` // calls that it waits for beside Pending, which has the newest
	Queued  int                 `json:"queued"`                    // messages that wait for its program
	Cut     []CutMessage        `json:"interrupted,omitempty"`     // the newest messages whose runs were interrupted, oldest first
	Asks    int                 `json:"openForms"`                 // open forms that it asked
	Runtime string              `json:"runtime,omitempty"`         // exec or acp, if it has a program
	User    string              `json:"user,omitempty"`            // that the program runs as, if one is named for it
	Wrap    []string            `json:"wrap,omitempty"`            // words before the program's command, if it has its own
	Held    bool                `json:"held,omitempty"`            // the node was restored, and does not start the program yet
	Stopped bool                `json:"stopped,omitempty"`         // somebody has stopped it: what waits for its program stays queued until it is started
	Policy  string              `json:"policy,omitempty"`
	Created capabilities.Time   `json:"createdAt"`
	Updated capabilities.Time   `json:"updatedAt"`
	Node    capabilities.NodeID `json:"node"`
	Ended   bool                `json:"ended,omitempty"` // of a closed session: it is not archived, and its mail waits for who resumes it
	Topic   bool                `json:"topic,omitempty"` // it is a topic, which is listed with those
	Of      capabilities.ID     `json:"of,omitzero"`     // for a session of a coding agent: its address, the agent of the folder

	Session string `json:"session,omitempty"` // for such a session: the coding agent's ID for it. It is told of one agent, to its host and maker

	AwayUntil capabilities.Time `json:"awayUntil,omitzero"` // while it is away: the end of that

	// The version of the mailbox at that time, the agent's host and maker, and the beginning of its absence. They are not
	// part of the JSON.
	Version  uint64            `json:"-"`
	Host     capabilities.ID   `json:"-"`
	Maker    capabilities.ID   `json:"-"`
	AwayFrom capabilities.Time `json:"-"`
}

// AgentState is the state of an agent for a person. Each place that shows agents shows this one.
type AgentState string

// The states, in the order of lists.
const (
	AgentWaiting     AgentState = "waiting" // it does nothing else until a call that it asked for is decided
	AgentFailed      AgentState = "error"
	AgentRunning     AgentState = "running"
	AgentIdle        AgentState = "idle"
	AgentStopped     AgentState = "stopped"     // its program is not started until somebody says so
	AgentUnreachable AgentState = "unreachable" // its computer is not reached
	AgentEnded       AgentState = "ended"       // it is archived, or a session that is over
)

// Words returns the state as a person reads it.
func (s AgentState) Words() string {
	switch s {
	case AgentWaiting:
		return "Waiting for you"
	case AgentFailed:
		return "Error"
	case AgentRunning:
		return "Running"
	case AgentIdle:
		return "Idle"
	case AgentStopped:
		return "Stopped"
	case AgentUnreachable:
		return "Not reachable"
	case AgentEnded:
		return "Ended"
	}
	return string(s)
}

// Rank returns the place of the state in lists.
func (s AgentState) Rank() int {
	return slices.Index([]AgentState{AgentWaiting, AgentFailed, AgentRunning, AgentIdle, AgentStopped, AgentUnreachable, AgentEnded}, s)
}

// Settle sets the state from the rest of the status.
func (s *AgentStatus) Settle() {
	switch {
	case s.Status == statusClosed:
		s.State = AgentEnded
	case s.Calls() > 0:
		s.State = AgentWaiting
	case s.Stopped && s.Status != "running":
		s.State = AgentStopped
	case s.Status == "error":
		s.State = AgentFailed
	case s.Held:
		s.State = AgentStopped
	case s.Status == "running" || s.Status == "initializing":
		s.State = AgentRunning
	default:
		s.State = AgentIdle
	}
}

// At returns the status at a time. Its absence is left out if that is over or yet to come.
func (s AgentStatus) At(now capabilities.Time) AgentStatus {
	if now < s.AwayFrom || now >= s.AwayUntil {
		s.AwayUntil = 0
	}
	s.Settle()
	return s
}

// statusClosed is the status of an archived agent.
const statusClosed = "closed"

// For returns the status as a reader may see it, with the reader's name for the agent. Some fields are for the agent
// itself, its host and its maker: calls that wait for permission, the error and the program's user.
func (s AgentStatus) For(reader capabilities.ID, name string) AgentStatus {
	s.Name = name
	if reader == s.ID || reader == s.Host || reader == s.Maker {
		return s
	}
	s.Error, s.Cut, s.User, s.Wrap, s.Pending = "", nil, "", nil, slices.Clone(s.Pending)
	for i := range s.Pending {
		s.Pending[i].Permission = parley.Permission{}
	}
	return s
}

// Calls returns the number of calls that the agent waits for permission to make.
func (s *AgentStatus) Calls() int { return len(s.Pending) + s.More }

// PendingPermission is a call that an agent waits for permission to make.
type PendingPermission struct {
	Form              capabilities.ID   `json:"form"`
	Number            uint64            `json:"number"` // in the agent's mailbox
	parley.Permission                   // without its offers; input and reason are cut short in a list
	Asked             capabilities.Time `json:"askedAt"`
}

// CutMessage is a message for which an agent's program ran when its node ended. The run ended too, and is not repeated.
// The message is left out once the agent has dismissed it.
type CutMessage struct {
	Message capabilities.ID   `json:"message"`
	Number  uint64            `json:"number"` // in the agent's mailbox
	Text    string            `json:"text"`   // cut short
	At      capabilities.Time `json:"at"`     // when it was sent
}

// AgentChange is an agent that has changed, as it is now.
type AgentChange struct {
	Status AgentStatus
	Gone   bool // the filter no longer picks the agent
}

// AgentFilter picks agents. The zero value picks all that are not archived.
type AgentFilter struct {
	Labels   map[string]string `json:"labels,omitempty"`   // all of them
	Statuses []string          `json:"statuses,omitempty"` // any of them; default: all but closed
}

// IsZero reports whether the filter has neither labels nor statuses.
func (f AgentFilter) IsZero() bool { return len(f.Labels) == 0 && len(f.Statuses) == 0 }

// Matches reports whether the filter picks an agent.
func (f AgentFilter) Matches(s AgentStatus) bool {
	for k, v := range f.Labels {
		if have, ok := s.Labels[k]; !ok || have != v {
			return false
		}
	}
	if len(f.Statuses) == 0 {
		return s.Status != statusClosed
	}
	return slices.Contains(f.Statuses, s.Status)
}

// Finish is the state of an agent that has nothing more to do: idle, error, or permission, when somebody must permit a
// call before it goes on. With the status timeout it still had something to do.
type Finish struct {
	Status string      `json:"status"`
	Final  AgentStatus `json:"final"`
	Error  string      `json:"error,omitempty"` // of an agent in error, as Final has it
}

// FinishOf returns the state of an agent with a status.
func FinishOf(status string, final AgentStatus) Finish {
	f := Finish{Status: status, Final: final}
	if status == FinishError {
		f.Error = final.Error
	}
	return f
}

// The statuses of a Finish.
const (
	FinishIdle       = "idle"
	FinishError      = "error"
	FinishPermission = "permission"
	FinishTimeout    = "timeout"
)

// OutputPiece is a piece of the output of an agent's program. Cursor grows from each piece to the next.
type OutputPiece struct {
	Cursor  uint64            `json:"cursor"`
	Run     capabilities.ID   `json:"run"`
	Message capabilities.ID   `json:"message,omitzero"` // what the run was for; zero if for none
	Stream  string            `json:"stream"`           // output, errors, notice
	At      capabilities.Time `json:"at"`
	Text    string            `json:"text"` // it may begin and end within a line
}

// CallLine returns the line of a notice about a tool call: its kind, its command or files, the lines that it changes, and
// its status. It returns "" for a notice that changes nothing in that line. isCall reports whether the piece is such a
// notice.
func (o OutputPiece) CallLine() (line string, isCall bool) {
	var about struct {
		Update string `json:"sessionUpdate"`
		Line   string `json:"parley/line"`
	}
	if o.Stream != "notice" || json.Unmarshal([]byte(o.Text), &about) != nil {
		return "", false
	}
	return about.Line, about.Update == "tool_call" || about.Update == "tool_call_update"
}
