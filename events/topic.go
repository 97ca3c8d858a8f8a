package events

import "parley/capabilities"

// TopicMade makes the agent a topic: what it is sent are posts. Its host has made it for that. With Team it is for the members of that
// team alone.
type TopicMade struct {
	Name string          `json:"name"`
	Team capabilities.ID `json:"team,omitzero"`
}

// TopicSubscribed has an agent subscribe to the topic, in another way than before, or no longer: without In. Every is the longest time
// from a post to the digest that has it. Zero is a stream: each post is passed on, as a group does.
type TopicSubscribed struct {
	Agent capabilities.ID `json:"agent"`
	In    bool            `json:"in,omitempty"`
	Every Delay           `json:"every,omitempty"`
}

// DigestPosted records that a digest with the posts up to one went to a subscriber. It is together with that message.
type DigestPosted struct {
	Agent   capabilities.ID `json:"agent"`
	Through uint64          `json:"through"` // how many posts the topic had then
	Message capabilities.ID `json:"message"`
}
