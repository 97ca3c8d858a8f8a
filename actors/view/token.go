package view

import "parley/capabilities"

// Token is a token or a browser's session as its agent sees it. Text is the secret, which is set only when the token is
// made. Used is when a session was last seen to be used, to within an hour. By is the token by which it was made.
type Token struct {
	ID      capabilities.ID   `json:"id"`
	Text    string            `json:"token,omitempty"`
	Session bool              `json:"session,omitempty"`
	Scopes  []string          `json:"scopes"`
	Made    capabilities.Time `json:"made"`
	Used    capabilities.Time `json:"used,omitzero"`
	Until   capabilities.Time `json:"until,omitzero"`
	Note    string            `json:"note,omitempty"`
	By      capabilities.ID   `json:"by,omitzero"`
}
