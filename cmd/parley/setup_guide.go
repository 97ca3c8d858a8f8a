//go:build !client

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/cmd/parley/hook"
	"parley/cmd/parley/interview"
	"parley/cmd/parley/service"
	"parley/cmd/parley/setup"
	"parley/cmd/parley/terminal"
	"parley/events"
)

// agentNames returns the names of the coding agents that setup knows.
func agentNames() (names []string) {
	for _, a := range hook.Agents() {
		names = append(names, a.Name)
	}
	return names
}

// programOf returns the program of a coding agent.
func programOf(agent hook.Agent) string {
	if agent.Name == hook.ClaudeCode().Name {
		return "claude"
	}
	return agent.Name
}

// guideSetup sets up the coding agents that are installed here, step by step. Nothing is changed before the person says so.
func guideSetup(ctx context.Context, env *environment) error {
	var found, missing []string
	var agents []hook.Agent
	for _, a := range hook.Agents() {
		if _, err := exec.LookPath(programOf(a)); err != nil {
			missing = append(missing, a.Title)
			continue
		}
		agents, found = append(agents, a), append(found, a.Title)
	}
	if len(agents) == 0 {
		return parley.Refuse(parley.InvalidArgument, "no coding agent is on the path: neither %s", strings.Join(missing, " nor ")).
			WithHint("install one, or name the one to set up: parley setup %s", hook.ClaudeCode().Name)
	}
	env.say("Found here: %s.", strings.Join(found, ", "))
	inside, err := inProject(env)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if err := env.guideAgent(ctx, a, inside); err != nil {
			return err
		}
	}
	if err := env.guideNode(ctx); err != nil {
		return err
	}
	return env.firstQuestion(ctx)
}

// say prints a line of the guide.
func (env *environment) say(format string, args ...any) {
	fmt.Fprintf(env.stdout, format+"\n", args...)
}

// guideAgent says what setting up a coding agent changes, and does that if the person wants it.
func (env *environment) guideAgent(ctx context.Context, a hook.Agent, inside bool) error {
	o, err := setupOptions(env, inside)
	if err != nil {
		return err
	}
	files, err := setup.Files(ctx, a, o)
	if err != nil {
		return err
	}
	env.say("\n%s: before it runs a command or changes a file, it asks you in Parley. This changes", a.Title)
	changes := false
	for _, f := range files {
		env.say("  %s", terminal.Visible(f.Path))
		changes = changes || f.Changed
	}
	if !changes {
		env.say("They have it already.")
		return nil
	}
	if inside {
		env.say("for this project alone. What is there stays, and a copy of each file is kept beside it.")
	} else {
		env.say("for all your folders. What is there stays, and a copy of each file is kept beside it.")
	}
	env.say("Where no node runs, or nobody follows the inbox: %s.", setup.WhenAway(a, ""))
	yes, err := env.agrees(ctx, "Set up "+a.Title+"?")
	if err != nil || !yes {
		return err
	}
	return runSetup(ctx, env, a, setupFlags{project: inside, user: !inside, guided: true})
}

// agrees asks a question that is answered by yes or no.
func (env *environment) agrees(ctx context.Context, question string) (bool, error) {
	texts, err := interview.Ask(ctx, env.stdin, env.stdout, question, "parley setup", []events.Field{{
		Name: "yes", Label: question, Type: events.Select, Required: true, Default: capabilities.String("yes"),
		Options: []events.Option{{Value: "yes", Label: "Yes"}, {Value: "no", Label: "No"}},
	}})
	if err != nil {
		return false, err
	}
	return len(texts) > 0 && texts[0].Text == "yes", nil
}

// guideNode has a node run, as a service if the person wants one and the system has them.
func (env *environment) guideNode(ctx context.Context) error {
	if _, err := fetchStatus(ctx, env); err == nil {
		env.say("\nThe node runs.")
		return nil
	} else if parley.CodeOf(err) != parley.NotRunning {
		return err
	}
	env.say("\nNo node runs yet. It keeps your mail and hands your answers to the agents.")
	o, err := serviceOptions(env)
	if err != nil {
		return err
	}
	if service.Check(ctx, o) == nil {
		yes, err := env.agrees(ctx, "Start it now, and whenever you sign in?")
		if err != nil {
			return err
		}
		if yes {
			return installService(ctx, env, o)
		}
	}
	return env.own(ctx, env.stdout, "start")
}

// own runs a command of this program, which writes to out.
func (env *environment) own(ctx context.Context, out io.Writer, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	c := exec.CommandContext(ctx, self, append(args, "--state", string(env.options.state))...) //nolint:gosec // it is this program
	var said bytes.Buffer
	c.Stdout, c.Stderr = out, &said
	if err := c.Run(); err != nil {
		return refusalOf(args[0], said.String())
	}
	return nil
}

// refusalOf returns why a command has failed, of what it has written about that: its code and hint stay what they are.
func refusalOf(command, said string) error {
	said, hint, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(said, "parley: ")), "\nhint: ")
	code, message, ok := strings.Cut(said, ": ")
	if !ok || code == "" || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		code, message = string(parley.Internal), said
	}
	err := parley.Refuse(parley.Code(code), "parley %s: %s", command, message)
	if hint == "" {
		return err
	}
	return err.WithHint("parley %s: %s", command, hint)
}

// firstAgent is the name of the guest that asks the first question.
const firstAgent = "first-steps"

// firstQuestion has a question come to the person, and says how it is answered.
func (env *environment) firstQuestion(ctx context.Context) error {
	ask := func() error {
		return env.own(ctx, io.Discard, "approve", "Bash", `{"command":"echo hello"}`, "--folder", "/", "--reason", "This is a first question, to see how one looks. Nothing is run.", "--as", firstAgent, "--no-wait")
	}
	if err := ask(); err != nil { // the guest is not there yet
		if err := env.own(ctx, io.Discard, "mkguest", firstAgent); err != nil {
			return errors.Join(err, ask())
		}
		if err := ask(); err != nil {
			return err
		}
	}
	env.say("\nA first question waits for you. Answer it with\n  parley watch    in this terminal\n  parley open     on the page, in your browser\nYour coding agents ask there from their next start on.")
	return nil
}

// removeSetups takes out what setup has entered, for all coding agents.
func removeSetups(ctx context.Context, env *environment) error {
	var (
		failed []error
		taken  int
	)
	for _, a := range hook.Agents() {
		if err := runSetup(ctx, env, a, setupFlags{remove: true, taken: &taken}); err != nil {
			failed = append(failed, err)
		}
	}
	if taken == 0 && len(failed) == 0 && !env.options.json {
		fmt.Fprintln(env.stderr, "note: no settings of a coding agent have anything of Parley, here or for you")
	}
	return errors.Join(failed...)
}
