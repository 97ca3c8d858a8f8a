package backend

import (
	"context"
	"slices"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/coding"
	"parley/mailbox"
)

func send(ctx context.Context, a *actors.Agent, r api.SendRequest) (view.Sent, error) {
	return actors.Post(ctx, a, mailbox.PostMessage{To: r.Recipient, Also: r.Recipients, Post: r.Post})
}

func reply(ctx context.Context, a *actors.Agent, r api.ReplyRequest) (view.Sent, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Sent{}, err
	}
	return actors.Post(ctx, a, mailbox.PostMessage{Reply: ref, All: r.All, Post: r.Post})
}

func schedule(ctx context.Context, a *actors.Agent, r api.ScheduleRequest) (view.Schedule, error) {
	return a.Mail().Schedules().Add(ctx, mailbox.ScheduleMessage{To: r.Recipient, Also: r.Recipients, Post: r.Post, At: r.At, Every: r.Every, Zone: r.Zone})
}

func listSchedules(ctx context.Context, a *actors.Agent, _ api.ListSchedulesRequest) (view.Schedules, error) {
	return a.Mail().Schedules().List(ctx)
}

func endSchedule(ctx context.Context, a *actors.Agent, r api.EndScheduleRequest) (api.Done, error) {
	return api.Done{}, a.Mail().Schedules().End(ctx, r.Schedule)
}

func acknowledge(ctx context.Context, a *actors.Agent, r api.MessageRequest) (api.Done, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, a.Mail().Acknowledge(ctx, ref)
}

func adopt(ctx context.Context, a *actors.Agent, r api.AdoptRequest) (api.Done, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, a.Adopt(ctx, ref, r.Edge, r.Name)
}

func dismiss(ctx context.Context, a *actors.Agent, r api.MessageRequest) (api.Done, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, a.Dismiss(ctx, ref)
}

func restoreMessage(ctx context.Context, a *actors.Agent, r api.MessageRequest) (api.Done, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, a.Restore(ctx, ref)
}

func snooze(ctx context.Context, a *actors.Agent, r api.SnoozeRequest) (api.Done, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, a.Mail().Snooze(ctx, ref, r.Until)
}

func moveMessages(ctx context.Context, a *actors.Agent, r api.MoveMessagesRequest) (api.MoveMessagesResponse, error) {
	var resp api.MoveMessagesResponse
	c := mailbox.MoveMessages{Do: r.Do, Until: r.Until}
	switch {
	case len(r.Messages) == 0:
		return resp, parley.Refuse(parley.InvalidArgument, "which messages? give their numbers or IDs")
	case len(r.Messages) > api.MaxMoved:
		return resp, parley.Refuse(parley.TooLarge, "%d messages are over the limit of %d", len(r.Messages), api.MaxMoved).WithHint("move them in several calls")
	case !slices.Contains([]string{"dismiss", "restore", "snooze"}, r.Do):
		return resp, parley.Refuse(parley.InvalidArgument, "%s is no way to move messages: dismiss, restore or snooze", parley.Quoted(r.Do, 40))
	case r.Do != "snooze" && r.Until != 0:
		return resp, parley.Refuse(parley.InvalidArgument, "only what is snoozed has a time")
	}
	for _, m := range r.Messages {
		ref, err := m.Parse()
		if err != nil {
			return resp, err
		}
		c.Messages = append(c.Messages, ref)
	}
	refused, err := a.Mail().Move(ctx, c)
	for i, why := range refused {
		if why == nil {
			resp.Moved++
		} else {
			resp.Refused = append(resp.Refused, api.Unmoved{FormRef: r.Messages[i], Error: api.Shown(why)})
		}
	}
	return resp, err
}

func markRead(ctx context.Context, a *actors.Agent, r api.MarkReadRequest) (api.MarkReadResponse, error) {
	if len(r.Numbers) == 0 && r.Unread {
		return api.MarkReadResponse{}, parley.Refuse(parley.InvalidArgument, "which messages? give their numbers")
	}
	left, err := a.Mail().MarkRead(ctx, r.Numbers, r.Unread)
	return api.MarkReadResponse{Unread: left}, err
}

func countMessages(ctx context.Context, a *actors.Agent, _ api.CountMessagesRequest) (view.MessageCounts, error) {
	return a.Mail().Counts(ctx)
}

// readMail reads what the agent that a principal acts for was not shown yet.
func readMail(ctx context.Context, b *Backend, p *principal, r api.ReadMailRequest) (api.ReadMailResponse, error) {
	agent, err := b.agent(ctx, p, r.As)
	if err != nil {
		return api.ReadMailResponse{}, err
	}
	if r.Count {
		return coding.Count(ctx, b.sessions, agent)
	}
	got, err := b.sessions.Read(ctx, agent, r)
	if err != nil || len(got.Mail) > 0 || r.WaitMs == 0 || r.Message != "" {
		return got, err
	}
	waiting, cancel, err := bounded(ctx, &r.WaitMs)
	if err != nil {
		return got, err
	}
	defer cancel()
	more, err := coding.Await(waiting, b.sessions, agent, r)
	if err != nil && waiting.Err() != nil && waitPassed(err) {
		return got, nil
	}
	return more, err
}

func getMessage(ctx context.Context, a *actors.Agent, r api.MessageRequest) (view.Message, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Message{}, err
	}
	return a.Message(ctx, ref)
}

func listMessages(ctx context.Context, a *actors.Agent, r api.ListMessagesRequest) (view.Inbox, error) {
	limit := r.Limit
	if limit <= 0 || limit > api.MaxPage {
		limit = api.MaxPage
	}
	var in view.Inbox
	var err error
	if r.Last > 0 {
		in, err = a.Mail().Last(ctx, r.MessageFilter, r.Before, min(r.Last, api.MaxPage))
	} else {
		in, err = a.Mail().Page(ctx, r.MessageFilter, r.First, limit)
	}
	if in.Messages == nil {
		in.Messages = []view.Message{}
	}
	return in, err
}

func search(ctx context.Context, a *actors.Agent, r api.SearchRequest) (view.Found, error) {
	q := actors.Search{Search: r.Search, From: r.From, To: r.To, DecidedBy: r.DecidedBy, Filter: r.MessageFilter, Before: r.Before, Skip: r.Skip, Limit: r.Limit}
	if q.Filter == (view.MessageFilter{}) {
		q.Filter.All = true
	}
	if r.Thread != (api.FormRef{}) {
		var err error
		if q.Thread, err = r.Thread.Parse(); err != nil {
			return view.Found{}, err
		}
	}
	return a.Mail().Search(ctx, q)
}

func followMessages(ctx context.Context, a *actors.Agent, r api.FollowMessagesRequest) (view.Inbox, error) {
	waiting, cancel, err := bounded(ctx, r.WaitMs)
	if err != nil {
		return view.Inbox{}, err
	}
	defer cancel()
	in, err := a.Mail().Since(ctx, r.MessageFilter, r.Cursor) // the wait does not bound the first look
	if err != nil || len(in.Messages) > 0 {
		return in, err
	}
	more, err := a.Mail().Changes(waiting, r.MessageFilter, in.Cursor)
	if err != nil && waiting.Err() != nil && waitPassed(err) {
		return in, nil
	}
	return more, err
}

// logStep is the number of events that are read at once.
const logStep = 64

func readLog(ctx context.Context, a *actors.Agent, r api.ReadLogRequest) (api.ReadLogResponse, error) {
	got, err := readLogPage(ctx, a, r)
	if err != nil || r.WaitMs == 0 || len(got.Entries) > 0 || len(got.Missing) > 0 {
		return got, err
	}
	waiting, cancel, err := bounded(ctx, &r.WaitMs)
	if err != nil {
		return got, err
	}
	defer cancel()
	if now, err := a.Beyond(waiting, r.After); err != nil || now <= r.After {
		return got, err
	}
	return readLogPage(ctx, a, r)
}

func readLogPage(ctx context.Context, a *actors.Agent, r api.ReadLogRequest) (api.ReadLogResponse, error) {
	limit := r.Limit
	if limit <= 0 {
		limit = 500
	}
	limit = min(limit, 5000)
	got := api.ReadLogResponse{Entries: []view.Entry{}}
	if r.Journal {
		l, err := a.Log(ctx, r.After, 0)
		if err != nil {
			return got, err
		}
		r.After = max(r.After, l.Archived)
	}
	var room api.PageRoom
	for !got.More {
		step := min(logStep, limit-len(got.Entries))
		l, err := a.Log(ctx, r.After, step)
		if err != nil {
			return got, err
		}
		got.Archived = l.Archived
		err = a.Mail().InTurn(ctx, func() (err error) {
			for _, e := range l.Entries {
				if got.More, err = room.IsFull(e); got.More || err != nil {
					return err
				}
				got.Entries = append(got.Entries, e)
				r.After = e.Version
			}
			return nil
		})
		if err != nil {
			return got, err
		}
		for _, m := range l.Missing {
			if !got.More || m.First <= r.After { // the others are in the next page
				got.Missing = append(got.Missing, m)
			}
		}
		if !got.More && len(l.Entries) < step {
			return got, nil
		}
		got.More = got.More || len(got.Entries) == limit
	}
	return got, nil
}
