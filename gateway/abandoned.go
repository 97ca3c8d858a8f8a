package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// originOf returns the origin of a form that is asked with a hold. It is in the log, so that a node which starts knows which forms
// processes waited for: a process may have gone with the node before. The session is that of the hold. Of a call without an ID of its
// own, the ID says which call it is, and of which part.
func originOf(h api.Hold) *events.Origin {
	o := &events.Origin{Dialect: events.Held, Session: h.Session}
	if h.Use == "" && h.Call != "" {
		o.ID = h.Call + " " + h.Part
	}
	return o
}

// wasHeld reports whether a form was asked with a hold by whose mailbox it is in.
func wasHeld(m view.Message) bool {
	return m.Sent && m.Origin != nil && m.Origin.Dialect == events.Held
}

// takeUpTime is how long a form of before the node's start waits to be held again. A process that lives tries several times a second,
// and gives up after half of it.
const takeUpTime = 30 * time.Second

// noHolder is why such a form ends.
const noHolder = "what waited for the answer has not come back since the node was started"

// run withdraws forms that no process holds until ctx ends: those of before the start that are not taken up in time, and those that
// could not be withdrawn when their processes went.
func (h *holds) run(ctx context.Context) {
	guests := h.server.coders.guests()
	left := h.findAll(ctx, guests)
	close(h.found)
	elsewhere, err := h.server.coding.Addresses(ctx)
	if err != nil {
		h.server.monitor.Failed(ctx, "hold", err)
	}
	elsewhere = slices.DeleteFunc(elsewhere, func(id capabilities.ID) bool { return slices.Contains(guests, id) })
	for _, address := range elsewhere { // whose coding agents were on a machine that had the node before
		h.server.coders.open(address)
	}
	for left = append(left, h.findAll(ctx, elsewhere)...); rests(ctx, takeUpTime); left = h.findAll(ctx, left) {
		h.settle(ctx)
	}
}

// findAll is find for each of some guests. It returns those for which it has to be tried again.
func (h *holds) findAll(ctx context.Context, guests []capabilities.ID) (left []capabilities.ID) {
	for _, guest := range guests {
		if passes(h.find(ctx, guest)) {
			left = append(left, guest)
		}
	}
	return left
}

// find notes the forms that processes of a coding agent's guest held before the node's start, or hold now. Calls of its living sessions that
// were allowed, and of which no end was reported, count as they did.
func (h *holds) find(ctx context.Context, guest capabilities.ID) error {
	agent := actors.AgentOf(h.server.node, guest)
	for m, err := range agent.Mail().All(ctx, view.MessageFilter{All: true, Open: true}) {
		if err != nil {
			h.server.monitor.Failed(ctx, "hold", err)
			return err
		}
		if wasHeld(m) {
			h.abandon(m.MessageID, func(ctx context.Context) error {
				_, err := agent.Cancel(ctx, capabilities.FormID(m.MessageID), noHolder)
				return err
			})
		}
	}
	name, err := h.server.backend.NameOf(ctx, guest)
	if err != nil { // the host holds it no more: nobody acts for it by name
		return nil //nolint:nilerr // as said
	}
	for session, coder := range h.server.coding.Processes(guest) {
		asked, err := agent.Mail().FormsOf(ctx, events.Origin{Dialect: events.Held, Session: session})
		if err != nil {
			h.server.monitor.Failed(ctx, "hold", err)
			return err
		}
		for _, m := range asked.Messages {
			call, part, counts := strings.Cut(m.Origin.ID, " ")
			if !wasHeld(m) || m.Dismissed || !counts || m.Outcome == nil || !m.Outcome.Allowed {
				continue
			}
			hold := api.Hold{Acting: api.Acting{As: name}, Form: m.MessageID, Session: session, Part: part, Call: call}
			h.mu.Lock()
			isIt := func(one *held) bool { return one.Form == hold.Form }
			if !slices.ContainsFunc(h.gone[name], isIt) && !slices.ContainsFunc(h.open, isIt) {
				h.keep(&held{Hold: hold, coder: coder})
			}
			h.mu.Unlock()
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
	code := parley.CodeOf(err)
	return parley.Passes(err) || code == parley.Internal || code == parley.AnswerPending
}
