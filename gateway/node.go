package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"parley/gateway/api"
	"parley/persistence"
)

func (s *Server) programs() api.ProgramsStatus {
	d := s.node.ProgramDefaults()
	return api.ProgramsStatus{Held: s.node.HoldsPrograms(), Environment: d.Environment, User: d.User, Wrap: d.Wrap}
}

func startPrograms(ctx context.Context, s *Server, _ api.NodeRequest) (api.Done, error) {
	return api.Done{}, s.node.StartPrograms(ctx)
}

// status says how the node is. That others cannot be told of is one more thing to say, and no reason to say nothing.
func status(ctx context.Context, s *Server, _ api.NodeRequest) (api.StatusResponse, error) {
	st := s.node.State()
	known, err := s.node.Nodes(ctx)
	if err != nil && st.Problem == nil {
		st.Problem = shown(err)
	}
	quotas, err := s.node.Quotas(ctx)
	if err != nil && st.Problem == nil {
		st.Problem = shown(err)
	}
	return api.StatusResponse{
		Quotas: quotas,
		Node:   st.Node, Name: st.Name, PID: os.Getpid(), Listen: s.Address(), LogLevel: s.logLevel(), Version: s.version,
		Agents: st.Agents, OpenForms: st.OpenForms, Journal: st.Journal, External: s.external, Service: s.serves(), Problem: st.Problem,
		TLSCert: s.tls.Cert, TLSKey: s.tls.Key, PlainHTTP: s.tls.Plain,
		Programs:   s.programs(),
		PeerListen: s.node.PeerAddress(), PeerAddress: s.node.PublicAddress(), Peers: countPeers(known, s.node.Traffic()),
		Limits: s.limitStates(), LimitsSet: s.ledger.limits.String(),
	}, nil
}

// serves gives the addresses of the NATS system whose clients are served too; "" for none.
func (s *Server) serves() string {
	if s.service == nil {
		return ""
	}
	return s.service.where
}

// logLevel is the least level that the log takes.
func (s *Server) logLevel() string {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if s.log.Enabled(context.Background(), l) {
			return strings.ToLower(l.String())
		}
	}
	return strings.ToLower(slog.LevelError.String())
}

// Verified puts the journal's report into a response.
func Verified(r persistence.Report) api.VerifyResponse {
	return api.VerifyResponse{Commits: uint64(r.Commits), Events: uint64(r.Events), Mailboxes: int(r.Mailboxes)}
}

func verify(ctx context.Context, s *Server, _ api.NodeRequest) (api.VerifyResponse, error) {
	report, err := s.node.Verify(ctx)
	return Verified(report), err
}

func stop(_ context.Context, s *Server, _ api.NodeRequest) (api.StopResponse, error) {
	s.stopOnce.Do(func() { close(s.stopped) })
	return api.StopResponse{PID: os.Getpid()}, nil
}

// TreePath is where the node's socket has the tree of the node's actors, as a JSON array of view.ActorState. It is for
// whoever looks into a node, and no operation of the API.
const TreePath = "/debug/actors"

// serveTree writes the tree of the node's actors.
func (s *Server) serveTree(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.node.Tree()) // a reader that has gone away does not miss it
}
