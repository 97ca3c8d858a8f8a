package backend

import (
	"context"

	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/mailbox"
)

func setAttention(ctx context.Context, a *actors.Agent, r api.SetAttentionRequest) (view.Attention, error) {
	return actors.SetAttention(ctx, a, mailbox.SetAttention{AllSessions: r.AllSessions, Quiet: r.Quiet, Zone: r.Zone, Interruptions: r.Interruptions})
}

func getAttention(ctx context.Context, a *actors.Agent, _ api.GetAttentionRequest) (view.Attention, error) {
	return actors.AttentionOf(ctx, a)
}
