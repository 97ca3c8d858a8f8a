package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

func statusCommand(env *environment) *cobra.Command {
	var wait duration
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the node's status",
		Long:  "Says how the node is. Where none runs, that is NOT_RUNNING and exit code 3.",
		Example: `  parley status
  parley status --wait 15s     wait until it answers
  parley status --json         for programs`,
	}
	c.Flags().Var(&wait, "wait", "wait so `long` for the node to be ready")
	c.RunE = func(c *cobra.Command, _ []string) error {
		status, err := awaitReady(c.Context(), env, time.Duration(wait))
		if err != nil {
			return err
		}
		return env.print(status, func() string { return statusText(status) })
	}
	return c
}

func fetchStatus(ctx context.Context, env *environment) (api.StatusResponse, error) {
	status, err := api.Status.Do(ctx, env, api.NodeRequest{Acting: env.acting()})
	return status, err
}

// awaitReady asks for the status until the node answers or the time has passed.
func awaitReady(ctx context.Context, env *environment, wait time.Duration) (api.StatusResponse, error) {
	deadline := time.Now().Add(wait)
	for {
		status, err := fetchStatus(ctx, env)
		if parley.CodeOf(err) != parley.NotRunning {
			return status, err
		}
		if time.Now().After(deadline) {
			return status, orStandby(env, err)
		}
		select {
		case <-ctx.Done():
			return status, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

func statusText(s api.StatusResponse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "node:       %s\n", s.Node)
	fmt.Fprintf(&b, "name:       %s\n", terminal.Visible(s.Name))
	fmt.Fprintf(&b, "process:    %d\n", s.PID)
	fmt.Fprintf(&b, "listening:  %s\n", s.Listen)
	fmt.Fprintf(&b, "version:    %s\n", s.Version)
	fmt.Fprintf(&b, "agents:     %d\n", s.Agents)
	fmt.Fprintf(&b, "open forms: %d\n", s.OpenForms)
	fmt.Fprintf(&b, "journal:    %d commits, %d events, %d bytes", s.Journal.Commits, s.Journal.Events, s.Journal.Bytes)
	if s.Journal.Archived > 0 {
		fmt.Fprintf(&b, "\narchive:    up to commit %d, %d bytes", s.Journal.Archived, s.Journal.ArchiveBytes)
	}
	if s.Journal.Flushing > 0 {
		fmt.Fprintf(&b, "\ndisk:       %s", terminal.SlowDisk(s.Journal.Flushing))
	}
	if s.Journal.Behind > 0 {
		fmt.Fprintf(&b, "\nclock:      %s", terminal.ClockBehind(s.Journal.Behind))
	}
	if s.Service != "" {
		fmt.Fprintf(&b, "\nservice:    %s", s.Service)
	}
	if s.Peers.Known > 0 {
		fmt.Fprintf(&b, "\npeers:      %d known, %d reachable, %d waiting", s.Peers.Known, s.Peers.Reachable, s.Peers.Waiting)
	}
	if s.Programs.Held {
		b.WriteString("\nprograms:   held since the node was restored: parley node programs start")
	}
	if s.Problem != nil {
		fmt.Fprintf(&b, "\nproblem:    %s: %s", s.Problem.Code, terminal.Visible(s.Problem.Message))
	}
	return b.String()
}

func versionCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  parley version",
		RunE: func(*cobra.Command, []string) error {
			return env.print(map[string]string{"version": version()}, version)
		},
	}
}

// version returns the version of the module that this program was built from, with the commit.
func version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(build)
}

// versionOf returns the version that a program was built from. It has the commit, where that is known.
func versionOf(build *debug.BuildInfo) string {
	revision, dirty := "", ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	switch v := build.Main.Version; {
	case v != "" && v != "(devel)" && (revision == "" || strings.Contains(v, revision)):
		return v
	case v != "" && v != "(devel)":
		return v + " (" + revision + dirty + ")"
	case revision == "":
		return "devel"
	}
	return "devel-" + revision + dirty
}

func programsCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "programs",
		Short: "Show how the node runs programs, or start those of a restored node",
		Long: `Says what holds for all programs of the node: which variables of its environment they get, which user they run as, and
the command that they are wrapped in.

A node that was restored from a backup starts no programs, whatever is queued for them, until "parley node programs start". Make
sure first that the node runs nowhere else.`,
		Example: "  parley node programs\n  parley node programs start",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			status, err := fetchStatus(c.Context(), env)
			if err != nil {
				return err
			}
			return env.print(status.Programs, func() string { return programsText(status.Programs) })
		},
	}
	c.AddCommand(&cobra.Command{
		Use:     "start",
		Short:   "Start the programs of a restored node",
		Example: "  parley node programs start",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return perform(c.Context(), env, api.StartPrograms, api.NodeRequest{Acting: env.acting()},
				func(done api.Done) string { return "programs run" })
		},
	})
	return c
}

func programsText(s api.ProgramsStatus) string {
	lines := []string{"programs run"}
	if s.Held {
		lines = []string{"programs are held since the node was restored: parley node programs start"}
	}
	if len(s.Environment) > 0 {
		lines = append(lines, "environment: "+terminal.Visible(strings.Join(s.Environment, ",")))
	}
	if s.User != "" {
		lines = append(lines, "user: "+terminal.Visible(s.User))
	}
	if len(s.Wrap) > 0 {
		lines = append(lines, "wrapped in: "+terminal.Visible(shell.Join(s.Wrap)))
	}
	return strings.Join(lines, "\n")
}

// waitsForDisk returns a colon and words for the disk that the node waits for, or "" if it waits for none.
func waitsForDisk(ctx context.Context, env *environment) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	status, err := fetchStatus(ctx, env)
	if err != nil || status.Journal.Flushing == 0 {
		return ""
	}
	return ": the disk " + terminal.SlowDisk(status.Journal.Flushing)
}

// orStandby returns an error that names the standby on the state folder, or err if there is none.
func orStandby(env *environment, err error) error {
	pid, locked, look := env.options.state.holder()
	if look != nil || !locked || !env.options.state.isStandby(pid) {
		return err
	}
	return parley.Refuse(parley.NotRunning, "process %d waits as a standby: the node runs elsewhere", pid).
		WithHint("parley stop ends the standby")
}
