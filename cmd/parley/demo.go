package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/gateway"
	"parley/gateway/client"
)

func (p *program) demoCommand() *cobra.Command {
	var auto bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "See the whole of it in a minute",
		Long: `Runs a node of its own in a temporary folder. A guest asks the host for settings; the host answers, on the
terminal or by itself with --auto; the guest gets the values. Then the node is killed, started again, and shows
the same inbox. Every step is shown as the command that does it.`,
		Example: "  parley demo\n  parley demo --auto",
	}
	c.Flags().BoolVar(&auto, "auto", false, "answer by itself, also on a terminal")
	c.RunE = func(c *cobra.Command, _ []string) error {
		folder, err := os.MkdirTemp("", "parley-demo-")
		if err != nil {
			return err
		}
		t := &tour{program: p, folder: folder, auto: auto || !p.interactive()}
		err = t.walk(c.Context())
		return errors.Join(err, t.kill(), os.RemoveAll(folder))
	}
	return c
}

// tour is the demonstration: a node in a process of its own, and the commands that a user would type.
type tour struct {
	*program
	folder string
	auto   bool
	node   *exec.Cmd
}

const tourFields = `[
  {"name": "projectName", "label": "Project name", "required": true, "example": "my-app"},
  {"name": "apiKey", "label": "API key", "required": true, "help": "fae uses it to deploy"},
  {"name": "port", "label": "Port", "type": "number", "default": 8080, "pattern": {"type": "integer", "minimum": 1, "maximum": 65535}},
  {"name": "region", "label": "Region", "type": "select", "default": "eu", "options": [{"value": "eu", "label": "Europe"}, {"value": "us", "label": "United States"}]}
]
`

const tourDescription = "Configure project settings"

func (t *tour) walk(ctx context.Context) error {
	if err := os.WriteFile(filepath.Join(t.folder, "settings.json"), []byte(tourFields), 0o600); err != nil {
		return err
	}
	t.tell("A node starts. Its log is in a temporary folder.")
	if err := t.serve(ctx); err != nil {
		return err
	}
	t.tell("The host makes a guest. The guest may talk to its host and to nobody else.")
	if _, err := t.command(ctx, "mkguest", "fae"); err != nil {
		return err
	}
	t.tell("The guest asks for settings, and waits. What it asks is on disk before it is told so.")
	waiting, err := t.ask(ctx)
	if err != nil {
		return err
	}
	t.tell("The form is in the host's inbox.")
	if _, err := t.command(ctx, "inbox"); err != nil {
		return err
	}
	if err := t.answer(ctx); err != nil {
		return err
	}
	t.tell("The guest, which has waited all the while, gets the values.")
	if err := waiting(); err != nil {
		return err
	}
	return t.crash(ctx)
}

// ask sends the form, and gives what waits for its answer and prints it.
func (t *tour) ask(ctx context.Context) (func() error, error) {
	args := []string{"form", "HOST", tourDescription, "--as", "fae", "--fields", "settings.json", "--name", "project-config"}
	t.show(append(args, "&")...)
	args[6] = filepath.Join(t.folder, args[6])
	type result struct {
		text string
		err  error
	}
	answered := make(chan result, 1)
	go func() { // ends when the form is answered, or with ctx
		text, err := t.run(ctx, args...)
		answered <- result{text, err}
	}()
	waiter := t.at().waiter(true)
	defer waiter.Close()
	for _, err := range waiter.Follow(ctx, client.View{}, "") { // it is the first message
		if err != nil {
			return nil, err
		}
		break
	}
	return func() error {
		r := <-answered
		t.print(r.text)
		return r.err
	}, nil
}

func (t *tour) answer(ctx context.Context) error {
	if t.auto {
		t.tell("The host answers. Each value is checked against its field first.")
		bad := []string{"respond-form", "0", "--value", "projectName:my-app", "--value", "apiKey:sk-1234", "--value", "port:http"}
		if _, err := t.command(ctx, bad...); parley.CodeOf(err) != parley.InvalidAnswer {
			return errors.Join(errors.New("a wrong answer was not refused"), err)
		}
		good := append(bad[:6:6], "--value", "port:443", "--value", "region:eu")
		_, err := t.command(ctx, good...)
		return err
	}
	t.tell("You are the host: answer it.")
	for {
		t.show("respond-form", "0")
		host := t.at("respond-form", "0")
		host.stdin, host.stdout = t.stdin, t.stdout
		err := host.execute(ctx)
		if parley.CodeOf(err) != parley.InvalidAnswer {
			return err
		}
		t.print("parley: " + err.Error())
	}
}

// crash kills the node, and shows that nothing is missing when it is back.
func (t *tour) crash(ctx context.Context) error {
	t.tell("Both sides keep a copy, and both know that it is answered.")
	before, err := t.command(ctx, "inbox", "--all")
	if err != nil {
		return err
	}
	t.tell("Now the node is killed, without a chance to tidy up, and started again.")
	fmt.Fprintf(t.stdout, "$ kill -9 %d\n", t.node.Process.Pid)
	if err := t.kill(); err != nil {
		return err
	}
	if err := t.serve(ctx); err != nil {
		return err
	}
	after, err := t.command(ctx, "inbox", "--all")
	if err != nil {
		return err
	}
	if before != after {
		return errors.New("the inbox is not what it was")
	}
	t.tell("The same inbox, to the letter. The answer stands under the name that fae gave it,")
	if _, err := t.command(ctx, "show", "project-config", "--as", "fae"); err != nil {
		return err
	}
	t.tell("and a form is settled once: whoever comes later is told who was first.")
	if _, err := t.command(ctx, "respond-form", "0", "--value", "projectName:other"); parley.CodeOf(err) != parley.AlreadyAnswered {
		return errors.Join(errors.New("a second answer was not refused"), err)
	}
	if _, err := t.command(ctx, "verify"); err != nil {
		return err
	}
	t.tell("That was it. The temporary folder is removed; \"parley start\" runs a node that stays.")
	return nil
}

// serve starts a node in a process of its own and waits until it answers.
func (t *tour) serve(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	t.show("serve", "--listen", gateway.Off, "&")
	node := exec.Command(self, "serve", "--listen", gateway.Off, "--state", t.folder)
	node.Env = withoutSettings(os.Environ())
	var log bytes.Buffer
	node.Stderr = &log
	if err := node.Start(); err != nil {
		return err
	}
	t.node = node
	if _, err = t.at().awaitReady(ctx, defaultReady); err != nil {
		_ = t.kill() // its log tells what there is to tell
		if e := lastFailure(log.String()); e != nil {
			return e
		}
	}
	return err
}

func (t *tour) kill() error {
	if t.node == nil {
		return nil
	}
	node := t.node
	t.node = nil
	if err := node.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = node.Wait() // it was killed, as it will say
	return nil
}

// withoutSettings gives an environment in which no option of this program is set.
func withoutSettings(env []string) []string {
	var rest []string
	for _, e := range env {
		if !strings.HasPrefix(e, environment) {
			rest = append(rest, e)
		}
	}
	return rest
}

// at gives the program as it would be run against the tour's node.
func (t *tour) at(args ...string) *program {
	p := &program{
		stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, args: args,
		env: func(string) (string, bool) { return "", false },
	}
	p.options.state = t.folder
	return p
}

// command shows a command, runs it and shows what it prints.
func (t *tour) command(ctx context.Context, args ...string) (string, error) {
	t.show(args...)
	text, err := t.run(ctx, args...)
	t.print(text)
	return text, err
}

// run runs a command and gives what it prints, its error too.
func (t *tour) run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	p := t.at(append(args, "--state", t.folder)...)
	p.stdout, p.stderr = &out, &out
	err := p.execute(ctx)
	if err != nil {
		p.report(ctx, err)
	}
	return out.String(), err
}

func (t *tour) tell(text string) { fmt.Fprintf(t.stdout, "\n# %s\n", text) }

func (t *tour) show(args ...string) {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = shellWord(a)
		if a == "&" {
			words[i] = a
		}
	}
	fmt.Fprintf(t.stdout, "$ parley %s\n", strings.Join(words, " "))
}

func (t *tour) print(text string) {
	if text != "" {
		fmt.Fprintln(t.stdout, strings.TrimSuffix(text, "\n"))
	}
}
