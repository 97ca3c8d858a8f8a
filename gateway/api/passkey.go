package api

import (
	"encoding/json"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// ListPasskeysRequest lists the passkeys of the agent, with which its decisions are signed.
type ListPasskeysRequest struct{ Acting }

// ListPasskeysResponse has the passkeys, oldest first, and which decisions want one: that of all agents first, none if it is never.
type ListPasskeysResponse struct {
	Passkeys []view.Passkey     `json:"passkeys"`
	Needs    []view.PasskeyNeed `json:"needs"`
}

// BeginPasskeyRequest begins to register a passkey, on a page of the node. Options are for the browser that shows it.
type BeginPasskeyRequest struct {
	Acting
	Name   string `json:"name"`
	Origin string `json:"origin"` // of the page, as location.origin
}

// BeginPasskeyResponse has what PublicKeyCredential.parseCreationOptionsFromJSON takes. It is good once, for 5 minutes.
type BeginPasskeyResponse struct {
	Options json.RawMessage `json:"options"`
}

// AddPasskeyRequest registers the passkey that a browser has made. With another one registered already it has to be signed with that, as
// "add", unless it comes from the node's own machine.
type AddPasskeyRequest struct {
	Acting
	Credential json.RawMessage          `json:"credential"` // the PublicKeyCredential, by its toJSON
	Passkey    *parley.PasskeySignature `json:"passkey,omitempty"`
}

// RemovePasskeyRequest removes a passkey, by its name or ID. It has to be signed with one, as "remove" and the ID, unless it comes from the
// node's own machine.
type RemovePasskeyRequest struct {
	Acting
	Name    string                   `json:"name"`
	Passkey *parley.PasskeySignature `json:"passkey,omitempty"`
}

// RequirePasskeyRequest says which decisions want a passkey. What requires less than before has to be signed with one, as "require", the
// need and the ID of the agent, unless it comes from the node's own machine.
type RequirePasskeyRequest struct {
	Acting
	Agent   string                   `json:"agent,omitempty"` // of whose calls; "" for all agents that have no need of their own
	Need    events.PasskeyNeed       `json:"need,omitempty"`  // never, high or all; "" with an agent for that of all agents
	Passkey *parley.PasskeySignature `json:"passkey,omitempty"`
}

// AskPasskeyRequest asks for what a passkey signs of an answer, as respond_form takes it, or of an act: Fields.act of a refusal with
// PASSKEY_REQUIRED.
type AskPasskeyRequest struct {
	Acting
	FormRef
	parley.Answer
	Act    string `json:"act,omitempty"` // in place of a form and its answer
	Origin string `json:"origin"`        // of the page, as location.origin
}

// AskPasskeyResponse has what a browser is given to sign. It is good once, for 5 minutes.
type AskPasskeyResponse struct {
	Statement   string          `json:"statement"`
	Challenge   string          `json:"challenge"`   // SHA-256 of the statement, in base64url
	Host        string          `json:"host"`        // rpId
	Credentials []string        `json:"credentials"` // IDs of the passkeys that may sign it
	Wanted      bool            `json:"wanted"`      // it is refused without
	Form        capabilities.ID `json:"form,omitzero"`
}
