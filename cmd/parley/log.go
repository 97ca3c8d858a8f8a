package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"parley"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/api"
)

// entry is one event of a log, as the node sends it.
type entry struct {
	Commit  uint64            `json:"commit"`
	Version uint64            `json:"version"`
	Type    string            `json:"type"`
	At      capabilities.Time `json:"at"`
	Payload json.RawMessage   `json:"payload"`
}

func (p *program) logCommand() *cobra.Command {
	var agent string
	c := &cobra.Command{
		Use:   "log",
		Short: "Print the agent's events",
		Long: `Prints the events of a mailbox, oldest first: the commit of the journal that each stands in, the mailbox's
version after it, when, and what. What a mailbox is, is the fold of these.`,
		Example: "  parley log\n  parley log --agent fae --json",
	}
	c.Flags().StringVar(&agent, "agent", "", "the log of the agent held under this `name`")
	_ = c.RegisterFlagCompletionFunc("agent", p.completeFlag(gateway.CompleteNames)) // the flag exists
	c.RunE = func(c *cobra.Command, _ []string) error {
		as, err := p.readerOf(agent)
		if err != nil {
			return err
		}
		client := p.client()
		defer client.Close()
		for after, more := uint64(0), true; more; {
			var page struct {
				Entries []json.RawMessage `json:"entries"`
				More    bool              `json:"more"`
			}
			if err := client.Call(c.Context(), "read_log", api.ReadLogRequest{Acting: as, After: after}, &page); err != nil {
				return err
			}
			if after, err = p.sayEntries(page.Entries, after); err != nil {
				return err
			}
			more = page.More
		}
		return nil
	}
	return c
}

// readerOf gives whose authority the log of an agent is read with: the agent's own, which the host has.
func (p *program) readerOf(agent string) (api.Acting, error) {
	if agent == "" || agent == p.options.as {
		return p.acting(), nil
	}
	if p.options.as != "" && capabilities.Special(p.options.as) != capabilities.NameHost {
		return api.Acting{}, parley.Refuse(parley.NotPermitted, "%s may read its own log, not that of %s", p.options.as, agent)
	}
	return api.Acting{As: agent}, nil
}

// sayEntries prints events and gives the version of the last.
func (p *program) sayEntries(entries []json.RawMessage, after uint64) (uint64, error) {
	for _, raw := range entries {
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return 0, notANode(err)
		}
		after = e.Version
		err := p.say(raw, func() string {
			return fmt.Sprintf("%d %d %s %s %s", e.Commit, e.Version, e.At, e.Type, terminal.Visible(string(e.Payload)))
		})
		if err != nil {
			return 0, err
		}
	}
	return after, nil
}
