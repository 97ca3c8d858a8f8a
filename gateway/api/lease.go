package api

import "parley/actors/view"

// LeaseRequest asks for a lease on files or names: of the agents of the same host that are in no team, or of a team. A pattern is of
// files, with * and ? for some and for one character of a name and ** for any number of folders, or a name with its kind, as in
// port:3000. What is below a match is covered too. The lease ends with TTL, with the agent's session, or when it is released. The
// same request again renews it. It is refused with LEASED while another agent has a lease that overlaps, unless it waits.
type LeaseRequest struct {
	Acting
	Patterns []string `json:"patterns"`         // 1 to 16
	Folder   string   `json:"folder,omitempty"` // an absolute path, to which patterns of files are relative; "" for the one that a coding agent works in
	Team     string   `json:"team,omitempty"`   // "" for the team that the agent is in, if it is in one
	Shared   bool     `json:"shared,omitempty"` // others may have a shared one at the same time
	For      string   `json:"for,omitempty"`    // what for: one line of 200 bytes at most
	TTLMs    int64    `json:"ttlMs,omitempty"`  // default 1,800,000: half an hour; at most a day
	WaitMs   int64    `json:"waitMs,omitempty"` // it waits in the queue for so long, at most a day; the response comes at once, and await_lease tells. 0: not at all
}

// AwaitLeaseRequest waits until a lease of the agent's is held, or has ended. When WaitMs has passed before, its state is waiting:
// call again.
type AwaitLeaseRequest struct {
	Acting
	Lease  uint64 `json:"lease"`
	WaitMs *int64 `json:"waitMs,omitempty"` // default 25,000, at most 50,000
}

// RenewLeaseRequest has a lease that the agent holds end after another time from now.
type RenewLeaseRequest struct {
	Acting
	Lease uint64 `json:"lease"`
	TTLMs int64  `json:"ttlMs,omitempty"` // default 1,800,000
}

// ReleaseLeaseRequest ends a lease of the agent's, or its wait for one. The host breaks that of any agent.
type ReleaseLeaseRequest struct {
	Acting
	Lease uint64 `json:"lease"`
}

// ListLeasesRequest lists the agent's leases, and those by which others keep it from writing. The host sees all.
type ListLeasesRequest struct{ Acting }

// A hook that is about to let a call write files asks in its registration whether somebody else has a lease on one of them.

// Writes are the files that a call of a coding agent would write, as absolute paths with slashes, each under all names by which
// somebody may know it. Of a command line they are what its words name; in trees * and ? stand for what a shell puts there.
type Writes struct {
	Files []string `json:"files,omitempty"`
	Trees []string `json:"trees,omitempty"` // it changes all that is below
	Maybe []string `json:"maybe,omitempty"` // it may change something there, or below
	More  bool     `json:"more,omitempty"`  // there are more than fit
}

// LeasedFile is a file on which somebody else has a lease.
type LeasedFile struct {
	File  string     `json:"file"`            // "" if the call has too many to look at
	Maybe bool       `json:"maybe,omitempty"` // it is not known whether the call changes it
	Lease view.Lease `json:"lease"`
}

// LeaseNews are the leases of others on files of the folder that a session works in, if they are others than when it was last told.
type LeaseNews struct {
	Leases []view.Lease `json:"leases,omitempty"` // the first of them
	More   int          `json:"more,omitempty"`
}
