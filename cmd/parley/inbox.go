package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley/gateway/client"
)

func (p *program) inboxCommand() *cobra.Command {
	var (
		view   client.View
		follow bool
	)
	c := &cobra.Command{
		Use:   "inbox",
		Short: "List messages",
		Long: `Lists what the agent received and has not dismissed. Messages keep their numbers for ever. Characters that
do not show themselves are shown escaped.`,
		Example: `  parley inbox
  parley inbox --pending               what waits for an answer
  parley inbox --all --as fae          also what fae sent and dismissed
  parley inbox --follow --json         every change, one envelope a line`,
	}
	c.Flags().BoolVar(&view.All, "all", false, "also what the agent sent and what it dismissed")
	c.Flags().BoolVar(&view.Pending, "pending", false, "only what waits for the agent's answer")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on showing what is new or changes")
	c.RunE = func(c *cobra.Command, _ []string) error {
		waiter := p.waiter(false)
		defer waiter.Close()
		if follow {
			return p.followInbox(c.Context(), waiter, view)
		}
		var all []json.RawMessage
		for m, err := range waiter.List(c.Context(), view) {
			if err != nil {
				return err
			}
			all = append(all, m.Raw)
		}
		return p.sayMessages(all)
	}
	return c
}

// followInbox shows what there is and what comes, until it is interrupted.
func (p *program) followInbox(ctx context.Context, waiter *client.Client, view client.View) error {
	for m, err := range waiter.Follow(ctx, view, "") {
		if ctx.Err() != nil {
			return &interrupted{} // the way to end it
		}
		if err == nil {
			err = p.sayMessage(m.Raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *program) sayMessages(messages []json.RawMessage) error {
	if p.options.json {
		if messages == nil {
			messages = []json.RawMessage{}
		}
		return p.sayJSON(messages)
	}
	var b strings.Builder
	for _, m := range messages {
		l, err := lineOf(m)
		if err != nil {
			return err
		}
		b.WriteString(l + "\n")
	}
	_, err := fmt.Fprint(p.stdout, b.String())
	return err
}

func (p *program) sayMessage(m json.RawMessage) error {
	if p.options.json {
		return p.sayJSON(m)
	}
	l, err := lineOf(m)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, l)
	return err
}

func lineOf(m json.RawMessage) (string, error) {
	var e envelope
	if err := json.Unmarshal(m, &e); err != nil {
		return "", fmt.Errorf("read a message: %w", err)
	}
	return e.line(), nil
}
