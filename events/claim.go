package events

import "parley/capabilities"

// FormClaimed says that an agent is on a form, until a time: at the form's home, and in each copy. No Until ends the claim. Was is whose
// claim it took over; zero for none. A claim is no vote, and gives nothing.
type FormClaimed struct {
	Form  capabilities.ID   `json:"form"`
	By    capabilities.ID   `json:"by"`
	Until capabilities.Time `json:"until,omitzero"`
	Was   capabilities.ID   `json:"was,omitzero"`
	Date  capabilities.Time `json:"date"`
}

// ClaimQueued is the claim of a holder of a form whose home is on another node. It is kept until the home has decided on it. No Until
// ends the claim. With TakeOver it takes over that of another.
type ClaimQueued struct {
	Form     capabilities.ID   `json:"form"`
	Until    capabilities.Time `json:"until,omitzero"`
	TakeOver bool              `json:"takeOver,omitempty"`
	Date     capabilities.Time `json:"date"`
}
