package view

import (
	"parley"
	"parley/capabilities"
)

// Schedule is a message that an agent sends later.
type Schedule struct {
	Number uint64          `json:"number"` // 0 for one whose message was sent: see Last
	To     capabilities.ID `json:"to"`
	ToName string          `json:"toName,omitempty"`
	Also   []Party         `json:"also,omitempty"` // further recipients
	parley.Header
	Text    string            `json:"text"`
	Next    capabilities.Time `json:"next,omitzero"`     // when it is sent; 0 for one that could not be
	Every   string            `json:"every,omitempty"`   // of a series: a cron expression
	Zone    string            `json:"zone,omitempty"`    // the time zone of Every; "" is the node's
	Last    capabilities.ID   `json:"last,omitzero"`     // the message that was sent last
	LastAt  capabilities.Time `json:"lastAt,omitzero"`   // when it was, or was not
	Refused string            `json:"refused,omitempty"` // why the last one was not sent
}

// Schedules are the scheduled messages of an agent, by their numbers.
type Schedules struct {
	Schedules []Schedule `json:"schedules"`
}
