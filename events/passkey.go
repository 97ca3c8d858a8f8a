package events

import "parley/capabilities"

// PasskeyAdded registers a passkey of the agent: with it, a person signs decisions on a device. It is in the log of the agent that decides.
type PasskeyAdded struct {
	Passkey    capabilities.ID   `json:"passkey"`
	Name       string            `json:"name"`
	Credential []byte            `json:"credential"` // the device's own ID for it
	Key        []byte            `json:"key"`        // the public key, as SubjectPublicKeyInfo
	Origin     string            `json:"origin"`     // of the page on which it was registered, and on which alone it is good
	Count      uint32            `json:"count"`      // of the device, when it was registered
	Date       capabilities.Time `json:"date"`
}

// PasskeyRemoved removes a passkey. What it has signed stays signed.
type PasskeyRemoved struct {
	Passkey capabilities.ID `json:"passkey"`
}

// PasskeyNeed says which decisions of an agent are made with a passkey.
type PasskeyNeed string

// The needs.
const (
	PasskeyNever PasskeyNeed = "never" // as it is at first
	PasskeyHigh  PasskeyNeed = "high"  // those that allow a call of high risk
	PasskeyAll   PasskeyNeed = "all"   // those that allow a call
)

// PasskeyRequired says which decisions the agent makes with a passkey: those on calls of Agent, or of all that have no such event of
// their own if that is zero. No Need ends what was said of Agent.
type PasskeyRequired struct {
	Agent capabilities.ID `json:"agent,omitzero"`
	Need  PasskeyNeed     `json:"need,omitempty"`
}

// PasskeyUsed records that a passkey of the agent has signed: a decision on Form, or something else if that is zero. It is in the log
// before what was signed is done, so that no count of a device is taken twice.
type PasskeyUsed struct {
	Passkey capabilities.ID   `json:"passkey"`
	Form    capabilities.ID   `json:"form,omitzero"`
	Count   uint32            `json:"count"` // of the device; 0 for one that does not count
	Date    capabilities.Time `json:"date"`
}

// DecisionSigned is what a passkey has signed of an answer to a form. It is at the form's home, in the commit of that answer or vote and
// before it. All that is needed to check it is in it.
type DecisionSigned struct {
	Form          capabilities.ID `json:"form"`
	By            capabilities.ID `json:"by"` // who answered, and whose passkey it is
	Passkey       capabilities.ID `json:"passkey"`
	Key           []byte          `json:"key"`           // as in PasskeyAdded
	Origin        string          `json:"origin"`        // as in PasskeyAdded
	Statement     string          `json:"statement"`     // what was signed: see package passkey
	ClientData    []byte          `json:"clientData"`    // of the browser: JSON
	Authenticator []byte          `json:"authenticator"` // data of the device
	Signature     []byte          `json:"signature"`     // of Authenticator and the SHA-256 of ClientData
}
