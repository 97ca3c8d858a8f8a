package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/gateway/people"
)

// resumeCommand continues a session of a coding agent that has ended.
func resumeCommand(env *environment) *cobra.Command {
	var (
		program string
		prints  bool
		flags   []string
	)
	c := &cobra.Command{
		Use:   "resume SESSION [PROMPT]",
		Short: "Resume a session of a coding agent that has ended",
		Long: `Resumes a session of a coding agent that has ended, in its folder: it has its mail, and asks again about the call that it was waiting to make
when it ended ("parley setup --when-away defer"). Claude Code and Codex are resumed.

On a terminal the session goes on there. Else, or with --print, it runs without one (claude -p, codex exec), and its exit status is that of the
command. A session that ended while it waited for a decision needs no prompt. --flag gives the coding agent an argument of its own.`,
		Example: `  parley resume 'Claude Code · shop · 2'
  parley resume claude-code-shop-1f3c9a-2 --print --flag=--permission-mode --flag=plan
  parley resume claude-code-shop-1f3c9a-2 'Read your mail and go on'`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	c.Flags().BoolVarP(&prints, "print", "p", false, "run without a terminal, and print what it says at last")
	c.Flags().StringVar(&program, "program", "", "the coding agent's `program` (default: claude or codex of the path)")
	c.Flags().StringArrayVar(&flags, "flag", nil, "an `argument` for the coding agent; may be repeated")
	c.RunE = func(c *cobra.Command, args []string) error {
		got, err := api.FetchAgent.Do(c.Context(), env, api.AgentRequest{Acting: env.acting(), AgentID: args[0]})
		if err != nil {
			return err
		}
		if got.Error != nil {
			return got.Error
		}
		name, words, err := resumption(*got.Agent, prints || !env.interactive(), args[1:], flags)
		if err != nil {
			return err
		}
		if program != "" {
			name = program
		}
		run := exec.CommandContext(c.Context(), name, words...)
		run.Dir, run.Stdin, run.Stdout, run.Stderr = got.Agent.Labels[people.LabelFolder], env.stdin, env.stdout, env.stderr
		err = run.Run()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.Exited() {
			return exitStatus(failed.ExitCode())
		}
		return err
	}
	return c
}

// resumption returns the program and the arguments that resume a session. It refuses what is no session that has ended, and one whose ID
// is more than a word: it came from the coding agent, and must be no flag.
func resumption(a view.AgentStatus, prints bool, prompt, flags []string) (program string, args []string, err error) {
	who := terminal.Quoted(a.Name)
	switch {
	case a.Of.IsZero():
		return "", nil, parley.Refuse(parley.InvalidArgument, "%s is no session of a coding agent", who).WithHint(`"parley ls --all" lists sessions, such as 'Claude Code · shop · 2'`)
	case !a.Ended && a.Status == "closed":
		return "", nil, parley.Refuse(parley.AgentArchived, "%s is archived: what it was resumed by is not kept", who)
	case !a.Ended:
		return "", nil, parley.Refuse(parley.InvalidArgument, "%s has not ended", who).WithHint("write to it: parley send, or go on where it runs")
	case a.Session == "" || strings.HasPrefix(a.Session, "-") || strings.Trim(a.Session, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != "":
		return "", nil, parley.Refuse(parley.InvalidArgument, "%s has no ID that a coding agent resumes", who)
	case !filepath.IsAbs(a.Labels[people.LabelFolder]):
		return "", nil, parley.Refuse(parley.InvalidArgument, "the folder of %s is not known", who).WithHint("resume it there with the coding agent's own command")
	}
	if info, err := os.Stat(a.Labels[people.LabelFolder]); err != nil || !info.IsDir() {
		return "", nil, parley.Refuse(parley.InvalidArgument, "the folder of %s is not there: %s", who, terminal.Visible(a.Labels[people.LabelFolder]))
	}
	switch a.Labels[people.LabelProgram] {
	case "claude-code":
		args = []string{"--resume", a.Session}
		if prints {
			args = append([]string{"-p"}, args...)
		}
		return "claude", append(append(args, flags...), prompt...), nil
	case "codex":
		args = []string{"resume", a.Session}
		if prints {
			args = append([]string{"exec"}, args...)
		}
		return "codex", append(append(args, flags...), prompt...), nil
	}
	return "", nil, parley.Refuse(parley.InvalidArgument, "sessions of %s are not resumed from here", terminal.Quoted(a.Labels[people.LabelProgram])).
		WithHint("resume it with the coding agent's own command")
}
