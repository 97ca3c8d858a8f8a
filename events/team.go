package events

import "parley/capabilities"

// TeamMade makes a team, in the mailbox of the host whose agents are its members. Team is the agent to which mail for all is sent.
type TeamMade struct {
	Team capabilities.ID `json:"team"`
	Name string          `json:"name"`
}

// TeamMemberSet adds an agent to a team or removes it. The sessions of a coding agent are in the teams of their address. Grants are
// those by which a new member reaches the others and they reach it. They are revoked when it leaves.
type TeamMemberSet struct {
	Team   capabilities.ID `json:"team"`
	Agent  capabilities.ID `json:"agent"`
	In     bool            `json:"in,omitempty"`
	Grants []TeamGrant     `json:"grants,omitempty"`
}

// TeamGrant is a grant of the host's by which an agent of a team reaches another.
type TeamGrant struct {
	Grant  capabilities.ID `json:"grant"`
	To     capabilities.ID `json:"to"`
	Target capabilities.ID `json:"target"`
}

// TeamEnded ends a team, whose members have left.
type TeamEnded struct {
	Team capabilities.ID `json:"team"`
}
