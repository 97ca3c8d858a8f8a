package client

import (
	"context"
	"time"

	"parley/actors/view"
	"parley/gateway/api"
)

// Lease is a claim of an agent on files or names.
type Lease = view.Lease

// LeaseOptions say what a lease is like.
type LeaseOptions struct {
	Folder string        // an absolute path, to which patterns of files are relative
	Team   string        // "" for the team that the agent is in, if it is in one
	Shared bool          // others may have a shared one at the same time
	For    string        // what for: one line of 200 bytes at most
	TTL    time.Duration // 0 for half an hour
	Wait   time.Duration // how long it waits for others to end, at most; 0 for not at all
}

// Leases are the leases as the agent asks for them and sees them.
type Leases struct{ c *Client }

// LeasesOf returns the leases as the agent of a client asks for them and sees them.
func LeasesOf(c *Client) Leases { return Leases{c} }

// Ask asks for a lease on files or names. The same request again renews it. While another agent has one that overlaps, it refuses with
// LEASED; with Wait the lease waits in the queue, and Await tells when it is held.
func (l Leases) Ask(ctx context.Context, patterns []string, o LeaseOptions) (Lease, error) {
	return get[Lease](ctx, l.c, "lease", api.LeaseRequest{
		Patterns: patterns, Folder: o.Folder, Team: o.Team, Shared: o.Shared, For: o.For, TTLMs: o.TTL.Milliseconds(), WaitMs: o.Wait.Milliseconds(),
	})
}

// Await blocks until a lease of the agent's is held, or has ended, which its state says then.
func (l Leases) Await(ctx context.Context, number uint64) (Lease, error) {
	for {
		now, err := get[Lease](ctx, l.c, "await_lease", api.AwaitLeaseRequest{Lease: number})
		if err != nil || now.State != view.LeaseWaiting {
			return now, err
		}
	}
}

// Renew has a lease that the agent holds end after another time from now; 0 is half an hour.
func (l Leases) Renew(ctx context.Context, number uint64, ttl time.Duration) (Lease, error) {
	return get[Lease](ctx, l.c, "renew_lease", api.RenewLeaseRequest{Lease: number, TTLMs: ttl.Milliseconds()})
}

// Release ends a lease of the agent's, or its wait for one. The host breaks that of any agent.
func (l Leases) Release(ctx context.Context, number uint64) error {
	return l.c.Call(ctx, "release_lease", api.ReleaseLeaseRequest{Lease: number}, nil)
}

// List returns the agent's leases, and those by which others keep it from writing, by their numbers. The host sees all.
func (l Leases) List(ctx context.Context) ([]Lease, error) {
	got, err := get[view.Leases](ctx, l.c, "list_leases", api.ListLeasesRequest{})
	return got.Leases, err
}

// Team is a team of agents of one host.
type Team = view.Team

// TeamsOf returns the teams that the agent of a client is in, and who is there. The host sees all.
func TeamsOf(ctx context.Context, c *Client) ([]Team, error) {
	got, err := get[view.Teams](ctx, c, "list_teams", api.ListTeamsRequest{})
	return got.Teams, err
}

// SetTeam adds agents to a team of the host's, which it makes if there is none with the name, and removes others.
func SetTeam(ctx context.Context, c *Client, name string, add, remove []string) error {
	return c.Call(ctx, "set_team", api.SetTeamRequest{Team: name, Add: add, Remove: remove}, nil)
}
