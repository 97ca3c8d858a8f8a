package view

import "parley/capabilities"

// The states of a lease.
const (
	LeaseHeld    = "held"
	LeaseWaiting = "waiting"
	LeaseEnded   = "ended" // in the result of a wait alone
)

// Lease is a claim of an agent on files or names. Files are absolute paths with slashes. The words of For are the holder's.
type Lease struct {
	Lease      uint64            `json:"lease"` // of two exclusive ones that overlap, the one that is held later has the greater number
	Holder     capabilities.ID   `json:"holder,omitzero"`
	HolderName string            `json:"holderName,omitempty"` // the host's name for it
	Title      string            `json:"title,omitempty"`      // the holder's own
	Team       string            `json:"team,omitempty"`       // among whose members it counts; "" for the agents without a team
	Patterns   []string          `json:"patterns"`
	Shared     bool              `json:"shared,omitempty"`
	For        string            `json:"for,omitempty"`
	State      string            `json:"state"`            // held, waiting or ended
	Until      capabilities.Time `json:"until,omitzero"`   // it ends, or waits no longer
	Behind     []uint64          `json:"behind,omitempty"` // of one that waits, the leases that come before it
	Own        bool              `json:"own,omitempty"`    // of the agent that asks
}

// Leases are leases by their numbers.
type Leases struct {
	Leases []Lease `json:"leases"`
}

// Team is a team of agents of one host.
type Team struct {
	Team    string          `json:"team"`  // its name
	Agent   capabilities.ID `json:"agent"` // to which mail for all is sent
	Members []TeamMember    `json:"members"`
}

// TeamMember is an agent of a team, or a session of one. Title and Labels are its own words.
type TeamMember struct {
	Agent  capabilities.ID   `json:"agent"`
	Name   string            `json:"name,omitempty"` // by which it is written to
	Title  string            `json:"title,omitempty"`
	Status string            `json:"status"`
	Of     capabilities.ID   `json:"of,omitzero"` // of a session: the member whose session it is
	Joined capabilities.Time `json:"joined,omitzero"`
	Leases []uint64          `json:"leases,omitempty"` // that it holds or waits for in the team
	Own    bool              `json:"own,omitempty"`    // the agent that asks
}

// Teams are teams, the first made first.
type Teams struct {
	Teams []Team `json:"teams"`
}
