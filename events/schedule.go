package events

import (
	"parley/capabilities"
)

// MessageScheduled has the agent send a message at a time: once, or with Every at the times of a series.
type MessageScheduled struct {
	Schedule uint64          `json:"schedule"` // the schedule's own number in the mailbox: 1 for the first
	To       capabilities.ID `json:"to"`
	Header
	Text  string            `json:"text"` // as its sender gave it: references are looked up when it is sent
	Plain bool              `json:"plain,omitempty"`
	At    capabilities.Time `json:"at"`              // the first time
	Every string            `json:"every,omitempty"` // a cron expression of five fields, or as @daily; "" for once
	Zone  string            `json:"zone,omitempty"`  // the IANA time zone of Every; "" is the node's
	Date  capabilities.Time `json:"date"`
	Key   string            `json:"key,omitempty"` // idempotency key

	Also     []capabilities.ID `json:"also,omitempty"`    // further recipients
	Escalate capabilities.ID   `json:"escalate,omitzero"` // who gets the message if it is not acknowledged by AckBy
}

// ScheduleFired records that the time of a scheduled message had come. It is together with the message, or has the reason why
// there is none. Next is the next time of a series; 0 is the end of the schedule.
type ScheduleFired struct {
	Schedule uint64            `json:"schedule"`
	Message  capabilities.ID   `json:"message,omitzero"`
	Refused  string            `json:"refused,omitempty"`
	Next     capabilities.Time `json:"next,omitzero"`
}

// ScheduleEnded ends a schedule, or takes one out of the list that has ended without its message.
type ScheduleEnded struct {
	Schedule uint64 `json:"schedule"`
}
