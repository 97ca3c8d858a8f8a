package gateway

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/persistence"
)

// NodeRequest is about the whole node.
type NodeRequest struct {
	Acting
}

// StatusResponse says how a node is.
type StatusResponse struct {
	Node      capabilities.NodeID `json:"node"`
	Name      string              `json:"name"`
	PID       int                 `json:"pid"`
	Listen    string              `json:"listen"` // "off", or where it listens besides its socket
	Version   string              `json:"version"`
	Agents    int                 `json:"agents"`
	OpenForms int                 `json:"openForms"`
	Journal   view.JournalState   `json:"journal"`
	TLSCert   string              `json:"tlsCert,omitempty"`   // file with the certificate of that
	TLSKey    string              `json:"tlsKey,omitempty"`    // and its key
	PlainHTTP bool                `json:"plainHTTP,omitempty"` // it is in the clear, also beyond loopback
	LogLevel  string              `json:"logLevel"`            // the least that it logs
	External  bool                `json:"external,omitempty"`  // its journal is in another NATS system
	Service   string              `json:"service,omitempty"`   // the NATS system whose clients it serves too
	Problem   *parley.Error       `json:"problem,omitempty"`

	PeerListen  string `json:"peerListen"`            // where other nodes reach it, or ""
	PeerAddress string `json:"peerAddress,omitempty"` // what they are told instead
	Peers       Peers  `json:"peers"`

	Limits    []LimitState `json:"limits"`              // what is under way, and how much may be
	LimitsSet string       `json:"limitsSet,omitempty"` // those that were set, as --limit takes them

	Quotas   view.NodeQuotas `json:"quotas"`
	Programs ProgramsStatus  `json:"programs,omitzero"`
}

// ProgramsStatus says what holds for all programs of the node.
type ProgramsStatus struct {
	Held        bool     `json:"held,omitempty"`        // the node was restored, and starts none yet
	Environment []string `json:"environment,omitempty"` // names of the node's variables that they get beside the usual ones
	User        string   `json:"user,omitempty"`        // that they run as; "" is the node's own
	Wrap        []string `json:"wrap,omitempty"`        // words before their commands
}

func (s *Server) programs() ProgramsStatus {
	d := s.node.ProgramDefaults()
	return ProgramsStatus{Held: s.node.HoldsPrograms(), Environment: d.Environment, User: d.User, Wrap: d.Wrap}
}

func startPrograms(ctx context.Context, s *Server, _ NodeRequest) (Done, error) {
	return Done{}, s.node.StartPrograms(ctx)
}

// status says how the node is. That others cannot be told of is one more thing to say, and no reason to say nothing.
func status(ctx context.Context, s *Server, _ NodeRequest) (StatusResponse, error) {
	st := s.node.State()
	known, err := s.node.Nodes(ctx)
	if err != nil && st.Problem == nil {
		st.Problem = shown(err)
	}
	quotas, err := s.node.Quotas(ctx)
	if err != nil && st.Problem == nil {
		st.Problem = shown(err)
	}
	return StatusResponse{
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

// VerifyResponse says that the whole log is whole, and how much it is.
type VerifyResponse struct {
	Commits   uint64 `json:"commits"`
	Events    uint64 `json:"events"`
	Mailboxes int    `json:"mailboxes"`
}

// Verified puts the journal's report into a response.
func Verified(r persistence.Report) VerifyResponse {
	return VerifyResponse{Commits: uint64(r.Commits), Events: uint64(r.Events), Mailboxes: int(r.Mailboxes)}
}

func verify(ctx context.Context, s *Server, _ NodeRequest) (VerifyResponse, error) {
	report, err := s.node.Verify(ctx)
	return Verified(report), err
}

// StopResponse says which process is stopping. It may take until all in flight has ended.
type StopResponse struct {
	PID int `json:"pid"`
}

func stop(_ context.Context, s *Server, _ NodeRequest) (StopResponse, error) {
	s.stopOnce.Do(func() { close(s.stopped) })
	return StopResponse{PID: os.Getpid()}, nil
}
