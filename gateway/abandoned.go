package gateway

import (
	"context"
	"slices"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
)

// takeUpTime is how long a form of before the node's start waits to be held again. A process that lives tries several times a second,
// and gives up after half of it.
const takeUpTime = 30 * time.Second

// noHolder is why such a form ends.
const noHolder = "nobody waits for the answer any more"

// run withdraws forms that no process holds until ctx ends: those of before the start that are not taken up in time, and those that
// could not be withdrawn when their processes went.
func (h *holds) run(ctx context.Context) {
	guests := h.server.coders.guests()
	for {
		guests = slices.DeleteFunc(guests, func(guest capabilities.ID) bool { return !passes(h.find(ctx, guest)) })
		if !rests(ctx, takeUpTime) {
			return
		}
		h.settle(ctx)
	}
}

// find notes the forms that processes of a coding agent's guest held before the node's start, or hold now.
func (h *holds) find(ctx context.Context, guest capabilities.ID) error {
	agent := actors.AgentOf(h.server.node, guest)
	for m, err := range agent.Mail().All(ctx, view.MessageFilter{All: true, Open: true}) {
		if err != nil {
			h.server.monitor.Failed(ctx, "hold", err)
			return err
		}
		if m.Sent && m.Held {
			h.abandon(m.MessageID, func(ctx context.Context) error {
				_, err := agent.Cancel(ctx, capabilities.FormID(m.MessageID), noHolder)
				return err
			})
		}
	}
	return nil
}

// abandon notes a form that settle withdraws, and what cancels it.
func (h *holds) abandon(form capabilities.ID, end func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.abandoned == nil {
		h.abandoned = map[capabilities.ID]func(context.Context) error{}
	}
	h.abandoned[form] = end
}

// settle withdraws the noted forms that are not held. One that cannot be withdrawn now stays noted.
func (h *holds) settle(ctx context.Context) {
	h.mu.Lock()
	all := h.abandoned
	h.abandoned = nil
	h.mu.Unlock()
	for form, end := range all {
		if h.isHeld(form) { // and is withdrawn once it is not
			continue
		}
		if err := end(ctx); passes(err) {
			h.abandon(form, end)
		}
	}
}

// isHeld reports whether a process waits for a form.
func (h *holds) isHeld(form capabilities.ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.open, func(one *held) bool { return one.Form == form })
}

// passes reports whether what has failed may be done later.
func passes(err error) bool {
	switch parley.CodeOf(err) {
	case parley.Internal, parley.RateLimited, parley.Timeout, parley.AnswerPending:
		return true
	}
	return false
}
