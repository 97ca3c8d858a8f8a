package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"parley"
	"parley/cmd/parley/shell"
	"parley/gateway"
	"parley/gateway/client"
)

// Options say how the demonstration runs commands.
type Options struct {
	Auto   bool // answer by itself, also on a terminal
	Stdout io.Writer

	// Key blocks until a person presses a key, and returns it.
	Key func() (rune, error)

	// Page, if it is not nil, returns what a person needs to decide on the page of the node on a state folder.
	Page func(ctx context.Context, state string) (string, error)

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
	masked string // a text of which dots are shown; "" for none
}

// The call that the agent asks for, and the secret that it asks for then. What is masked is not shown again.
const (
	callInput = `{"command":"git push --force-with-lease origin release/2"}`
	secret    = "sk-demo-1234"
)

func (d *demo) run(ctx context.Context) error {
	began := time.Now()
	d.tell("This takes some 20 seconds, and a moment of yours. A node starts. Its mail is in a temporary folder.")
	if err := d.serve(ctx); err != nil {
		return err
	}
	d.tell("You are the host. An agent, fae, may ask you, and nobody else.")
	if _, err := d.command(ctx, "mkguest", "fae"); err != nil {
		return err
	}
	d.tell("The agent wants to run a command that needs your permission, and waits. What it asks is on disk before it is told so.")
	waiting, err := d.ask(ctx, "approve", "Bash", callInput, "--folder", "/srv/shop", "--as", "fae")
	if err != nil {
		return err
	}
	d.tell("While it waits the node is killed, without a chance to tidy up.")
	fmt.Fprintf(d.Stdout, "$ kill -9 %d\n", d.node.Process.Pid)
	if err := d.kill(); err != nil {
		return err
	}
	if err := d.serve(ctx); err != nil {
		return err
	}
	d.tell("The node is back. The call still waits, and so does the agent. This is what it would do:")
	if _, err := d.command(ctx, "permit", "show", "0"); err != nil {
		return err
	}
	if err := d.decide(ctx); err != nil {
		return err
	}
	d.tell("The agent, which has waited all the while, goes on.")
	if err := waiting(); err != nil && parley.CodeOf(err) != parley.NotPermitted {
		return err
	}
	return d.secret(ctx, began)
}

// ask runs a command that waits for an answer. It returns when the question is in the inbox, with a function that waits for the
// answer and prints what the command does.
func (d *demo) ask(ctx context.Context, args ...string) (func() error, error) {
	d.show(append(args, "&")...)
	waiter := d.Client(d.folder)
	defer waiter.Close()
	type result struct {
		text string
		err  error
	}
	answered := make(chan result, 1)
	go func() { // ends when it is answered, or with ctx
		text, err := d.output(ctx, args...)
		answered <- result{text, err}
	}()
	for m, err := range waiter.Follow(ctx, client.View{}, "") {
		if err != nil {
			return nil, err
		}
		if m.AnswerNeeded {
			break
		}
	}
	return func() error {
		r := <-answered
		d.print(r.text)
		return r.err
	}, nil
}

// decide has the person decide on the call: by a key, or on the page.
func (d *demo) decide(ctx context.Context) error {
	switch {
	case d.Page != nil:
		d.tell("Decide it on the page:")
		address, err := d.Page(ctx, d.folder)
		if err != nil {
			return err
		}
		d.print(address)
		return d.untilDecided(ctx)
	case d.Auto:
		_, err := d.command(ctx, "allow", "0")
		return err
	}
	for {
		fmt.Fprint(d.Stdout, "\na allows it, d denies it: ")
		key, err := d.Key()
		if err != nil {
			return err
		}
		fmt.Fprintln(d.Stdout, string(key))
		switch key {
		case 'a':
			_, err := d.command(ctx, "allow", "0")
			return err
		case 'd':
			_, err := d.command(ctx, "deny", "0", "not to a release")
			return err
		}
	}
}

// untilDecided blocks until nothing waits any more.
func (d *demo) untilDecided(ctx context.Context) error {
	waiter := d.Client(d.folder)
	defer waiter.Close()
	for m, err := range waiter.Follow(ctx, client.View{}, "") {
		if err != nil {
			return err
		}
		if m.Outcome != nil {
			return nil
		}
	}
	return ctx.Err()
}

// secret asks for a secret, and shows that it is masked.
func (d *demo) secret(ctx context.Context, began time.Time) error {
	d.tell("Then it needs a key. A secret is sealed on disk, and only who asked for it reads it.")
	waiting, err := d.ask(ctx, "form", "HOST", "Which key deploys the shop?", "--field", "apiKey:API key:secret", "--as", "fae", "--name", "deploy")
	if err != nil {
		return err
	}
	const given = `{"apiKey": "` + secret + `"}`
	d.show("answer", "1", "--values", "-", "<<end")
	d.print(strings.ReplaceAll(given, secret, "••••••••") + "\nend")
	text, err := d.outputOf(ctx, given, "answer", "1", "--values", "-")
	d.print(text)
	if err != nil {
		return err
	}
	d.masked = secret
	if err := waiting(); err != nil {
		return err
	}
	shown, err := d.command(ctx, "inbox", "--all")
	if err != nil {
		return err
	}
	if strings.Contains(shown, secret) {
		return errors.New("the inbox shows the secret")
	}
	d.tell("Nothing is settled twice: whoever comes later is told who was first.")
	if _, err := d.command(ctx, "allow", "0"); err == nil {
		return errors.New("a second decision was not refused")
	}
	if _, err := d.command(ctx, "verify"); err != nil {
		return err
	}
	d.tell(fmt.Sprintf("That was it, in %d seconds. The temporary folder is removed. \"parley setup\" does this for your coding agent.", int(time.Since(began).Seconds())))
	return nil
}

// serve starts a node in a process of its own and waits until it answers.
func (d *demo) serve(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	listen := gateway.Off
	if d.Page != nil {
		listen = "127.0.0.1:0"
	}
	d.show("serve", "--listen", listen, "&")
	node := exec.Command(self, "serve", "--listen", listen, "--state", d.folder)
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
	if d.masked != "" {
		text = strings.ReplaceAll(text, d.masked, "••••••••")
	}
	if text != "" {
		fmt.Fprintln(d.Stdout, strings.TrimSuffix(text, "\n"))
	}
}
