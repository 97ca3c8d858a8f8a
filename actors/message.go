package actors

import (
	"context"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Send sends a message in which @name and @edge:name carry what the agent has under those names, and \@ is
// a plain @. To is as in Ask.
func (a *Agent) Send(ctx context.Context, to, text string) (view.Sent, error) {
	return post(a, ctx, mailbox.PostMessage{To: to, Text: text})
}

// Reply sends a message to the other party of one that the agent got or sent.
func (a *Agent) Reply(ctx context.Context, ref capabilities.FormRef, text string) (view.Sent, error) {
	return post(a, ctx, mailbox.PostMessage{Reply: ref, Text: text})
}

func post(a *Agent, ctx context.Context, p mailbox.PostMessage) (view.Sent, error) {
	sent, err := call(ctx, a, postMessage{p})
	sent.result.Unreachable = anyUnreachable(a.node, ctx, sent.waits)
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
	return pending[view.Sent]{view.Sent{Message: e.Message, Number: e.Number}, nodesTo(b, e.To)}, nil
}

// Adopt binds a name to what a message carries under an edge; an empty name is the edge's.
func (a *Agent) Adopt(ctx context.Context, ref capabilities.FormRef, edge, name string) error {
	return a.do(ctx, mailbox.AdoptName{Message: ref, Edge: edge, Name: name})
}

// Dismiss hides a message.
func (a *Agent) Dismiss(ctx context.Context, ref capabilities.FormRef) error {
	return a.do(ctx, mailbox.DismissMessage{Message: ref})
}

// Prompt sends an agent a message to work on, in plain words. If it has a program that is not running yet, that runs
// when Prompt returns; an error means that it does not. The same key is the same message, however often it is sent.
// It refuses with AGENT_ARCHIVED, and with RATE_LIMITED when as many programs run as may.
func (a *Agent) Prompt(ctx context.Context, to *Agent, text, key string) (view.Prompted, error) {
	if _, err := call(ctx, to, checkPrompt{}); err != nil && !hasSent(a, ctx, key) {
		return view.Prompted{}, err
	}
	sent, err := callRelay(ctx, a, sendPrompt{to.id, mailbox.PostMessage{To: to.id.String(), Text: text, Plain: true, Key: key}})
	if err != nil || sent.run == nil {
		return sent.Prompted, err
	}
	select {
	case <-sent.run.accepted:
	case <-ctx.Done():
		return view.Prompted{}, errEnded(ctx)
	}
	if sent.run.failed != nil {
		return view.Prompted{}, programError(sent.run.failed)
	}
	sent.Running = true
	return sent.Prompted, nil
}

// promptResult is an accepted message to an agent, and the run that works on it, if there is one.
type promptResult struct {
	view.Prompted
	run *run
}

// sendPrompt posts a message to an agent of the node, or finds one that was posted before.
type sendPrompt struct {
	to   capabilities.ID
	post mailbox.PostMessage
}

func (m sendPrompt) handle(b *mailboxActor, reply replyTo[promptResult]) {
	message, err := postOnce(b, m.post)
	if err != nil {
		reply.release(b, promptResult{}, err)
		return
	}
	b.node.registry.tell(m.to, b.last, &queryPrompt{message, reply})
}

// queryPrompt returns the state of a message at the agent that it was sent to.
type queryPrompt struct {
	message capabilities.ID
	reply   replyTo[promptResult]
}

func (m *queryPrompt) handle(b *mailboxActor) {
	p, r, err := promptState(b, m.message)
	m.reply.release(b, promptResult{p, r}, err)
}

func (m *queryPrompt) fail(err error) { m.reply.fail(err) }

// hasSent reports whether the agent has sent a message with a key.
func hasSent(a *Agent, ctx context.Context, key string) bool {
	sent, err := call(ctx, a, queryPosted{key})
	return err == nil && sent
}

// queryPosted reports whether the agent has posted a message with a key.
type queryPosted struct{ key string }

func (m queryPosted) handle(b *mailboxActor) (bool, error) { return b.state.Mail.HasPosted(m.key), nil }

// checkPrompt refuses a message that the agent could not work on now.
type checkPrompt struct{}

func (checkPrompt) handle(b *mailboxActor) (none, error) {
	_, running := b.state.Runs.Current()
	switch {
	case b.state.Profile.Archived:
		return none{}, errArchived()
	case b.state.Runs.HasProgram() && b.node.supervisor.isHeld():
		return none{}, errHeld()
	case b.state.Runs.HasProgram() && !running && b.node.supervisor.full():
		return none{}, errFull()
	}
	return none{}, nil
}

func errArchived() error { return parley.Refuse(parley.AgentArchived, "the agent is archived") }

func errFull() error {
	return parley.Refuse(parley.RateLimited, "as many programs run as may at once").WithHint("try again when one has ended")
}

// postOnce posts a message, or finds one that was posted before.
func postOnce(b *mailboxActor, p mailbox.PostMessage) (capabilities.ID, error) {
	known, err := recalled(b, func() (*mailbox.Message, error) {
		m, _, err := p.FindExisting(b.state)
		return m, err
	})
	if err != nil {
		return capabilities.ID{}, err
	} else if known != nil {
		return known.ID(), nil
	}
	evs, err := b.decide(p)
	if err != nil {
		return capabilities.ID{}, err
	}
	return evs[0].(*events.MessagePosted).Message, nil
}

// promptState returns the state of a message to this agent.
func promptState(b *mailboxActor, message capabilities.ID) (view.Prompted, *run, error) {
	if b.state.Profile.Archived { // since it was asked
		return view.Prompted{}, nil, errArchived()
	}
	m, err := recalled(b, func() (*mailbox.Message, error) { return b.state.Mail.FindID(message) })
	if err != nil {
		return view.Prompted{}, nil, parley.Refuse(parley.NotPermitted, "the agent would not have the message")
	}
	p := view.Prompted{Message: message}
	for _, waiting := range b.state.Runs.Prompts() {
		p.Queued = p.Queued || waiting == m
	}
	if r := b.node.supervisor.currentRun(b.reg.id); r != nil && r.prompt == message {
		return p, r, nil
	}
	return p, nil, nil
}
