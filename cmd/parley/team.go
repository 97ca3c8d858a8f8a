package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

// teamVerbs are what is done with a team that is named.
const teamVerbs = "add AGENT..., remove AGENT..., show or rm"

func teamCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "team ls | team NAME add|remove|show|rm [AGENT...]",
		Short: "Have agents be a team: they write to each other, and see who is there",
		Long: `The members of a team may write to each other, and to all by the name of the team. The sessions of a coding agent are in the teams of the agent
of their folder; "parley setup NAME --team TEAM" puts that in. All of it is by grants, which "parley grants" lists; who leaves loses these, and keeps
what it had otherwise. A lease of a member counts among the members.`,
		Example: "  parley team shop add planner reviewer\n  parley team shop show\n  parley team ls",
		Args:    atLeast("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			verb := "show"
			if len(args) > 1 {
				verb = args[1]
			}
			got, err := view.Teams{}, error(nil)
			switch {
			case len(args) == 1 && args[0] == "ls":
				if got, err = api.ListTeams.Do(c.Context(), env, api.ListTeamsRequest{Acting: env.acting()}); err != nil {
					return err
				}
				env.noteNone(len(got.Teams), "no teams")
				return env.print(got.Teams, func() string { return teamLines(got, true) })
			case verb == "show" && len(args) <= 2:
				got, err = api.ListTeams.Do(c.Context(), env, api.ListTeamsRequest{Acting: env.acting(), Team: args[0]})
			case (verb == "add" || verb == "remove") && len(args) > 2:
				r := api.SetTeamRequest{Acting: env.acting(), Team: args[0], Add: args[2:]}
				if verb == "remove" {
					r.Add, r.Remove = nil, args[2:]
				}
				got, err = api.SetTeam.Do(c.Context(), env, r)
			case verb == "rm" && len(args) == 2:
				if err := api.EndTeam.Run(c.Context(), env, api.EndTeamRequest{Acting: env.acting(), Team: args[0]}); err != nil {
					return err
				}
				return env.print(map[string]string{"ended": args[0]}, func() string { return "team " + terminal.Quoted(args[0]) + " has ended" })
			default:
				return usage(c, "what about the team %s? %s", terminal.Quoted(args[0]), teamVerbs)
			}
			if err != nil {
				return err
			}
			return env.print(got.Teams, func() string { return teamLines(got, false) })
		},
	}
}

// teamLines returns teams with their members, a line each; short: a line for each team.
func teamLines(got view.Teams, short bool) string {
	var lines []string
	for _, t := range got.Teams {
		var names []string
		for _, m := range t.Members {
			if m.Of.IsZero() {
				names = append(names, terminal.Visible(memberName(m)))
			}
		}
		lines = append(lines, fmt.Sprintf("%s: %s", terminal.Visible(t.Team), strings.Join(names, ", ")))
		if short {
			continue
		}
		for _, m := range t.Members {
			line := fmt.Sprintf("  %s, %s", terminal.Visible(memberName(m)), m.Status)
			if m.Title != "" {
				line += ", " + terminal.Quoted(m.Title)
			}
			if len(m.Leases) > 0 {
				line += ", leases " + leaseNumbers(m.Leases)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func memberName(m view.TeamMember) string {
	if m.Name != "" {
		return m.Name
	}
	return m.Agent.String()
}
