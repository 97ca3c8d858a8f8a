package actors

import (
	"context"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Prompt sends an agent a message to work on, in plain words. If it has a program that is not running yet, that runs
// when Prompt returns; an error means that it does not. The same key is the same message, however often it is sent.
// It refuses with AGENT_ARCHIVED, and with RATE_LIMITED when as many programs run as may.
func (a *Agent) Prompt(ctx context.Context, to *Agent, text, key string) (view.Prompted, error) {
	if err := to.checkPrompt(ctx); err != nil && !a.hasSent(ctx, key) {
		return view.Prompted{}, err
	}
	type accepted struct {
		view.Prompted
		run *run
	}
	off, err := handOver(ctx, a, func(b *mailboxActor, reply replyTo[accepted]) {
		message, err := b.post(mailbox.PostMessage{To: to.id.String(), Text: text, Plain: true, Key: key})
		if err != nil {
			b.answer(reply.durably(accepted{}, err))
			return
		}
		b.node.registry.tell(to.id, visit{after: b.last, lost: reply.lost, run: func(t *mailboxActor) {
			p, r, err := t.prompted(message)
			t.answer(reply.durably(accepted{p, r}, err))
		}})
	})
	if err != nil || off.run == nil {
		return off.Prompted, err
	}
	select {
	case <-off.run.accepted:
	case <-ctx.Done():
		return view.Prompted{}, errEnded(ctx)
	}
	if off.run.failed != nil {
		return view.Prompted{}, programError(off.run.failed)
	}
	off.Running = true
	return off.Prompted, nil
}

// hasSent reports whether the agent has sent a message with a key.
func (a *Agent) hasSent(ctx context.Context, key string) bool {
	sent, err := visitFor(ctx, a, func(b *mailboxActor) (bool, error) {
		return b.state.HasPosted(key), nil
	})
	return err == nil && sent
}

// checkPrompt refuses what an agent could not work on now.
func (a *Agent) checkPrompt(ctx context.Context) error {
	_, err := visitFor(ctx, a, func(b *mailboxActor) (struct{}, error) {
		_, running := b.state.Run()
		switch {
		case b.state.Profile.Archived:
			return struct{}{}, errArchived()
		case b.state.HasProgram() && b.node.supervisor.isHeld():
			return struct{}{}, errHeld()
		case b.state.HasProgram() && !running && b.node.supervisor.full():
			return struct{}{}, errFull()
		}
		return struct{}{}, nil
	})
	return err
}

func errArchived() error { return parley.Refuse(parley.AgentArchived, "the agent is archived") }

func errFull() error {
	return parley.Refuse(parley.RateLimited, "as many programs run as may at once").WithHint("try again when one has ended")
}

// post sends a message, or finds that it was sent.
func (b *mailboxActor) post(p mailbox.PostMessage) (capabilities.ID, error) {
	if m, ok, err := p.FindExisting(b.state); err != nil {
		return capabilities.ID{}, err
	} else if ok {
		return m.ID(), nil
	}
	evs, err := b.decide(p)
	if err != nil {
		return capabilities.ID{}, err
	}
	return evs[0].(*events.MessagePosted).Message, nil
}

// prompted says what has become of a message that was sent here.
func (b *mailboxActor) prompted(message capabilities.ID) (view.Prompted, *run, error) {
	if b.state.Profile.Archived { // since it was asked
		return view.Prompted{}, nil, errArchived()
	}
	m, err := b.state.FindID(message)
	if err != nil {
		return view.Prompted{}, nil, parley.Refuse(parley.NotPermitted, "the agent would not have the message")
	}
	p := view.Prompted{Message: message}
	for _, waiting := range b.state.Prompts() {
		p.Queued = p.Queued || waiting == m
	}
	if r := b.node.supervisor.currentRun(b.reg.id); r != nil && r.prompt == message {
		return p, r, nil
	}
	return p, nil, nil
}
