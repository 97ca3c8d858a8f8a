package gateway

import (
	"cmp"
	"context"
	"slices"
	"time"

	"parley"
	"parley/events"
	"parley/gateway/api"
)

// maxShown bounds the inputs in a message about a call, in bytes.
const maxShown = 4000

// Messages that calls ran with another input than the one that was allowed are bounded: what a coding agent starts can report such calls
// too, of those that were allowed.
const (
	maxRan   = 10 // of one guest
	ranEvery = time.Hour
)

// compare reports whether a call that has ended was made with another input than the one that was allowed: hooks of others can
// change it after Parley's has answered. The host is sent a message then. Each report of the end of a call is compared, since what the
// agent starts can report one as well: a false one hides nothing. The first that differs is told.
func (h *holds) compare(ctx context.Context, ended api.Hold) (other bool) {
	one := h.ofUse(ctx, ended)
	if one == nil || ended.Input == "" {
		return false
	}
	user := &toolUser{h.server, h.server.caller(ctx)}
	wanted, words := one.rule, "By a rule of yours, which allowed it with another one."
	if one.rule == "" {
		m, err := api.GetMessage.Do(ctx, user, api.MessageRequest{Acting: ended.Acting, FormRef: api.RefTo(one.Form.String())})
		if err != nil || m.Permission == nil || m.Outcome == nil || !m.Outcome.Allowed {
			return false
		}
		input := cmp.Or(m.Outcome.EditedInput, m.Permission.Input)
		wanted, words = api.InputDigest([]byte(input)), "Allowed was:\n"+parley.Cut(input, maxShown)
	}
	if !ended.Cut && wanted == api.InputDigest([]byte(ended.Input)) {
		return false
	}
	more, is := h.tells(one, time.Now())
	if !is {
		return true
	}
	if !more {
		words += "\n\nNo more such messages of this agent are sent within the hour."
	}
	err := api.Send.Run(ctx, user, api.SendRequest{Acting: ended.Acting, Recipient: "@host", Post: parley.Post{
		Header: parley.Header{Subject: "A call ran with another input than the one that was allowed", Priority: events.Urgent},
		Text:   "It ran with:\n" + parley.Cut(ended.Input, maxShown) + "\n\n" + words + "\n\nA hook of others has changed it after the decision, or a program that the agent has started says so. parley doctor names the hooks that can.",
		Plain:  true,
	}})
	if err != nil {
		h.server.monitor.Failed(ctx, "hold", err)
		h.mu.Lock()
		one.told = false // the next report of it is told
		h.mu.Unlock()
	}
	return true
}

// tells notes that the host is told of a call that ran with another input. It reports whether it is to be told, which happens once for
// each call, and whether another message may follow.
func (h *holds) tells(one *held, now time.Time) (more, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one.told {
		return false, false
	}
	sent := slices.DeleteFunc(h.ran[one.As], func(at time.Time) bool { return now.Sub(at) >= ranEvery })
	if is = len(sent) < maxRan; is {
		one.told = true
		sent = append(sent, now)
	}
	if h.ran == nil {
		h.ran = map[string][]time.Time{}
	}
	h.ran[one.As] = sent
	return len(sent) < maxRan, is
}

// ofUse returns the hold of the very call that has ended, nil if its session has no ID for it or nobody was asked.
func (h *holds) ofUse(ctx context.Context, ended api.Hold) *held {
	by := h.server.coders.caller(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	is := func(one *held) bool {
		return ended.Use != "" && one.Use == ended.Use && one.As == ended.As && one.Session == ended.Session && one.Part == ended.Part && mayEnd(by, one.coder)
	}
	for _, some := range [][]*held{h.gone[ended.As], h.open} {
		if at := slices.IndexFunc(some, is); at >= 0 {
			return some[at]
		}
	}
	return nil
}
