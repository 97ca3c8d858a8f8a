package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/events"
	"parley/mailbox"
)

// reviewFlags say who reviews an agent's calls, and what the reviewer may allow.
type reviewFlags struct {
	by, sample string
	cautious   bool
	wait       time.Duration
	within     mandateFlags
}

func (r *reviewFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.by, "by", "", "with review: the `agent` that reviews")
	f.StringVar(&r.sample, "sample", "0%", "with review: of the calls that it allows, so many of a hundred come to you all the same, at random")
	f.BoolVar(&r.cautious, "cautious", false, "with review: it may allow no call with any known risk")
	f.DurationVar(&r.wait, "wait", 0, "with review: how long a call waits for it, from 1s to 1h (default 1m)")
	f.StringArrayVar(&r.within.commands, "command", nil, "with review: it may allow this command `line`, or a part of it, and what else is named")
	f.StringArrayVar(&r.within.files, "files", nil, "with review: it may allow reading and writing files that match a `glob`, and what else is named")
	f.StringArrayVar(&r.within.read, "read", nil, "with review: it may allow reading files that match a `glob`, and what else is named")
	f.StringArrayVar(&r.within.tools, "tool", nil, "with review: it may allow calls of a `tool` that runs no commands and uses no files, and what else is named")
	f.StringArrayVar(&r.within.dirs, "folder", nil, "with review: what is named is for calls made in this `folder`")
}

// terms returns the terms of the policy of review; nil for another policy.
func (r *reviewFlags) terms(c *cobra.Command, policy string) (*parley.ReviewTerms, error) {
	said := c.Flags().Changed("by") || c.Flags().Changed("sample") || r.cautious || r.wait != 0 || r.within.says()
	switch {
	case policy != mailbox.Review && said:
		return nil, usage(c, "who reviews is said with the policy %s", mailbox.Review)
	case policy != mailbox.Review:
		return nil, nil
	case r.by == "":
		return nil, usage(c, "who reviews? give --by AGENT")
	case r.within.says() && len(r.within.dirs) == 0:
		return nil, usage(c, "where are the calls made that it may allow? give --folder")
	}
	sample, err := strconv.ParseUint(strings.TrimSuffix(r.sample, "%"), 10, 32)
	if err != nil {
		return nil, usage(c, "--sample is of a hundred calls, as in 10%%")
	}
	t := &parley.ReviewTerms{Reviewer: r.by, Sample: uint32(sample), Cautious: r.cautious, Wait: events.Delay(r.wait.Milliseconds())}
	t.Rules, err = r.within.rules()
	return t, err
}
