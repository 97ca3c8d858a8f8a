package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/internal/disk"
)

// The exit codes.
const (
	exitDone        = 0
	exitRefused     = 1
	exitUsage       = 2
	exitNotRunning  = 3
	exitTimeout     = 4
	exitEnded       = 5
	exitAgentFailed = 6
	exitPermission  = 7
	exitAsked       = 8
	exitInterrupted = 130 // as shells count: 128 and SIGINT
)

// usageError is an error in a command line.
type usageError struct{ refused *parley.Error }

func (e usageError) Error() string { return e.refused.Error() }
func (e usageError) Unwrap() error { return e.refused }

func usage(c *cobra.Command, format string, args ...any) error {
	return usageError{parley.Refuse(parley.InvalidArgument, format, args...).WithHint("see %s --help", c.CommandPath())}
}

// flagWords returns what is wrong with a flag. Of a number the library has words of its own package.
func flagWords(err error) string {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if _, isNumber := errors.AsType[*strconv.NumError](err); !ok || !isNumber {
		return err.Error()
	}
	want := "a whole number"
	switch invalid.GetFlag().Value.Type() {
	case "bool":
		want = "true or false"
	case "float32", "float64":
		want = "a number"
	}
	return fmt.Sprintf("--%s %s: want %s", invalid.GetFlag().Name, terminal.Visible(invalid.GetValue()), want)
}

// interrupted is the error of a wait that the person at the keyboard ended. Without a message nothing is printed.
type interrupted struct{ message, hint string }

func (e *interrupted) Error() string { return e.message }

// report prints an error and returns the exit code for it.
func (p *program) report(ctx context.Context, err error) int {
	if exit, said := asExit(err); said {
		return exit
	}
	shown, exit := p.classify(ctx, err)
	if shown.Message == "" {
		return exit
	}
	if p.wantsJSON() {
		p.printFailureJSON(shown)
		return exit
	}
	fmt.Fprintf(p.stderr, "parley: %s: %s\n", shown.Code, terminal.Visible(withFields(shown)))
	if shown.Hint != "" {
		fmt.Fprintf(p.stderr, "hint: %s\n", terminal.Visible(shown.Hint))
	}
	return exit
}

func (p *program) printFailureJSON(e *parley.Error) {
	body, err := json.Marshal(api.Failure{Error: e})
	if err != nil {
		body = []byte(`{"error":{"code":"INTERNAL","message":"internal error"}}`)
	}
	fmt.Fprintf(p.stderr, "%s\n", terminal.JSON(body))
}

// classify returns the error to show, and the exit code for it.
func (p *program) classify(ctx context.Context, err error) (*parley.Error, int) {
	if e, ok := errors.AsType[*interrupted](err); ok {
		return &parley.Error{Code: "INTERRUPTED", Message: e.message, Hint: e.hint}, exitInterrupted
	}
	if ctx.Err() != nil {
		return parley.Refuse("INTERRUPTED", "stopped by the keyboard"), exitInterrupted
	}
	if e, ok := errors.AsType[usageError](err); ok {
		return e.refused, exitUsage
	}
	if !p.began {
		return cobraError(err), exitUsage
	}
	if _, ok := errors.AsType[*parley.Error](err); !ok {
		return withoutCode(err), exitRefused
	}
	e := parley.AsError(err)
	if client.IsAbsent(err) { // to start one is no way out where one runs
		e = parley.AsError(p.options.state.unanswered(ctx, e))
	}
	return e, exitCode(e.Code)
}

// withoutCode returns the error to show for one without a code. What the system says of a disk or a file is for the reader to mend.
func withoutCode(err error) *parley.Error {
	e := parley.Refuse(parley.Internal, "%v", err)
	hint := disk.Hint(err)
	switch {
	case hint == "":
		return e
	case errors.Is(err, fs.ErrPermission):
		e.Code = parley.NotPermitted
	default:
		e.Code = parley.ReadOnly
	}
	return e.WithHint("%s", hint)
}

func exitCode(c parley.Code) int {
	switch c {
	case parley.NotRunning:
		return exitNotRunning
	case parley.Timeout:
		return exitTimeout
	case parley.Asked:
		return exitAsked
	case parley.Cancelled, parley.Declined, parley.Expired:
		return exitEnded
	}
	return exitRefused
}

// cobraError returns an error of cobra, which has several lines, as one line and a hint.
func cobraError(err error) *parley.Error {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	e := parley.Refuse(parley.InvalidArgument, "%s", lines[0])
	if len(lines) > 1 {
		return e.WithHint("%s", strings.Join(lines[1:], " "))
	}
	return e.WithHint("see parley --help")
}

// wantsJSON reports whether output is JSON, also where the options could not be read.
func (p *program) wantsJSON() bool {
	if p.began {
		return p.options.json
	}
	value, ok := p.lookup(variablePrefix + "JSON")
	return p.options.json || p.options.output == formatJSON || slices.Contains(p.args, "--json") || ok && value != "" && value != "0" && value != "false"
}

// withFields returns the message of an error, with the errors of fields that it does not mention.
func withFields(e *parley.Error) string {
	var rest []string
	for name, why := range e.Fields {
		if !strings.Contains(e.Message, name) {
			rest = append(rest, name+": "+why)
		}
	}
	if len(rest) == 0 {
		return e.Message
	}
	slices.Sort(rest)
	return e.Message + ": " + strings.Join(rest, "; ")
}

// notHost returns the refusal of a decision. Where this process does not call as the host, it has the node's hint.
func (env *environment) notHost(ctx context.Context, err error) error {
	_, wrong := errors.AsType[usageError](err)
	if e, ok := errors.AsType[*parley.Error](err); ok && !wrong && env.options.as == "" {
		refused := api.Locate.Run(ctx, env, api.NameRequest{Acting: api.Acting{As: capabilities.NameHost}, Name: capabilities.NameSelf})
		if parley.CodeOf(refused) == parley.NotPermitted {
			return e.WithHint("%s", parley.AsError(refused).Hint)
		}
	}
	return err
}

// maxInput bounds the input from files and standard input: a request can carry no more.
const maxInput = api.MaxBody

func readAll(r io.Reader, name string) ([]byte, error) { return terminal.Read(r, name, maxInput) }

// notAnApproval returns the error for a message that is no approval, with a hint to the command for it.
func notAnApproval(e view.Message) error {
	hint := fmt.Sprintf("parley answer %d answers it", e.Number)
	switch e.Type {
	case "request":
		hint = fmt.Sprintf("parley resolve %d NAME gives what it asks for", e.Number)
	case "message":
		hint = fmt.Sprintf("parley reply %d TEXT answers it", e.Number)
	}
	return parley.Refuse(parley.NoPendingPermission, "message %d is no approval (is %q)", e.Number, e.Type).WithHint("%s", hint)
}
