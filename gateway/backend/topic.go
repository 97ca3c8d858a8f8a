package backend

import (
	"context"
	"time"

	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/mailbox"
)

func makeTopic(ctx context.Context, a *actors.Agent, r api.MakeTopicRequest) (view.Topic, error) {
	return actors.TopicsOf(a).Make(ctx, r.Topic, r.Team)
}

func endTopic(ctx context.Context, a *actors.Agent, r api.EndTopicRequest) (api.Done, error) {
	return api.Done{}, actors.TopicsOf(a).End(ctx, r.Topic)
}

func listTopics(ctx context.Context, a *actors.Agent, _ api.ListTopicsRequest) (view.Topics, error) {
	return actors.TopicsOf(a).List(ctx)
}

// maxEveryMs bounds what is read as a time, in milliseconds: a year.
const maxEveryMs = 366 * 24 * 3_600_000

func subscribe(ctx context.Context, a *actors.Agent, r api.SubscribeRequest) (view.Topic, error) {
	every := time.Duration(min(max(r.EveryMs, -1), maxEveryMs)) * time.Millisecond
	return actors.TopicsOf(a).Subscribe(ctx, r.Topic, mailbox.Subscribe{Every: every, Stream: r.Stream, End: r.End})
}

func post(ctx context.Context, a *actors.Agent, r api.PostRequest) (view.Sent, error) {
	return actors.TopicsOf(a).Post(ctx, r.Topic, r.Post)
}

func listPosts(ctx context.Context, a *actors.Agent, r api.ListPostsRequest) (view.TopicPosts, error) {
	return actors.TopicsOf(a).Posts(ctx, r.Topic, r.Post, r.Before, r.Limit)
}
