package actors

import (
	"context"
	"iter"
	"math"

	"parley/events"
)

// Inbox lists the messages of a view by number.
func (a *Agent) Inbox(ctx context.Context, v View) (Inbox, error) {
	return a.list(ctx, v, 0, 0, math.MaxInt)
}

// Page is Inbox from a message number on, and no more than limit messages. If there are more, Next is the
// number from which to go on.
func (a *Agent) Page(ctx context.Context, v View, first uint64, limit int) (Inbox, error) {
	return a.list(ctx, v, 0, first, limit)
}

// Since gives the messages of a view that changed after a cursor, as they are now, with the cursor to go on from. It does not
// wait for any.
func (a *Agent) Since(ctx context.Context, v View, cursor uint64) (Inbox, error) {
	return a.list(ctx, v, cursor, 0, math.MaxInt)
}

// list lists the messages of a view that changed after a cursor, from a number on.
func (a *Agent) list(ctx context.Context, v View, cursor, first uint64, limit int) (Inbox, error) {
	return visitFor(ctx, a, func(b *box) (Inbox, error) {
		b.noteReceiptsToShow()
		in := Inbox{Messages: []Envelope{}, Cursor: b.state.Version}
		show, all := b.view(), b.state.Messages()
		for _, m := range all[min(first, uint64(len(all))):] {
			if m.Changed <= cursor {
				continue
			}
			e, err := show.envelope(m)
			if err != nil {
				return in, err
			}
			if !v.shows(e) {
				continue
			}
			if len(in.Messages) == limit {
				in.Next = m.Number
				break
			}
			in.Messages = append(in.Messages, e)
		}
		return in, nil
	})
}

// Message gives one message.
func (a *Agent) Message(ctx context.Context, w Which) (Envelope, error) {
	return visitFor(ctx, a, func(b *box) (Envelope, error) {
		b.noteReceiptsToShow()
		m, err := b.state.Find(string(w))
		if err != nil {
			return Envelope{}, err
		}
		return b.view().envelope(m)
	})
}

// Changes waits until messages within the view have changed after the cursor, and gives them as they are
// now, with the cursor to go on from. When ctx ends first, it gives none and the same cursor, and no error.
func (a *Agent) Changes(ctx context.Context, v View, cursor uint64) (Inbox, error) {
	changed := make(chan struct{}, 1)
	a.node.waits.watch(a.id, changed)
	defer a.node.waits.unwatch(a.id, changed)
	for {
		in, err := a.Since(ctx, v, cursor)
		if ctx.Err() != nil {
			return Inbox{Messages: []Envelope{}, Cursor: cursor}, nil
		}
		if err != nil || len(in.Messages) > 0 {
			return in, err
		}
		cursor = in.Cursor
		select {
		case <-changed:
		case <-ctx.Done():
			return in, nil
		case <-a.node.life.Done():
			return in, errClosing()
		}
	}
}

// Follow yields the messages of a view that changed after a cursor (0: all of them), then each that changes,
// until ctx ends or an error, which comes last.
func (a *Agent) Follow(ctx context.Context, v View, cursor uint64) iter.Seq2[Envelope, error] {
	return func(yield func(Envelope, error) bool) {
		for ctx.Err() == nil {
			in, err := a.Changes(ctx, v, cursor)
			if err != nil {
				yield(Envelope{}, err)
				return
			}
			cursor = in.Cursor
			for _, e := range in.Messages {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Log gives events of the agent's mailbox, from the one after a version on, oldest first, at most limit.
func (a *Agent) Log(ctx context.Context, after uint64, limit int) ([]Entry, error) {
	logged, err := a.node.journal.Events(ctx, a.id, after, limit)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(logged))
	for i, l := range logged {
		entries[i] = Entry{
			Commit: l.Commit, Version: l.Version, Type: events.Name(l.Event), Schema: events.Version(l.Event),
			At: l.At, Payload: l.Event,
		}
	}
	return entries, nil
}
