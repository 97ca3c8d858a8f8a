package web

import (
	"context"
	"net/http"
	"strconv"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// firstPaint is the number of messages that a page begins with.
const firstPaint = 50

// inboxPart is the newest part of an agent's mail, or the part before a number.
type inboxPart struct {
	Cards  []card
	Before uint64 // there is more before this number; 0 if there is none
	Newest bool   // it is the end of the mail
}

// inbox shows an agent's mail.
func (p *page) inbox() error {
	if err := p.readsOnly(); err != nil {
		return err
	}
	ctx := p.ctx()
	end, cursor, err := endOfMail(ctx, p.agent)
	if err != nil {
		return err
	}
	in, before := inboxPart{Newest: true}, end
	if text := p.r.URL.Query().Get("before"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return parley.Refuse(parley.InvalidArgument, "%.40q is no message number", text)
		}
		before, in.Newest = min(n, end), false
	}
	messages, before, err := window(ctx, p.agent, before, firstPaint)
	if err != nil {
		return err
	}
	in.Before = before
	for _, e := range messages {
		in.Cards = append(in.Cards, p.card(ctx, local{p.as, p.agent}, e, nil))
	}
	title := "Inbox"
	if p.as != "" {
		title = "Inbox of " + sanitize.Line(p.as)
	}
	return p.show(http.StatusOK, "inbox.html", layout{Title: title, Cursor: strconv.FormatUint(cursor, 10), Main: in})
}

// window returns the last messages before a number that were not dismissed, as many as are wanted and fit on a page. It
// also returns the number before which there are more.
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

// shownBetween returns the messages with numbers from first to before that were not dismissed.
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

// endOfMail returns the number of an agent's next message, and a cursor from which to follow it. Mail is read from a
// number on, so endOfMail finds the end by bisection.
func endOfMail(ctx context.Context, a api.Agent) (end, cursor uint64, err error) {
	exists := func(n uint64) bool {
		if err != nil {
			return false
		}
		var in view.Inbox
		if in, err = a.Mail().Page(ctx, view.MessageFilter{All: true}, n, 1); cursor == 0 {
			cursor = in.Cursor // of the first look: messages that come during the others are shown again
		}
		return len(in.Messages) > 0
	}
	low, high := uint64(0), uint64(firstPaint) // all messages below low exist
	for exists(high) {
		low, high = high+1, high*2
	}
	for low < high {
		if middle := low + (high-low)/2; exists(middle) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, cursor, err
}
