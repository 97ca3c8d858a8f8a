package api

import (
	"parley/actors/view"
	"parley/capabilities"
)

// CreateTokenRequest makes a token for the agent. Without scopes it has read, ask and answer, and reveal unless the
// agent is the node's host. Without a time it never ends.
type CreateTokenRequest struct {
	Acting
	Scopes []string          `json:"scopes,omitempty"`
	Until  capabilities.Time `json:"until,omitzero"`
	Note   string            `json:"note,omitempty"`
}

// ListTokensRequest asks for the agent's tokens.
type ListTokensRequest struct {
	Acting
	Paging
}

// ListTokensResponse has the valid tokens, oldest first, without their secrets.
type ListTokensResponse struct {
	Tokens []view.Token `json:"tokens"`
	Paged
}

// RevokeTokenRequest ends one of the agent's tokens.
type RevokeTokenRequest struct {
	Acting
	Token capabilities.ID `json:"token"`
}

// OpenLinkRequest asks for a link that signs a browser in as the agent.
type OpenLinkRequest struct {
	Acting
}

// OpenLinkResponse has the link. It can be used once, within two minutes.
type OpenLinkResponse struct {
	URL   string            `json:"url"`
	Until capabilities.Time `json:"until"`
}
