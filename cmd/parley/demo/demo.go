package demo

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

	"parley"
	"parley/cmd/parley/shell"
	"parley/gateway"
	"parley/gateway/client"
)

// Options say how the demonstration runs commands.
type Options struct {
	Auto   bool      // answer by itself, also on a terminal
	Stdin  io.Reader // with which a person answers
	Stdout io.Writer

	Environment string // the beginning of the variables that are settings of this program

	// Execute runs a command, without any settings of the environment.
	Execute func(ctx context.Context, c Command) error

	// Ready blocks until the node on a state folder answers. If it does not, it may call log, which ends the node and
	// returns its log.
	Ready func(ctx context.Context, state string, log func() string) error

	// Client opens a client of the node on a state folder.
	Client func(state string) *client.Client
}

// Command is a command of this program.
type Command struct {
	State          string
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Report         bool // print an error of the command on Stderr
}

// Run runs the demonstration.
func Run(ctx context.Context, o Options) error {
	folder, err := os.MkdirTemp("", "parley-demo-")
	if err != nil {
		return err
	}
	d := &demo{Options: o, folder: folder}
	err = d.run(ctx)
	return errors.Join(err, d.kill(), os.RemoveAll(folder))
}

// demo is one demonstration: a node in a process of its own, and the commands that a user would type.
type demo struct {
	Options
	folder string
	node   *exec.Cmd
}

const formFields = `[
  {"name": "projectName", "label": "Project name", "required": true, "example": "my-app"},
  {"name": "apiKey", "label": "API key", "type": "secret", "required": true, "help": "fae uses it to deploy"},
  {"name": "port", "label": "Port", "type": "number", "default": 8080, "pattern": {"type": "integer", "minimum": 1, "maximum": 65535}},
  {"name": "region", "label": "Region", "type": "select", "default": "eu", "options": [{"value": "eu", "label": "Europe"}, {"value": "us", "label": "United States"}]}
]
`

const formDescription = "Configure project settings"

func (d *demo) run(ctx context.Context) error {
	if err := os.WriteFile(filepath.Join(d.folder, "settings.json"), []byte(formFields), 0o600); err != nil {
		return err
	}
	d.tell("A node starts. Its log is in a temporary folder.")
	if err := d.serve(ctx); err != nil {
		return err
	}
	d.tell("The host makes a guest. The guest may talk to its host and to nobody else.")
	if _, err := d.command(ctx, "mkguest", "fae"); err != nil {
		return err
	}
	d.tell("The guest asks for settings, and waits. What it asks is on disk before it is told so.")
	waiting, err := d.ask(ctx)
	if err != nil {
		return err
	}
	d.tell("The form is in the host's inbox.")
	if _, err := d.command(ctx, "inbox"); err != nil {
		return err
	}
	if err := d.answer(ctx); err != nil {
		return err
	}
	d.tell("The guest, which has waited all the while, gets the values.")
	if err := waiting(); err != nil {
		return err
	}
	return d.crash(ctx)
}

// ask sends the form, and returns a function that waits for its answer and prints it.
func (d *demo) ask(ctx context.Context) (func() error, error) {
	args := []string{"form", "HOST", formDescription, "--as", "fae", "--fields", "settings.json", "--name", "project-config"}
	d.show(append(args, "&")...)
	args[6] = filepath.Join(d.folder, args[6])
	type result struct {
		text string
		err  error
	}
	answered := make(chan result, 1)
	go func() { // ends when the form is answered, or with ctx
		text, err := d.output(ctx, args...)
		answered <- result{text, err}
	}()
	waiter := d.Client(d.folder)
	defer waiter.Close()
	for _, err := range waiter.Follow(ctx, client.View{}, "") { // it is the first message
		if err != nil {
			return nil, err
		}
		break
	}
	return func() error {
		r := <-answered
		d.print(r.text)
		return r.err
	}, nil
}

func (d *demo) answer(ctx context.Context) error {
	if d.Auto {
		d.tell("The host answers. Each value is checked against its field first. A secret is no argument: others on the machine see those.")
		const given = `{"projectName": "my-app", "apiKey": "sk-1234", `
		if err := d.fed(ctx, given+`"port": "http"}`, "answer", "0", "--values", "-"); parley.CodeOf(err) != parley.InvalidAnswer {
			return errors.Join(errors.New("a wrong answer was not refused"), err)
		}
		return d.fed(ctx, given+`"port": 443, "region": "eu"}`, "answer", "0", "--values", "-")
	}
	d.tell("You are the host: answer it.")
	for {
		d.show("answer", "0")
		err := d.Execute(ctx, Command{State: d.folder, Args: []string{"answer", "0"}, Stdin: d.Stdin, Stdout: d.Stdout, Stderr: io.Discard})
		if parley.CodeOf(err) != parley.InvalidAnswer {
			return err
		}
		d.print("parley: " + err.Error())
	}
}

// crash kills the node, starts it again and shows that nothing is missing.
func (d *demo) crash(ctx context.Context) error {
	d.tell("Both sides keep a copy, and both know that it is answered.")
	before, err := d.command(ctx, "inbox", "--all")
	if err != nil {
		return err
	}
	d.tell("Now the node is killed, without a chance to tidy up, and started again.")
	fmt.Fprintf(d.Stdout, "$ kill -9 %d\n", d.node.Process.Pid)
	if err := d.kill(); err != nil {
		return err
	}
	if err := d.serve(ctx); err != nil {
		return err
	}
	after, err := d.command(ctx, "inbox", "--all")
	if err != nil {
		return err
	}
	if before != after {
		return errors.New("the inbox is not what it was")
	}
	d.tell("The same inbox, unchanged. The answer stands under the name that fae gave it,")
	if _, err := d.command(ctx, "show", "project-config", "--as", "fae"); err != nil {
		return err
	}
	d.tell("and a form is settled once: whoever comes later is told who was first.")
	if _, err := d.command(ctx, "answer", "0", "--value", "projectName:other"); parley.CodeOf(err) != parley.AlreadyAnswered {
		return errors.Join(errors.New("a second answer was not refused"), err)
	}
	if _, err := d.command(ctx, "verify"); err != nil {
		return err
	}
	d.tell("That was it. The temporary folder is removed; \"parley start\" runs a node that stays.")
	return nil
}

// serve starts a node in a process of its own and waits until it answers.
func (d *demo) serve(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d.show("serve", "--listen", gateway.Off, "&")
	node := exec.Command(self, "serve", "--listen", gateway.Off, "--state", d.folder)
	node.Env = d.withoutSettings(os.Environ())
	var log bytes.Buffer
	node.Stderr = &log
	if err := node.Start(); err != nil {
		return err
	}
	d.node = node
	return d.Ready(ctx, d.folder, func() string {
		_ = d.kill() // which completes its log
		return log.String()
	})
}

func (d *demo) kill() error {
	if d.node == nil {
		return nil
	}
	node := d.node
	d.node = nil
	if err := node.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = node.Wait() // its error is that it was killed
	return nil
}

// withoutSettings returns an environment in which no option of this program is set.
func (d *demo) withoutSettings(env []string) []string {
	var rest []string
	for _, e := range env {
		if !strings.HasPrefix(e, d.Environment) {
			rest = append(rest, e)
		}
	}
	return rest
}

// command shows a command, runs it and shows what it prints.
func (d *demo) command(ctx context.Context, args ...string) (string, error) {
	d.show(args...)
	text, err := d.output(ctx, args...)
	d.print(text)
	return text, err
}

// fed is command for one that reads a line from its standard input.
func (d *demo) fed(ctx context.Context, line string, args ...string) error {
	d.show(append(args, "<<end")...)
	d.print(line + "\nend")
	text, err := d.outputOf(ctx, line, args...)
	d.print(text)
	return err
}

// output runs a command and returns what it prints, with its error.
func (d *demo) output(ctx context.Context, args ...string) (string, error) {
	return d.outputOf(ctx, "", args...)
}

// outputOf is output for a command with a standard input.
func (d *demo) outputOf(ctx context.Context, in string, args ...string) (string, error) {
	var out bytes.Buffer
	err := d.Execute(ctx, Command{State: d.folder, Args: args, Stdin: strings.NewReader(in), Stdout: &out, Stderr: &out, Report: true})
	return out.String(), err
}

func (d *demo) tell(text string) { fmt.Fprintf(d.Stdout, "\n# %s\n", text) }

func (d *demo) show(args ...string) {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = shell.Word(a)
		if a == "&" || a == "<<end" {
			words[i] = a
		}
	}
	fmt.Fprintf(d.Stdout, "$ parley %s\n", strings.Join(words, " "))
}

func (d *demo) print(text string) {
	if text != "" {
		fmt.Fprintln(d.Stdout, strings.TrimSuffix(text, "\n"))
	}
}
