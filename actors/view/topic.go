package view

import (
	"cmp"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Topic is a topic of a host as one of its agents sees it.
type Topic struct {
	Topic       string            `json:"topic"`          // the host's name for it, by which it is written to
	Agent       capabilities.ID   `json:"agent"`          // to which posts are sent
	Team        string            `json:"team,omitempty"` // whose members may join; "" for all agents of the host
	Posts       uint64            `json:"posts"`          // that there ever were
	Last        capabilities.Time `json:"last,omitzero"`  // when the newest that is kept came
	Subscribers int               `json:"subscribers"`

	Subscribed bool              `json:"subscribed,omitempty"` // the agent that asks
	Stream     bool              `json:"stream,omitempty"`     // it gets each post, and no digests
	EveryMs    int64             `json:"everyMs,omitempty"`    // the longest time from a post to its digest
	Next       capabilities.Time `json:"next,omitzero"`        // when it gets the next digest; 0 if nothing was posted since the last
}

// Topics are topics, by their names.
type Topics struct {
	Topics []Topic `json:"topics"`
}

// TopicPost is a post in a topic. Subject and text are its author's words.
type TopicPost struct {
	Number   uint64            `json:"number"` // in the topic
	Message  capabilities.ID   `json:"message"`
	From     capabilities.ID   `json:"from"`
	FromName string            `json:"fromName,omitempty"` // the topic's name for the author
	FromSaid string            `json:"fromSaid,omitempty"` // without FromName: what the author calls itself, which may be any words
	Subject  string            `json:"subject,omitempty"`
	Text     string            `json:"text"`
	Date     capabilities.Time `json:"date"`
	ReplyTo  *uint64           `json:"replyTo,omitempty"` // the number of the post that it answers
	Files    []events.File     `json:"files,omitempty"`   // that it carries
}

// Writer returns the name of the author as a person reads it, as Sender of a message does.
func (p *TopicPost) Writer() string { return cmp.Or(p.FromName, parley.Called(p.FromSaid)) }

// TopicPosts are posts of a topic, the oldest first.
type TopicPosts struct {
	Posts []TopicPost `json:"posts"`
	More  bool        `json:"more,omitempty"` // there are older ones: before the number of the first
}
