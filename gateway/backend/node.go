package backend

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"parley"
	"parley/actors"
	"parley/gateway/api"
	"parley/persistence"
)

func (b *Backend) programs() api.ProgramsStatus {
	d := b.node.Programs().Defaults()
	return api.ProgramsStatus{Held: b.node.Programs().Held(), Environment: d.Environment, User: d.User, Wrap: d.Wrap}
}

func startPrograms(ctx context.Context, b *Backend, _ *principal, _ api.NodeRequest) (api.Done, error) {
	return api.Done{}, b.node.Programs().Start(ctx)
}

// status reports the state of the node. If other nodes, quotas or a mailbox cannot be read, it reports that as the problem.
func status(ctx context.Context, b *Backend, _ *principal, _ api.NodeRequest) (api.StatusResponse, error) {
	st := b.node.State()
	known, err := b.node.Nodes(ctx)
	if err != nil && st.Problem == nil {
		st.Problem = api.Shown(err)
	}
	quotas, err := b.node.Quotas(ctx)
	if err != nil && st.Problem == nil {
		st.Problem = api.Shown(err)
	}
	if bad := actors.PutAside(b.node); bad != nil && st.Problem == nil {
		st.Problem = bad
	}
	r := api.StatusResponse{
		Quotas: quotas,
		Node:   st.Node, Name: st.Name, PID: os.Getpid(), LogLevel: b.logLevel(),
		Agents: st.Agents, OpenForms: st.OpenForms, Journal: st.Journal, Problem: st.Problem,
		Programs:   b.programs(),
		PeerListen: b.node.PeerAddress(), PeerAddress: b.node.PublicAddress(), Peers: CountPeers(known, b.node.Traffic()),
		Limits: b.Limits(), LimitsSet: b.ledger.limits.String(),
	}
	b.server.Describe(&r)
	return r, nil
}

// logLevel returns the lowest level that is logged.
func (b *Backend) logLevel() string {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if b.log.Enabled(context.Background(), l) {
			return strings.ToLower(l.String())
		}
	}
	return strings.ToLower(slog.LevelError.String())
}

// Verified returns the journal's report as a response.
func Verified(r persistence.Report) api.VerifyResponse {
	v := api.VerifyResponse{Commits: r.Commits, Events: r.Events, Mailboxes: r.Mailboxes, Archived: r.Archived, Unmarked: r.Unmarked, Files: r.Files}
	for _, err := range r.Damaged {
		v.Damaged = append(v.Damaged, parley.AsError(err).Message)
	}
	for _, s := range r.Elsewhere {
		v.Elsewhere = append(v.Elsewhere, s.First)
	}
	return v
}

func verify(ctx context.Context, b *Backend, _ *principal, _ api.NodeRequest) (api.VerifyResponse, error) {
	report, err := b.node.Verify(ctx)
	return Verified(report), err
}

func stop(_ context.Context, b *Backend, _ *principal, _ api.NodeRequest) (api.StopResponse, error) {
	b.server.Stop()
	return api.StopResponse{PID: os.Getpid()}, nil
}
