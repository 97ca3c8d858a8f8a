package client

import (
	"context"
	"time"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

// Topic is a topic of a host as one of its agents sees it.
type Topic = view.Topic

// TopicPost is a post in a topic.
type TopicPost = view.TopicPost

// Topics are the topics of the agent's host.
type Topics struct{ c *Client }

// TopicsOf returns the topics of the host of a client's agent.
func TopicsOf(c *Client) Topics { return Topics{c} }

// List returns the topics that the agent may join, by their names.
func (t Topics) List(ctx context.Context) ([]Topic, error) {
	got, err := get[view.Topics](ctx, t.c, "list_topics", api.ListTopicsRequest{})
	return got.Topics, err
}

// Make makes a topic of the host's, which the agent is: for all its agents, or with a team for the members of that.
func (t Topics) Make(ctx context.Context, name, team string) (Topic, error) {
	return get[Topic](ctx, t.c, "make_topic", api.MakeTopicRequest{Topic: name, Team: team})
}

// End ends a topic of the host's.
func (t Topics) End(ctx context.Context, name string) error {
	return t.c.Call(ctx, "end_topic", api.EndTopicRequest{Topic: name}, nil)
}

// Subscribe has the agent get digests of a topic. Every is the longest time from a post to the digest with it; 0 is an hour.
func (t Topics) Subscribe(ctx context.Context, name string, every time.Duration) (Topic, error) {
	return get[Topic](ctx, t.c, "subscribe", api.SubscribeRequest{Topic: name, EveryMs: every.Milliseconds()})
}

// Stream has the agent get each post of a topic as it comes.
func (t Topics) Stream(ctx context.Context, name string) (Topic, error) {
	return get[Topic](ctx, t.c, "subscribe", api.SubscribeRequest{Topic: name, Stream: true})
}

// Unsubscribe ends the agent's subscription.
func (t Topics) Unsubscribe(ctx context.Context, name string) error {
	return t.c.Call(ctx, "subscribe", api.SubscribeRequest{Topic: name, End: true}, nil)
}

// Post sends a post to a topic.
func (t Topics) Post(ctx context.Context, name string, p parley.Post) (view.Sent, error) {
	return get[view.Sent](ctx, t.c, "post", api.PostRequest{Topic: name, Post: p})
}

// Posts returns the posts of a topic that came last before a number, the oldest first, and whether there are older ones. Before 0 means
// the newest; limit 0 means 100, which is the most.
func (t Topics) Posts(ctx context.Context, name string, before uint64, limit int) (posts []TopicPost, more bool, err error) {
	got, err := get[view.TopicPosts](ctx, t.c, "list_posts", api.ListPostsRequest{Topic: name, Before: before, Limit: limit})
	return got.Posts, got.More, err
}
