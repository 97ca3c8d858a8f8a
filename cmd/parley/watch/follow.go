package watch

import (
	"context"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/client"
)

// Messages that the follower sends to the program.
type (
	arrived   []view.Message       // they are new or have changed
	connected struct{}             // the node is reached
	cutOff    struct{ why string } // the node is not reached
	failed    struct{ err error }  // it cannot go on
)

const (
	earlier    = 200                    // settled messages that are shown at the beginning
	retryPause = 500 * time.Millisecond // between attempts to reach a node that is away
)

// follow sends the mailbox and each change of it, until ctx ends.
func follow(ctx context.Context, node *client.Client, send func(tea.Msg)) {
	var at client.Cursor
	for ctx.Err() == nil {
		err := read(ctx, node, &at, send)
		switch code := parley.CodeOf(err); {
		case ctx.Err() != nil:
			return
		case code == parley.NotRunning || code == parley.Internal || code == parley.NodeUnreachable:
			send(cutOff{parley.AsError(err).Message})
		default:
			send(failed{err})
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// read sends what the mailbox has, and then what changes after a cursor, until an error.
func read(ctx context.Context, node *client.Client, at *client.Cursor, send func(tea.Msg)) error {
	if *at == "" {
		all, cursor, err := begin(ctx, node)
		if err != nil {
			return err
		}
		send(arrived(all))
		*at = cursor
	} else if err := api.Locate.Run(ctx, node, api.NameRequest{Name: "@self"}); err != nil {
		return err
	}
	send(connected{})
	known := map[capabilities.ID]bool{}
	if err := names(ctx, node, known, send); err != nil {
		return err
	}
	for m, err := range node.Follow(ctx, client.View{}, *at) {
		if err != nil {
			return err
		}
		send(arrived{m.Message})
		*at = m.Cursor
		if !known[m.From] {
			known[m.From] = true // of another node, it is not listed
			if err := names(ctx, node, known, send); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// begin returns the messages that wait and the last ones, and the cursor of what comes after them.
func begin(ctx context.Context, node *client.Client) (all []view.Message, at client.Cursor, err error) {
	for r := (api.ListMessagesRequest{MessageFilter: client.View{Pending: true}}); ; {
		page, err := api.ListMessages.Do(ctx, node, r)
		if err != nil {
			return nil, "", err
		}
		if at == "" {
			at = client.Cursor(strconv.FormatUint(max(page.Cursor, 1), 10))
		}
		all = append(all, page.Messages...)
		if r.First = page.Next; page.Next == 0 {
			break
		}
	}
	last, err := api.ListMessages.Do(ctx, node, api.ListMessagesRequest{Last: earlier})
	if err != nil {
		return nil, "", err
	}
	return append(all, last.Messages...), at, nil
}

// maxAgents bounds the agents whose names are read.
const maxAgents = 5000

// names sends the agents that the reader sees, for their names.
func names(ctx context.Context, node *client.Client, known map[capabilities.ID]bool, send func(tea.Msg)) error {
	self, err := api.Locate.Do(ctx, node, api.NameRequest{Name: "@self"})
	if err != nil {
		return err
	}
	got := agents{self: self.ID}
	for at := (api.Paging{}); len(got.all) < maxAgents; {
		page, err := api.FetchAgents.Do(ctx, node, api.FetchAgentsRequest{Paging: at})
		if err != nil {
			return err
		}
		got.all = append(got.all, page.Agents...)
		if at.After = page.Next; page.Next == "" {
			break
		}
	}
	for i := range got.all {
		known[got.all[i].ID] = true
	}
	send(got)
	return nil
}
