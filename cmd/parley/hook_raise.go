package main

import (
	"context"
	"encoding/json"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway"
	"parley/gateway/client"
	"parley/mailbox"
)

const (
	glances     = 5                      // looks for somebody who follows the inbox
	glanceEvery = 100 * time.Millisecond // a client that was just told something takes a moment to ask again
	lastWords   = 2 * time.Second        // what taking a question back may take
	outlives    = 30 * time.Second       // how long a question may outlast a hook that was killed
)

// ruleOn raises an approval and waits for the decision.
func (p *program) ruleOn(ctx context.Context, agent codingAgent, call toolCall, o hooking) ruling {
	h := raising{program: p, client: p.client(), agent: agent, call: call, as: p.acting()}
	defer h.client.Close()
	if h.as.As == "" {
		h.made = agent.asker(p.workFolder(agent, call))
		h.as.As = h.made.name
	}
	permission, err := h.raise(ctx, o)
	switch {
	case err != nil:
		return h.failed(ctx, err)
	case permission.Decided:
		return standing(permission.Allowed)
	case permission.Unattended:
		h.takeBack(permission.Form, "nobody was there")
		return undecided("nobody follows the inbox")
	}
	return h.await(ctx, permission.Form, time.Duration(o.timeout))
}

// raising is one call on its way to whoever decides.
type raising struct {
	program *program
	client  *client.Client // makes a call once
	agent   codingAgent
	call    toolCall
	as      gateway.Acting
	made    asker // who asks, if it is one of the hook's making
}

// raise asks, and makes the one who asks where there is none yet. It looks more than once for somebody who attends.
func (h *raising) raise(ctx context.Context, o hooking) (view.Permission, error) {
	req := gateway.ApproveRequest{
		Acting: h.as, Tool: h.call.tool, Input: h.call.input, Folder: h.program.callFolder(h.agent, h.call), Key: h.call.key(h.agent),
		Attended: !o.waitAnyway,
	}
	if o.timeout > 0 {
		req.Deadline = capabilities.At(time.Now().Add(time.Duration(o.timeout) + outlives))
	}
	for look := 1; ; look++ {
		var p view.Permission
		err := h.client.Call(ctx, "approve", req, &p)
		if parley.CodeOf(err) == parley.UnknownName && h.made.name != "" && look == 1 {
			if err = h.makeAsker(ctx); err == nil {
				continue
			}
		}
		if err != nil || !p.Unattended || look >= glances {
			return p, err
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-time.After(glanceEvery):
		}
	}
}

// makeAsker makes the agent that asks. Another hook may have done so in this moment.
func (h *raising) makeAsker(ctx context.Context) error {
	err := h.client.Call(ctx, "make_agent", gateway.MakeAgentRequest{
		Kind: events.Guest, Name: h.made.name, Title: h.made.title, Labels: h.made.labels,
	}, nil)
	if parley.CodeOf(err) == parley.NameTaken {
		return nil
	}
	return err
}

// await waits for the decision. A question that nobody has answered in time is taken back: the agent's own prompt
// asks it now, and what expires is not approved.
func (h *raising) await(ctx context.Context, form capabilities.ID, timeout time.Duration) ruling {
	raw, err := h.outcome(ctx, form, timeout)
	if err == nil {
		return read(raw)
	}
	r := h.failed(ctx, err)
	if parley.CodeOf(err) == parley.Timeout && ctx.Err() == nil {
		r = undecided("nobody has decided within %s", timeout)
	}
	if late, ok := h.takeBack(form, "it is decided at the prompt of "+h.agent.title); ok {
		return late
	}
	return r
}

// outcome waits for a form's end, for so long if that is not 0.
func (h *raising) outcome(ctx context.Context, form capabilities.ID, timeout time.Duration) (json.RawMessage, error) {
	waiter := h.program.clientOf(client.Options{As: h.as.As, Patience: patience, Known: true})
	defer waiter.Close()
	var (
		o   client.Outcome
		err error
	)
	if timeout > 0 {
		o, err = waiter.AwaitWithin(ctx, client.ID(form.String()), timeout)
	} else {
		o, err = waiter.Await(ctx, client.ID(form.String()))
	}
	return o.Raw, err
}

// takeBack takes a question back, so that nobody answers what is asked elsewhere. Where somebody was faster, what
// they decided holds.
func (h *raising) takeBack(form capabilities.ID, why string) (ruling, bool) {
	if form.IsZero() {
		return ruling{}, false
	}
	ctx, done := context.WithTimeout(context.Background(), lastWords) // what the hook waited in may have ended
	defer done()
	subject := gateway.About(form.String())
	err := h.client.Call(ctx, "cancel_form", gateway.EndRequest{Acting: h.as, Subject: subject, Reason: why}, nil)
	if parley.CodeOf(err) != parley.AlreadyAnswered {
		return ruling{}, false
	}
	raw, err := h.outcome(ctx, form, lastWords)
	if err != nil {
		return ruling{}, false
	}
	return read(raw), true
}

// failed says why there is no decision.
func (h *raising) failed(ctx context.Context, err error) ruling {
	if ctx.Err() != nil {
		return undecided("the hook was stopped")
	}
	return undecided("%s", messageOf(err))
}

// standing is what a standing rule decided.
func standing(allowed bool) ruling {
	if allowed {
		return ruling{decided: true, allowed: true, reason: "always allowed, by a rule in Parley"}
	}
	return ruling{decided: true, reason: "never allowed, by a rule in Parley"}
}

// read gives what an approval came to. Only an answer decides; one that was taken back or has expired does not.
func read(raw json.RawMessage) ruling {
	var o struct {
		Status  view.FormStatus
		Allowed bool
		Values  struct{ Decision, Reason string }
		Note    string
	}
	switch err := json.Unmarshal(raw, &o); {
	case err != nil:
		return undecided("the node's answer cannot be read: %v", err)
	case o.Status == view.StatusDeclined:
		return ruling{decided: true, reason: because("declined in Parley", o.Note)}
	case o.Status != view.StatusAnswered:
		return undecided("the question was %s", o.Status)
	case o.Allowed:
		return ruling{decided: true, allowed: true, reason: because("allowed in Parley", o.Values.Reason)}
	case o.Values.Decision == mailbox.Deny, o.Values.Decision == mailbox.Never:
		return ruling{decided: true, reason: because("denied in Parley", o.Values.Reason)}
	}
	return undecided("the decision %q is none of the host's", o.Values.Decision)
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
