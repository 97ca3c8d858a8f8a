package api

import (
	"parley"
	"parley/actors/view"
	"parley/capabilities"
)

// NodeRequest is a request without parameters to the whole node.
type NodeRequest struct {
	Acting
}

// StatusResponse has the status of a node.
type StatusResponse struct {
	Node      capabilities.NodeID `json:"node"`
	Name      string              `json:"name"`
	PID       int                 `json:"pid"`
	Listen    string              `json:"listen"` // the TCP address, or "off"
	Version   string              `json:"version"`
	Agents    int                 `json:"agents"`
	OpenForms int                 `json:"openForms"`
	Journal   view.JournalState   `json:"journal"`
	TLSCert   string              `json:"tlsCert,omitempty"`   // file with the certificate of the TCP address
	TLSKey    string              `json:"tlsKey,omitempty"`    // and its key
	PlainHTTP bool                `json:"plainHTTP,omitempty"` // HTTP in the clear is served, also beyond loopback
	LogLevel  string              `json:"logLevel"`            // the least level that is logged
	External  bool                `json:"external,omitempty"`  // its journal is in another NATS system
	Service   string              `json:"service,omitempty"`   // the NATS system whose clients it serves too
	Problem   *parley.Error       `json:"problem,omitempty"`

	A2ANetwork  string `json:"a2aNetwork,omitempty"`  // the nearest in which receivers of A2A's push may be; "" is public
	PeerListen  string `json:"peerListen"`            // the address for other nodes, or ""
	PeerAddress string `json:"peerAddress,omitempty"` // the address that other nodes are given instead
	Peers       Peers  `json:"peers"`

	Limits    []LimitState `json:"limits"`              // the use of each limit
	LimitsSet string       `json:"limitsSet,omitempty"` // the limits that were set, as for --limit

	Quotas   view.NodeQuotas `json:"quotas"`
	Programs ProgramsStatus  `json:"programs,omitzero"`
}

// ProgramsStatus has the settings for all programs of the node.
type ProgramsStatus struct {
	Held        bool     `json:"held,omitempty"`        // the node was restored, and starts no programs yet
	Environment []string `json:"environment,omitempty"` // names of the node's variables that programs get beside the usual ones
	User        string   `json:"user,omitempty"`        // that programs run as; "" is the node's own
	Wrap        []string `json:"wrap,omitempty"`        // words before their commands
}

// VerifyResponse has the size of a log that was verified. Archived is the last commit of its archive, 0 if there is none.
// Elsewhere has the first commits of segments that are not here; these were not read.
type VerifyResponse struct {
	Commits   uint64   `json:"commits"`
	Events    uint64   `json:"events"`
	Mailboxes int      `json:"mailboxes"`
	Archived  uint64   `json:"archived,omitempty"`
	Elsewhere []uint64 `json:"elsewhere,omitempty"`
	Unmarked  bool     `json:"unmarked,omitempty"` // the high-water mark was missing at the start: a loss at the end would not be noticed

	Files   int      `json:"files,omitempty"`   // that messages carry, and that are whole
	Damaged []string `json:"damaged,omitempty"` // for each file that is damaged, what is wrong with it
}

// StopResponse has the process that is stopping. It ends when all calls under way have ended.
type StopResponse struct {
	PID int `json:"pid"`
}

// InviteRequest makes an invitation. The caller will hold the host of the node that accepts it under Name.
type InviteRequest struct {
	Acting
	Name    string            `json:"name"`
	Expires capabilities.Time `json:"expires,omitzero"` // default: a day from now
}

// ListInvitationsRequest lists the open invitations, oldest first.
type ListInvitationsRequest struct {
	Acting
	Paging
}

// ListInvitationsResponse has the invitations, without their secrets.
type ListInvitationsResponse struct {
	Invitations []view.Invitation `json:"invitations"`
	Paged
}

// AcceptRequest accepts an invitation of another node.
type AcceptRequest struct {
	Acting
	Name    string `json:"name"`
	Locator string `json:"locator"`
}

// ListNodesRequest lists the other nodes that the node knows.
type ListNodesRequest struct {
	Acting
	Paging
}

// ListNodesResponse has the nodes, in the order in which they became known.
type ListNodesResponse struct {
	Nodes []view.Peer `json:"nodes"`
	Paged
}

// Peers counts the other nodes that the node knows, and the traffic with them.
type Peers struct {
	Known     int          `json:"known"`
	Reachable int          `json:"reachable"`
	Waiting   int          `json:"waiting"` // outbox items that have not arrived
	Traffic   view.Traffic `json:"traffic"`
}
