package gateway

import (
	"context"
	"strconv"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/gateway/web"
)

// firstPaint is how many messages a page begins with.
const firstPaint = 50

// inbox shows an agent's mail.
func (v *viewing) inbox() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	ctx := v.r.Context()
	end, cursor, err := endOfMail(ctx, v.agent)
	if err != nil {
		return err
	}
	st, before := web.Stream{Newest: true}, end
	if text := v.r.URL.Query().Get("before"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return parley.Refuse(parley.InvalidArgument, "%.40q is no message number", text)
		}
		before, st.Newest = min(n, end), false
	}
	messages, before, err := window(ctx, v.agent, before, firstPaint)
	if err != nil {
		return err
	}
	st.Before = before
	for _, e := range messages {
		st.Cards = append(st.Cards, v.s.card(ctx, local{v.as, v.agent}, e, nil))
	}
	title := "Inbox"
	if v.as != "" {
		title = "Inbox of " + sanitize.Line(v.as)
	}
	return v.show(200, "inbox.html", web.Layout{Title: title, Cursor: strconv.FormatUint(cursor, 10), Main: st})
}

// window gives the last messages before a number that were not dismissed, as many as are wanted and there is room for, and the
// number before which there are more.
func window(ctx context.Context, a api.Agent, before uint64, want int) (found []view.Message, more uint64, err error) {
	for step := uint64(want); ; step *= 2 {
		first := before - min(before, step)
		kept, err := shownBetween(ctx, a, first, before)
		if err != nil {
			return nil, 0, err
		}
		found = append(kept, found...)
		if before = first; before > 0 && len(found) < want {
			continue
		}
		fit, err := api.NewestFitting(found[len(found)-min(len(found), want):])
		if err == nil && len(fit) < len(found) {
			before = fit[0].Number
		}
		return fit, before, err
	}
}

// shownBetween gives the messages with numbers from first to before that were not dismissed.
func shownBetween(ctx context.Context, a api.Agent, first, before uint64) (shown []view.Message, err error) {
	for first < before {
		in, err := a.Mail().Page(ctx, view.MessageFilter{All: true}, first, int(before-first))
		if err != nil {
			return nil, err
		}
		for _, e := range in.Messages {
			if e.Number < before && !e.Dismissed {
				shown = append(shown, e)
			}
		}
		if in.Next == 0 {
			break
		}
		first = in.Next
	}
	return shown, nil
}

// endOfMail is the number that an agent's next message will have, and a cursor from which that one will be followed.
// Mail is read from a number on, so the end is looked for by halves.
func endOfMail(ctx context.Context, a api.Agent) (end, cursor uint64, err error) {
	isThere := func(n uint64) bool {
		if err != nil {
			return false
		}
		var in view.Inbox
		if in, err = a.Mail().Page(ctx, view.MessageFilter{All: true}, n, 1); cursor == 0 {
			cursor = in.Cursor // the first: what comes while the others are read is shown again
		}
		return len(in.Messages) > 0
	}
	low, high := uint64(0), uint64(firstPaint) // below low all are there
	for isThere(high) {
		low, high = high+1, high*2
	}
	for low < high {
		if middle := low + (high-low)/2; isThere(middle) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, cursor, err
}
