package events

import "parley/capabilities"

// MailQueued says that the message or form in the next event goes to what an open request of the agent will be answered with. Its
// recipient in that event is the request's promise. Path begins with the name that awaits the answer.
type MailQueued struct {
	Message capabilities.ID   `json:"message"`
	Request capabilities.ID   `json:"request"`
	Promise capabilities.ID   `json:"promise"`
	Path    string            `json:"path"`
	Date    capabilities.Time `json:"date"`
}

// QueuedSent sends a queued message or form, now that the request is answered. Text is that of a message which hands something over: with
// the grants to its recipient.
type QueuedSent struct {
	Message capabilities.ID    `json:"message"`
	To      capabilities.ID    `json:"to"`
	Via     capabilities.ID    `json:"via,omitzero"`   // the grant by which the agent reached To
	Facet   capabilities.Facet `json:"facet,omitzero"` // and how much of To it held
	Text    []Span             `json:"text,omitempty"`
	Date    capabilities.Time  `json:"date"`
}

// QueuedEnded says why a queued message was not sent. A form that was not is cancelled instead.
type QueuedEnded struct {
	Message capabilities.ID   `json:"message"`
	Why     string            `json:"why"`
	Date    capabilities.Time `json:"date"`
}

// UseQueued has the agent use what an open request will be answered with. Path is as in MailQueued.
type UseQueued struct {
	Use     capabilities.ID    `json:"use"`
	Request capabilities.ID    `json:"request"`
	Promise capabilities.ID    `json:"promise"`
	Path    string             `json:"path"`
	Verb    string             `json:"verb"`
	Input   capabilities.Value `json:"input"` // a record
	Key     string             `json:"key,omitempty"`
	Date    capabilities.Time  `json:"date"`
}

// QueuedUseEnded says how a queued use ended, as its resource's home says. One that did not go there is denied.
type QueuedUseEnded struct {
	Use  capabilities.ID   `json:"use"`
	How  UseEnd            `json:"how"`
	Code string            `json:"code,omitempty"` // of the error, unless it is done
	Text string            `json:"text,omitempty"`
	Date capabilities.Time `json:"date"`
}
