package api

import (
	"parley/actors/view"
	"parley/capabilities"
)

// ListMandatesRequest lists the mandates of the agent, or of an agent whose host it is: those that last and, with All, the last ones that
// have ended. With Everyone they are those of all agents of the node whose host it is, and its own.
type ListMandatesRequest struct {
	Acting
	Paging
	Agent    string `json:"agent,omitempty"`
	Everyone bool   `json:"everyone,omitempty"`
	All      bool   `json:"all,omitempty"`
}

// ListMandatesResponse has the mandates, oldest first.
type ListMandatesResponse struct {
	Mandates []view.Mandate `json:"mandates"`
	Paged
}

// MandateRequest names a mandate of the agent, or of an agent whose host it is.
type MandateRequest struct {
	Acting
	Agent   string          `json:"agent,omitempty"`
	Mandate capabilities.ID `json:"mandate"`
}

// GetMandateResponse has a mandate, and the last calls that it has covered, oldest first, 100 at most.
type GetMandateResponse struct {
	Mandate view.Mandate       `json:"mandate"`
	Covered []view.MandateCall `json:"covered"`
}
