package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

// scheduleOptions say when a message is sent.
type scheduleOptions struct {
	at    moment
	every string
	zone  string
}

func (o *scheduleOptions) flags(c *cobra.Command) {
	c.Flags().Var(&o.at, "at", "send it then: a `time` from now (2h), 14:00, tomorrow or a moment (2026-01-31T12:00:00Z)")
	c.Flags().StringVar(&o.every, "every", "", "send it at the times of a `series`: '0 9 * * 1-5' (minute, hour, day, month, weekday) or @daily")
	c.Flags().StringVar(&o.zone, "tz", "", "the time `zone` of --every and of a time of day of --at, as Europe/Berlin (default: this machine's)")
	c.MarkFlagsMutuallyExclusive("at", "every")
}

func (o *scheduleOptions) isLater() bool { return !o.at.at.IsZero() || o.every != "" || o.zone != "" }

// send has a message sent later, and prints its schedule.
func (o *scheduleOptions) send(ctx context.Context, env *environment, to []string, p parley.Post) error {
	r := api.ScheduleRequest{Acting: env.acting(), Recipient: to[0], Recipients: to[1:], Post: p, Every: o.every, Zone: o.zone}
	if !o.at.at.IsZero() {
		at, err := o.at.in(o.zone)
		if err != nil {
			return err
		}
		r.At, r.Zone = capabilities.At(at), ""
	}
	return perform(ctx, env, api.Schedule, r, func(s view.Schedule) string {
		if s.Number == 0 { // the call is a repeated one
			return fmt.Sprintf("sent already, as %s", s.Last)
		}
		if s.Next == 0 {
			return fmt.Sprintf("schedule %d was not sent: %s", s.Number, terminal.Visible(s.Refused))
		}
		if r.At != 0 && s.Next != r.At {
			return fmt.Sprintf("scheduled already as %d for %s", s.Number, env.screen().Moment(s.Next.Std(), s.Next.String()))
		}
		return fmt.Sprintf("scheduled as %d for %s", s.Number, env.screen().Moment(s.Next.Std(), s.Next.String()))
	})
}

func scheduleCommand(env *environment) *cobra.Command {
	list := &cobra.Command{
		Use:     "ls",
		Short:   "List the messages that are sent later",
		Example: "  parley schedule ls --as fae",
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := api.ListSchedules.Do(c.Context(), env, api.ListSchedulesRequest{Acting: env.acting()})
			if err != nil {
				return err
			}
			env.noteNone(len(all.Schedules), "no message is scheduled")
			return env.print(all.Schedules, func() string {
				lines := make([]string, len(all.Schedules))
				for i, s := range all.Schedules {
					lines[i] = scheduleLine(s, env.screen())
				}
				return strings.Join(lines, "\n")
			})
		},
	}
	end := &cobra.Command{
		Use:     "rm NUMBER",
		Short:   "Send a message no more",
		Example: "  parley schedule rm 3",
		Args:    exactly("NUMBER"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.ParseUint(strings.TrimSuffix(args[0], "."), 10, 64)
			if err != nil {
				return usage(c, "%s is no number of a schedule: parley schedule ls lists them", terminal.Quoted(args[0]))
			}
			if err := api.EndSchedule.Run(c.Context(), env, api.EndScheduleRequest{Acting: env.acting(), Schedule: n}); err != nil {
				return err
			}
			return env.print(map[string]uint64{"ended": n}, func() string { return fmt.Sprintf("schedule %d has ended", n) })
		},
	}
	return noun(&cobra.Command{
		Use: "schedule", Short: "List and end messages that are sent later",
		Example: "  parley send bob 'what is open?' --every '0 9 * * 1-5'\n  parley schedule ls",
	}, list, end)
}

// scheduleLine returns a schedule as one line.
func scheduleLine(s view.Schedule, screen terminal.Screen) string {
	what := s.Text
	if s.Subject != "" {
		what = s.Subject
	}
	to := show.Party(s.ToName, s.To)
	if len(s.Also) > 0 {
		all := []view.Recipient{{Party: view.Party{ID: s.To, Name: s.ToName}}}
		for _, p := range s.Also {
			all = append(all, view.Recipient{Party: p})
		}
		to = show.Recipients(all)
	}
	line := fmt.Sprintf("%d. to %s: %s, ", s.Number, to, terminal.Quoted(what))
	if s.Next == 0 {
		return line + "not sent: " + terminal.Visible(s.Refused)
	}
	line += "at " + screen.Moment(s.Next.Std(), s.Next.String())
	if s.Every != "" {
		line += " (every " + terminal.Visible(s.Every)
		if s.Zone != "" {
			line += " in " + terminal.Visible(s.Zone)
		}
		line += ")"
	}
	if s.Refused != "" {
		line += "; the last was not sent: " + terminal.Visible(s.Refused)
	}
	return line
}
