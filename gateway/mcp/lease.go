package mcp

import (
	"context"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// leaseNote says in each result what a lease does.
const leaseNote = "Coding agents are refused to edit what another has leased, also by a command that names it. What scripts and other programs write is not: for them it is a notice."

// leaseResult is a lease of the agent's.
type leaseResult struct {
	Lease    uint64            `json:"lease"`
	State    string            `json:"state"`
	Until    capabilities.Time `json:"until,omitzero"`
	Patterns []string          `json:"patterns"`
	Behind   []uint64          `json:"behind,omitempty"`
	Known    string            `json:"known"`
}

// askLease asks for a lease, and waits a while for one that is in the queue.
func askLease(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Patterns []string `json:"patterns"`
		TTL      *int64   `json:"ttl"`
		For      string   `json:"for"`
		Shared   bool     `json:"shared"`
		Team     string   `json:"team"`
		Wait     int64    `json:"wait"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	var ttl int64
	if arguments.TTL != nil {
		if ttl = *arguments.TTL; ttl < 1 { // 0 would be the default
			return nil, parley.Refuse(parley.InvalidArgument, "ttl %d: a lease is held for 1 to 86400 seconds", ttl)
		}
	}
	request := api.LeaseRequest{
		Patterns: arguments.Patterns, For: arguments.For, Shared: arguments.Shared, Team: arguments.Team, TTLMs: ttl * 1000, WaitMs: arguments.Wait * 1000,
	}
	got, err := api.Lease.Do(ctx, steady{c.agent}, request)
	if err != nil {
		return nil, err
	}
	if got.State == view.LeaseWaiting {
		wait := min(request.WaitMs, 50_000)
		if got, err = api.AwaitLease.Do(ctx, steady{c.agent}, api.AwaitLeaseRequest{Lease: got.Lease, WaitMs: &wait}); err != nil {
			return nil, err
		}
	}
	return leaseResult{got.Lease, got.State, got.Until, got.Patterns, got.Behind, leaseNote}, nil
}

// releaseLease ends a lease of the agent's.
func releaseLease(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Lease uint64 `json:"lease"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	err := api.ReleaseLease.Run(ctx, c.agent, api.ReleaseLeaseRequest{Lease: arguments.Lease})
	return struct {
		Released uint64 `json:"released"`
	}{arguments.Lease}, err
}

// listLeases lists the leases that concern the agent.
func listLeases(ctx context.Context, c *call) (any, error) {
	if err := c.read(&struct{}{}); err != nil {
		return nil, err
	}
	got, err := api.ListLeases.Do(ctx, steady{c.agent}, api.ListLeasesRequest{})
	if err != nil {
		return nil, err
	}
	for i := range got.Leases {
		l := &got.Leases[i]
		l.HolderName, l.Title, l.For, l.Team = sanitize.Line(l.HolderName), sanitize.Line(l.Title), sanitize.Line(l.For), sanitize.Line(l.Team)
		for k, p := range l.Patterns {
			l.Patterns[k] = sanitize.Line(p)
		}
	}
	return struct {
		Leases []view.Lease `json:"leases"`
		Known  string       `json:"known"`
	}{got.Leases, leaseNote}, nil
}

// listTeam lists the teams that the agent is in.
func listTeam(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Team string `json:"team"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	got, err := api.ListTeams.Do(ctx, steady{c.agent}, api.ListTeamsRequest{Team: arguments.Team})
	if err != nil {
		return nil, err
	}
	for i := range got.Teams {
		got.Teams[i].Team = sanitize.Line(got.Teams[i].Team)
		for k := range got.Teams[i].Members {
			m := &got.Teams[i].Members[k]
			m.Name, m.Title = sanitize.Line(m.Name), sanitize.Line(m.Title)
		}
	}
	return got, nil
}
