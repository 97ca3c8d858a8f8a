package api

import "parley"

// MakeTopicRequest makes a topic of the host's: for all its agents, or for the members of a team.
type MakeTopicRequest struct {
	Acting
	Topic string `json:"topic"` // its name, of 64 bytes at most
	Team  string `json:"team,omitempty"`
}

// EndTopicRequest ends a topic of the host's. Nobody posts or reads there any more.
type EndTopicRequest struct {
	Acting
	Topic string `json:"topic"`
}

// ListTopicsRequest lists the topics that the agent may join.
type ListTopicsRequest struct{ Acting }

// SubscribeRequest has the agent subscribe to a topic: to digests of low priority, or to a stream of all posts. The same again changes
// that.
type SubscribeRequest struct {
	Acting
	Topic   string `json:"topic"`
	EveryMs int64  `json:"everyMs,omitempty"` // the longest time from a post to the digest with it: from a minute to a week; default an hour
	Stream  bool   `json:"stream,omitempty"`  // each post as it comes, and no digests
	End     bool   `json:"end,omitempty"`     // no longer subscribe
}

// PostRequest sends a post to a topic. Its priority is that of the stream; digests are of low priority.
type PostRequest struct {
	Acting
	Topic string `json:"topic"`
	parley.Post
}

// ListPostsRequest returns the posts of a topic that came last.
type ListPostsRequest struct {
	Acting
	Topic  string  `json:"topic"`
	Post   *uint64 `json:"post,omitempty"`   // that one alone, by its number
	Before uint64  `json:"before,omitempty"` // those before this number; 0 for the newest
	Limit  int     `json:"limit,omitempty"`  // default 100, which is the most
}
