package actors

import (
	"context"

	"parley/actors/view"
	"parley/events"
	"parley/mailbox"
)

// Send sends a message in which @name and @edge:name carry what the agent has under those names, and \@ is
// a plain @. To is as in Ask.
func (a *Agent) Send(ctx context.Context, to, text string) (view.Sent, error) {
	return a.post(ctx, mailbox.PostMessage{To: to, Text: text})
}

// Reply sends a message to the other party of one that the agent got or sent.
func (a *Agent) Reply(ctx context.Context, w Which, text string) (view.Sent, error) {
	return a.post(ctx, mailbox.PostMessage{Reply: string(w), Text: text})
}

func (a *Agent) post(ctx context.Context, p mailbox.PostMessage) (view.Sent, error) {
	sent, err := call(ctx, a, postMessage{p})
	sent.result.Unreachable = a.node.isOut(ctx, sent.waits)
	return sent.result, err
}

// postMessage sends a message.
type postMessage struct{ command mailbox.PostMessage }

func (m postMessage) handle(b *mailboxActor) (pending[view.Sent], error) {
	evs, err := b.decide(m.command)
	if err != nil {
		return pending[view.Sent]{}, err
	}
	e := evs[0].(*events.MessagePosted)
	return pending[view.Sent]{view.Sent{Message: e.Message, Number: e.Number}, b.waitsFor(e.To)}, nil
}

// Adopt binds a name to what a message carries under an edge; an empty name is the edge's.
func (a *Agent) Adopt(ctx context.Context, w Which, edge, name string) error {
	return a.do(ctx, mailbox.AdoptName{Which: string(w), Edge: edge, Name: name})
}

// Dismiss takes a message out of view.
func (a *Agent) Dismiss(ctx context.Context, w Which) error {
	return a.do(ctx, mailbox.DismissMessage{Which: string(w)})
}
