package api

import (
	"parley"
	"parley/actors/view"
	"parley/capabilities"
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

// VerifyResponse says that the whole log is whole, and how much it is.
type VerifyResponse struct {
	Commits   uint64 `json:"commits"`
	Events    uint64 `json:"events"`
	Mailboxes int    `json:"mailboxes"`
}

// StopResponse says which process is stopping. It may take until all in flight has ended.
type StopResponse struct {
	PID int `json:"pid"`
}

// InviteRequest asks for an invitation. The host of the node that accepts it will be held under Name.
type InviteRequest struct {
	Acting
	Name    string            `json:"name"`
	Expires capabilities.Time `json:"expires,omitzero"` // default: a day from now
}

// ListInvitationsRequest lists the invitations that are open, oldest first.
type ListInvitationsRequest struct {
	Acting
	Paging
}

// ListInvitationsResponse has them, without their secrets.
type ListInvitationsResponse struct {
	Invitations []view.Invitation `json:"invitations"`
	Paged
}

// AcceptRequest takes up the invitation that another node gave out.
type AcceptRequest struct {
	Acting
	Name    string `json:"name"`
	Locator string `json:"locator"`
}

// ListNodesRequest lists the nodes that this one knows.
type ListNodesRequest struct {
	Acting
	Paging
}

// ListNodesResponse has the nodes that this one knows, in the order in which it came to.
type ListNodesResponse struct {
	Nodes []view.Peer `json:"nodes"`
	Paged
}

// Peers counts the nodes that this one knows, and what went between them and it.
type Peers struct {
	Known     int          `json:"known"`
	Reachable int          `json:"reachable"`
	Waiting   int          `json:"waiting"` // outbox items that have not arrived
	Traffic   view.Traffic `json:"traffic"`
}
