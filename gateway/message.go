package gateway

import (
	"context"

	"parley/actors"
	"parley/actors/view"
)

// SendRequest sends words, with references as @edge:name or @name.
type SendRequest struct {
	Acting
	Recipient string `json:"recipient"`
	Text      string `json:"text"`
}

func send(ctx context.Context, a *actors.Agent, r SendRequest) (view.Sent, error) {
	return a.Send(ctx, r.Recipient, r.Text)
}

// ReplyRequest answers a message with words.
type ReplyRequest struct {
	Acting
	Subject
	Text string `json:"text"`
}

func reply(ctx context.Context, a *actors.Agent, r ReplyRequest) (view.Sent, error) {
	which, err := r.which()
	if err != nil {
		return view.Sent{}, err
	}
	return a.Reply(ctx, which, r.Text)
}

// AdoptRequest keeps what a message carries under Edge, as Name or under the edge's own name.
type AdoptRequest struct {
	Acting
	Subject
	Edge string `json:"edge"`
	Name string `json:"name,omitempty"`
}

func adopt(ctx context.Context, a *actors.Agent, r AdoptRequest) (Done, error) {
	which, err := r.which()
	if err != nil {
		return Done{}, err
	}
	return Done{}, a.Adopt(ctx, which, r.Edge, r.Name)
}

// MessageRequest is about one message.
type MessageRequest struct {
	Acting
	Subject
}

func dismiss(ctx context.Context, a *actors.Agent, r MessageRequest) (Done, error) {
	which, err := r.which()
	if err != nil {
		return Done{}, err
	}
	return Done{}, a.Dismiss(ctx, which)
}

func getMessage(ctx context.Context, a *actors.Agent, r MessageRequest) (view.Message, error) {
	which, err := r.which()
	if err != nil {
		return view.Message{}, err
	}
	return a.Message(ctx, which)
}

// ListMessagesRequest lists what the view shows, by number. If there is more than the limit, the response
// has as "next" the number to go on from as "first".
type ListMessagesRequest struct {
	Acting
	view.MessageFilter
	First uint64 `json:"first,omitempty"`
	Limit int    `json:"limit,omitempty"` // default 1,000, which is the most
}

func listMessages(ctx context.Context, a *actors.Agent, r ListMessagesRequest) (view.Inbox, error) {
	limit := r.Limit
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	in, err := a.Page(ctx, r.MessageFilter, r.First, limit)
	if in.Messages == nil {
		in.Messages = []view.Message{}
	}
	return in, err
}

// FollowMessagesRequest waits for messages within the view that changed after the cursor. What has changed already is in the
// response however short the wait is. When WaitMs has passed without any, there are none, and the cursor is that to call again with.
type FollowMessagesRequest struct {
	Acting
	view.MessageFilter
	Cursor uint64 `json:"cursor"`
	WaitMs *int64 `json:"waitMs,omitempty"` // default 25,000, at most 50,000
}

func followMessages(ctx context.Context, a *actors.Agent, r FollowMessagesRequest) (view.Inbox, error) {
	waiting, cancel, err := bounded(ctx, r.WaitMs)
	if err != nil {
		return view.Inbox{}, err
	}
	defer cancel()
	in, err := a.Since(ctx, r.MessageFilter, r.Cursor) // the wait is for what comes, and no bound of this look
	if err != nil || len(in.Messages) > 0 {
		return in, err
	}
	more, err := a.Changes(waiting, r.MessageFilter, in.Cursor)
	if err != nil && waiting.Err() != nil && waitPassed(err) {
		return in, nil
	}
	return more, err
}

// ReadLogRequest reads the agent's log: the events after a version, oldest first.
type ReadLogRequest struct {
	Acting
	After uint64 `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"` // default 500, at most 5,000
}

// ReadLogResponse has the events. If there are More, the version of the last is the "after" to go on from.
type ReadLogResponse struct {
	Entries []view.Entry `json:"entries"`
	More    bool         `json:"more"`
}

// logStep is how many events of a log are read at once.
const logStep = 64

func readLog(ctx context.Context, a *actors.Agent, r ReadLogRequest) (ReadLogResponse, error) {
	limit := r.Limit
	if limit <= 0 {
		limit = 500
	}
	limit = min(limit, 5000)
	got := ReadLogResponse{Entries: []view.Entry{}}
	var room pageRoom
	for len(got.Entries) < limit {
		step := min(logStep, limit-len(got.Entries))
		entries, err := a.Log(ctx, r.After, step)
		if err != nil {
			return got, err
		}
		for _, e := range entries {
			if got.More, err = room.isFull(e); got.More || err != nil {
				return got, err
			}
			got.Entries = append(got.Entries, e)
			r.After = e.Version
		}
		if len(entries) < step {
			return got, nil
		}
	}
	got.More = true
	return got, nil
}
