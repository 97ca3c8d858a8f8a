package events

import "parley/capabilities"

// LeaseAsked adds a lease to the mailbox of its holder's host, which is its home. It is held from then on, unless it waits for
// others to end. Of two exclusive leases that overlap, the one that is held later
// has the greater number.
type LeaseAsked struct {
	Lease    uint64            `json:"lease"`
	Holder   capabilities.ID   `json:"holder"`
	Of       capabilities.ID   `json:"of,omitzero"`   // the address of a holder that is a session
	Team     capabilities.ID   `json:"team,omitzero"` // among whose members it counts; zero for all agents of the host without a team
	Patterns []string          `json:"patterns"`
	Fold     bool              `json:"fold,omitempty"` // the files are where upper and lower case are the same
	Shared   bool              `json:"shared,omitempty"`
	For      string            `json:"for,omitempty"`   // what the holder does with it, in its words
	Length   uint64            `json:"length"`          // milliseconds for which it is held
	Waits    bool              `json:"waits,omitempty"` // it is not held yet
	Until    capabilities.Time `json:"until"`           // it ends; one that waits waits no longer
}

// LeaseGranted has a lease that waited be held.
type LeaseGranted struct {
	Lease uint64            `json:"lease"`
	Until capabilities.Time `json:"until"`
}

// LeaseRenewed has a lease that is held end later, or earlier.
type LeaseRenewed struct {
	Lease uint64            `json:"lease"`
	Until capabilities.Time `json:"until"`
}

// LeaseEnded ends a lease, or the wait for it.
type LeaseEnded struct {
	Lease uint64          `json:"lease"`
	Why   LeaseEnd        `json:"why"`
	By    capabilities.ID `json:"by,omitzero"` // of one that was released or broken
}

// LeaseEnd is why a lease has ended.
type LeaseEnd string

// The ends of leases.
const (
	LeaseReleased LeaseEnd = "released" // by its holder
	LeaseExpired  LeaseEnd = "expired"
	LeaseBroken   LeaseEnd = "broken" // by the host
	LeaseLeft     LeaseEnd = "left"   // the holder's session has ended, or the holder is archived or has left the team
)
