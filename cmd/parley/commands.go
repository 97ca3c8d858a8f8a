package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/cmd/parley/terminal"
)

// The groups of commands. Those of a noun are below it: see parley form --help. An earlier or second spelling of a command
// is hidden.
const (
	groupDaily  = "daily" // what people need every day, and at the beginning
	groupNode   = "node"
	groupAgents = "agents"
	groupMail   = "mail"
	groupNames  = "names"
	groupAccess = "access"
)

var groups = []*cobra.Group{
	{ID: groupDaily, Title: "Every day:"},
	{ID: groupAgents, Title: "Agents:"},
	{ID: groupMail, Title: "Mail:"},
	{ID: groupNames, Title: "Names and grants:"},
	{ID: groupAccess, Title: "Other programs, nodes and devices:"},
	{ID: groupNode, Title: "The node:"},
}

// Help lists commands in the order in which they are added, which is that of their use.
func init() { cobra.EnableCommandSorting = false } // of the whole program, so before anything runs

// add adds commands to a group, "" for those that help does not list.
func add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID, c.Hidden = group, group == ""
		root.AddCommand(c)
		complete(c)
	}
}

// complete has a command, and those below it, refuse arguments that it does not take.
func complete(c *cobra.Command) {
	var verbs []string
	for _, v := range c.Commands() {
		complete(v)
		if !v.Hidden {
			verbs = append(verbs, v.Name())
		}
	}
	if c.Args == nil {
		c.Args = exactly()
	}
	if last := len(verbs) - 1; !c.Runnable() {
		c.RunE = func(c *cobra.Command, _ []string) error {
			return usage(c, "missing: %s or %s", strings.Join(verbs[:last], ", "), verbs[last])
		}
	}
}

// noun adds the verbs of a noun below its command.
func noun(c *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	c.AddCommand(verbs...)
	return c
}

func addCommands(root *cobra.Command, env *environment) {
	root.AddGroup(groups...)
	addNodeCommands(root, env)
	form := noun(formCommand(env), amendCommand(env), withdrawCommand(env), grantAnswerCommand(env), answerWithCommand(env))
	add(root, groupDaily, statusCommand(env), lsCommand(env), inboxCommand(env), watchCommand(env), allowCommand(env), denyCommand(env), answerCommand(env),
		form, sendCommand(env))
	agent := noun(&cobra.Command{
		Use: "agent", Short: "Stop and start an agent, set what it may do, and archive it",
		Example: "  parley agent stop builder\n  parley agent policy builder never\n  parley agent away --until 72h --to bob\n  parley agent archive builder",
	},
		stopAgentCommand(env), startAgentCommand(env), archiveAgentCommand(env), awayCommand(env), attentionCommand(env), groupCommand(env), policyCommand(env), quotaCommand(env), rulesCommand(env))
	add(root, groupAgents, makeCommand(env, "guest"), makeCommand(env, "host"), runCommand(env), promptCommand(env), waitCommand(env), interruptCommand(env),
		inspectCommand(env), logsCommand(env), attachCommand(env), approveCommand(env), permitCommand(env), mandateCommand(env), passkeyCommand(env), resumeCommand(env), leaseCommand(env), teamCommand(env), topicCommand(env), agent)
	add(root, groupMail, replyCommand(env), searchCommand(env), awaitCommand(env), declineCommand(env), claimCommand(env), cancelCommand(env), forwardCommand(env), requestCommand(env), resolveCommand(env),
		proofCommand(env), adoptCommand(env), ackCommand(env), scheduleCommand(env), snoozeCommand(env), dismissCommand(env), noun(logCommand(env), archiveLogCommand(env)))
	names := namesCommand(env)
	names.Use, names.Aliases = "ls [AGENT-or-PATH]", nil
	name := noun(&cobra.Command{
		Use: "name", Short: "Store, change, copy and remove names",
		Example: "  parley name ls\n  parley name rename alice anna\n  parley name remove anna",
	},
		names, locateCommand(env), storeCommand(env), renameCommand(env), copyCommand(env), removeCommand(env))
	add(root, groupNames, namesCommand(env), showCommand(env), name, grantsCommand(env), revokeCommand(env), makeResourceCommand(env), unmakeCommand(env), useCommand(env))
	nodes := nodesCommand(env)
	nodes.Use = "ls"
	node := noun(&cobra.Command{
		Use: "node", Short: "Connect other nodes, and show how programs run",
		Example: "  parley node ls\n  parley node invite bob > invitation\n  parley node limit bob inbox=64MiB",
	},
		nodes, inviteCommand(env), acceptCommand(env), limitPeerCommand(env), dropPeerCommand(env), nodeKeyCommand(env), programsCommand(env))
	add(root, groupAccess, node, mcpCommand(env), acpCommand(env))
	add(root, groupNode, versionCommand(env), completionCommand(env), commandsCommand(env))
	add(root, "", hookCommand(env), archiveCommand(env), amendCommand(env), withdrawCommand(env), grantAnswerCommand(env), answerWithCommand(env), awayCommand(env),
		subscribeCommand(env), unsubscribeCommand(env), groupCommand(env), policyCommand(env), quotaCommand(env), rulesCommand(env), locateCommand(env),
		storeCommand(env), renameCommand(env), copyCommand(env), removeCommand(env), nodesCommand(env), peersCommand(env), inviteCommand(env), acceptCommand(env), programsCommand(env))
}

// commandsCommand lists all commands, those below a noun too.
func commandsCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "commands",
		Short:   "List all commands",
		Example: "  parley commands",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			type command struct {
				Command string `json:"command"`
				Does    string `json:"does"`
				group   string
			}
			var all []command
			var below func(c *cobra.Command, group string)
			below = func(c *cobra.Command, group string) {
				for _, c := range c.Commands() {
					if c.IsAvailableCommand() {
						all = append(all, command{c.CommandPath(), c.Short, group})
						below(c, group)
					}
				}
			}
			for _, g := range groups {
				for _, c := range c.Root().Commands() {
					if c.GroupID == g.ID && c.IsAvailableCommand() {
						all = append(all, command{c.CommandPath(), c.Short, g.Title})
						below(c, g.Title)
					}
				}
			}
			return env.print(all, func() string {
				var b strings.Builder
				for i, c := range all {
					if i == 0 || c.group != all[i-1].group {
						fmt.Fprintf(&b, "\n%s\n", c.group)
					}
					fmt.Fprintf(&b, "  %-24s %s\n", c.Command, c.Does)
				}
				return strings.Trim(b.String(), "\n")
			})
		},
	}
}

// usageOfRoot prints the usage of the program: the commands of every day, and where the others are.
func usageOfRoot(root *cobra.Command, screen terminal.Screen) string {
	var b strings.Builder
	b.WriteString("Usage:\n  parley [command]\n")
	for _, g := range groups {
		var names []string
		for _, c := range root.Commands() {
			switch {
			case c.GroupID != g.ID || !c.IsAvailableCommand():
			case g.ID == groupDaily:
				names = append(names, fmt.Sprintf("  %-12s %s", c.Name(), c.Short))
			default:
				names = append(names, c.Name())
			}
		}
		switch {
		case g.ID == groupDaily:
			fmt.Fprintf(&b, "\n%s\n%s\n\nMore (\"parley commands\" lists what they do):\n", g.Title, strings.Join(names, "\n"))
		default:
			fmt.Fprintf(&b, "  %s\n", g.Title)
			b.WriteString(wrapped(names, screen.Width))
		}
	}
	flags := pflag.NewFlagSet("parley", pflag.ContinueOnError)
	flags.AddFlagSet(root.LocalFlags())
	fmt.Fprintf(&b, "\nFlags:\n%s\nUse \"parley [command] --help\" for more about a command.\n", strings.TrimRight(flags.FlagUsages(), " \n")+"\n")
	return b.String()
}

// wrapped returns words in lines that fit.
func wrapped(words []string, width int) string {
	const indent = "    "
	var b strings.Builder
	line := indent
	for _, w := range words {
		if len(line)+len(w)+1 > max(width, 40) && line != indent {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += w + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}
