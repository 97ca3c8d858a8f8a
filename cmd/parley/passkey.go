package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
)

func passkeyCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "passkey",
		Short: "List passkeys, remove them, and require one for decisions",
		Long: `A decision that allows a call can be signed with a passkey: a key on a phone, a computer or a security key, which asks for a finger, a face or
a PIN. It is registered on the page (Settings, Passkeys), and the signature is in the proof of the decision. A decision that wants one
is made on the page; here it is refused, and so it is everywhere else. A denial needs none.`,
		Example: "  parley passkey ls\n  parley passkey require high\n  parley passkey rm phone",
	}
	c.AddCommand(passkeyListCommand(env), passkeyRequireCommand(env), passkeyRemoveCommand(env))
	return c
}

func passkeyListCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List passkeys, and which decisions want one",
		Long:    "Lists the registered passkeys with the page that each is good for and the fingerprint of its key, and which decisions want one.",
		Example: "  parley passkey ls",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := api.ListPasskeys.Do(c.Context(), env, api.ListPasskeysRequest{Acting: env.acting()})
			if err != nil {
				return err
			}
			return env.print(all, func() string { return passkeysText(&all, env.screen()) })
		},
	}
}

func passkeysText(all *api.ListPasskeysResponse, s terminal.Screen) string {
	var lines []string
	for _, k := range all.Passkeys {
		used := "not used yet"
		if k.Used != 0 {
			used = "used " + s.Moment(k.Used.Std(), k.Used.String())
		}
		lines = append(lines, fmt.Sprintf("%s  %s  %s  %s", terminal.Visible(k.Name), terminal.Visible(k.Origin), terminal.Visible(k.Fingerprint), used))
	}
	if len(lines) == 0 {
		lines = append(lines, "no passkeys")
	}
	for _, n := range all.Needs {
		whose := "allowing calls"
		if !n.Agent.IsZero() {
			whose += " of " + terminal.Visible(n.Name)
			if n.Name == "" {
				whose += n.Agent.String()
			}
		}
		lines = append(lines, whose+": "+needWords(n.Need))
	}
	if len(all.Needs) == 0 {
		lines = append(lines, "allowing calls: "+needWords(events.PasskeyNever))
	}
	return strings.Join(lines, "\n")
}

func needWords(n events.PasskeyNeed) string {
	switch n {
	case events.PasskeyAll:
		return "always with a passkey"
	case events.PasskeyHigh:
		return "with a passkey where the risk is high"
	}
	return "without a passkey"
}

func passkeyRequireCommand(env *environment) *cobra.Command {
	var agent string
	c := &cobra.Command{
		Use:   "require high|all|never",
		Short: "Require a passkey for decisions that allow a call",
		Long: `Says which decisions that allow a call have to be signed with a passkey: those on calls of high risk, all, or none. With --agent that is for
calls of one agent, in place of what is said for all; "default" ends that. What rules, mandates and reviewers allow needs no passkey.`,
		Example: "  parley passkey require high\n  parley passkey require all --agent fae\n  parley passkey require default --agent fae",
		Args:    exactly("high|all|never"),
		RunE: func(c *cobra.Command, args []string) error {
			r := api.RequirePasskeyRequest{Acting: env.acting(), Agent: agent, Need: events.PasskeyNeed(args[0])}
			if args[0] == "default" {
				if agent == "" {
					return usage(c, "default is for one agent: give --agent")
				}
				r.Need = ""
			}
			done := "allowing calls: " + needWords(r.Need)
			if agent != "" {
				done = "allowing calls of " + terminal.Visible(agent) + ": " + needWords(r.Need)
			}
			if r.Need == "" {
				done = "allowing calls of " + terminal.Visible(agent) + ": as for all agents"
			}
			return change(env, c, api.RequirePasskey, r, args[0], done)
		},
		ValidArgs: []string{"high", "all", "never", "default"},
	}
	c.Flags().StringVar(&agent, "agent", "", "for calls of this `agent` alone")
	return c
}

func passkeyRemoveCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Remove a passkey",
		Long: `Removes a passkey, by its name or ID. What it has signed stays signed. On the node's own machine this needs no passkey: so the only one may be
lost, and who is the host there may end what it is for. The last one is removed after "parley passkey require never".`,
		Example: "  parley passkey rm phone",
		Args:    exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return parley.Refuse(parley.InvalidArgument, "a passkey has a name")
			}
			return change(env, c, api.RemovePasskey, api.RemovePasskeyRequest{Acting: env.acting(), Name: args[0]}, args[0], "removed "+terminal.Visible(args[0]))
		},
	}
}
