package gateway

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/web"
)

// unreadQueue is a backend that cannot read what waits in the mail of an agent: all else is the node's.
type unreadQueue struct{ api.Backend }

func (b unreadQueue) Agent(ctx context.Context, p api.Principal, as string) (api.Agent, error) {
	a, err := b.Backend.Agent(ctx, p, as)
	return unreadAgent{a}, err
}

type unreadAgent struct{ api.Agent }

func (a unreadAgent) Mail() api.Mail { return unreadMail{a.Agent.Mail()} }

type unreadMail struct{ api.Mail }

func (unreadMail) All(context.Context, view.MessageFilter) iter.Seq2[view.Message, error] {
	return func(yield func(view.Message, error) bool) {
		yield(view.Message{}, errors.New("the log cannot be read"))
	}
}

// TestUnknownQueueIsNotEmpty reads a page while what waits cannot be read. The rail says so, and an agent that waits does so still.
func TestUnknownQueueIsNotEmpty(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.shell("make")
	const says = "What waits for you cannot be read now."
	if _, _, text := h.get(web.SettingsPath, "text/html"); strings.Contains(text, says) || !strings.Contains(text, "Waiting for you") {
		t.Fatalf("before: %s", text)
	}
	h.server.site.Backend = unreadQueue{h.server.site.Backend}
	status, _, text := h.get(web.SettingsPath, "text/html")
	if status != 200 || !strings.Contains(text, says) || !strings.Contains(text, "Waiting for you") {
		t.Errorf("%d: an error of the queue reads as nothing that waits: %s", status, text)
	}
}
