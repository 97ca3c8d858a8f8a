package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/mailbox"
)

// environment is the environment of a command: input and output, variables, and the options of every command.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         func(string) (string, bool) // returns an environment variable
	options        options
	check          func(net.Conn) error // of each connection to the node's socket; nil for none
}

// client returns a client of the node that makes a call once. Its requests name the agent that they act for.
func (env *environment) client() *client.Client {
	return env.clientOf(client.Options{Patience: -1})
}

// patience is the time for which a wait outlasts its node: long enough for a restart.
const patience = 15 * time.Second

// waiter returns a client for waits, which continue through restarts of the node. known says that the node was there
// a moment ago. The client does not wait for another.
func (env *environment) waiter(known bool) *client.Client {
	return env.clientOf(client.Options{As: env.options.as, Patience: patience, Known: known})
}

func (env *environment) clientOf(o client.Options) *client.Client {
	o.Socket, o.Check = env.options.state.socket(), env.check
	c, err := client.New(o)
	if err != nil {
		panic(err) // the options are those of a socket
	}
	return c
}

// Call implements api.Client.
func (env *environment) Call(ctx context.Context, operation string, req, resp any) error {
	c := env.client()
	defer c.Close()
	defer env.noteDisk(ctx)()
	return c.Call(ctx, operation, req, resp)
}

// patient makes calls as env does and, where that is harmless, again through a restart of the node: for what asks, and then waits.
type patient struct{ env *environment }

// Call implements api.Client.
func (p patient) Call(ctx context.Context, operation string, req, resp any) error {
	c := p.env.waiter(false)
	defer c.Close()
	defer p.env.noteDisk(ctx)()
	return c.Call(ctx, operation, req, resp)
}

// noteDisk says on standard error that the node waits for its disk, if that is so a while after the beginning of a call. It
// returns the function that ends this.
func (env *environment) noteDisk(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with end
		defer close(done)
		for { // the disk may begin to hang later
			select {
			case <-ctx.Done():
				return
			case <-time.After(terminal.LongCall):
			}
			if disk := waitsForDisk(ctx, env); disk != "" {
				fmt.Fprintf(env.stderr, "parley: note%s. What was asked for may still happen\n", disk)
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// perform performs an operation, and prints its response: as a document, or its text.
func perform[Req, Resp any](ctx context.Context, env *environment, o api.Op[Req, Resp], r Req, text func(Resp) string) error {
	got, err := o.Do(ctx, env, r)
	if err != nil {
		return err
	}
	return env.print(got, func() string { return text(got) })
}

// vote settles a form, perhaps with a second vote of the person as another agent. That is taken only where the agent was named with
// --as, and is said.
func vote[R any](ctx context.Context, env *environment, o api.Op[R, view.Outcome], r R) (view.Outcome, error) {
	got, err := o.Do(ctx, env, r)
	if err == nil || env.options.as == "" || parley.AsError(err).Fields[mailbox.SecondVote] == "" {
		return got, err
	}
	switch r := any(&r).(type) {
	case *api.RespondFormRequest:
		r.SecondVote = true
	case *api.DeclineRequest:
		r.SecondVote = true
	default:
		return got, err
	}
	fmt.Fprintln(env.stderr, "parley: note: "+terminal.Visible(parley.AsError(err).Message))
	return o.Do(ctx, env, r)
}

// decideMany is vote for several decisions.
func (env *environment) decideMany(ctx context.Context, r api.DecideManyRequest) (api.DecideManyResponse, error) {
	got, err := api.DecideMany.Do(ctx, env, r)
	again := slices.IndexFunc(got.Results, func(d api.Decided) bool { return d.Error != nil && d.Error.Fields[mailbox.SecondVote] != "" })
	if err != nil || again < 0 || env.options.as == "" {
		return got, err
	}
	fmt.Fprintln(env.stderr, "parley: note: "+terminal.Visible(got.Results[again].Error.Message))
	r.SecondVote = true
	return api.DecideMany.Do(ctx, env, r)
}

func (env *environment) acting() api.Acting { return api.Acting{As: env.options.as} }

// asFlag returns the flag that has another command act for the same agent.
func (env *environment) asFlag() string {
	if env.options.as == "" {
		return ""
	}
	return " --as " + shell.Word(env.options.as)
}

// interactive reports whether input and output are a terminal.
func (env *environment) interactive() bool {
	in, ok := env.stdin.(*os.File)
	if !ok || !term.IsTerminal(in.Fd()) {
		return false
	}
	out, ok := env.stdout.(*os.File)
	return ok && term.IsTerminal(out.Fd())
}

// defaultWidth is the width of a terminal that does not say its own.
const defaultWidth = 80

// screen returns where lines of output are shown.
func (env *environment) screen() terminal.Screen { return env.screenOf(env.stdout) }

// screenOf returns where lines of an output are shown.
func (env *environment) screenOf(w io.Writer) terminal.Screen {
	s := terminal.Screen{Now: time.Now(), IDs: env.options.wide}
	out, ok := w.(*os.File)
	if !ok || !term.IsTerminal(out.Fd()) {
		s.IDs = true // a program reads them
		return s
	}
	if s.Width, _, _ = term.GetSize(out.Fd()); s.Width <= 0 {
		columns, _ := env.lookup("COLUMNS")
		if s.Width, _ = strconv.Atoi(columns); s.Width <= 0 {
			s.Width = defaultWidth
		}
	}
	none, _ := env.lookup("NO_COLOR")
	kind, _ := env.lookup("TERM")
	s.Color = none == "" && kind != "dumb"
	return s
}

// listedID returns the ID of something of this node as a list shows it. On a terminal the node, which would fill the line,
// is left out.
func listedID(id capabilities.ID, s terminal.Screen) string {
	if s.Width > 0 && !s.IDs {
		return id.ULID.String()
	}
	return id.String()
}

// listedParty returns an agent without a name as lists show it: people read the end of its ID, and scripts the whole.
func listedParty(id capabilities.ID, s terminal.Screen) string {
	if s.Width > 0 && !s.IDs {
		return view.ShortID(id)
	}
	return id.String()
}

// listedIDOf returns the ID that listedID shows as a word.
func (env *environment) listedIDOf(ctx context.Context, word string) (capabilities.ID, error) {
	id, err := capabilities.ParseID(word)
	if err == nil || strings.Contains(word, "@") {
		return id, err
	}
	status, failed := fetchStatus(ctx, env)
	if failed != nil {
		return id, failed
	}
	if whole, err := capabilities.ParseID(word + "@" + status.Node.String()); err == nil {
		return whole, nil
	}
	return id, err
}

// noteNone says on standard error that a list is empty, so that no script takes the words for an item.
func (env *environment) noteNone(count int, none string) {
	if count == 0 && !env.options.json {
		fmt.Fprintln(env.stderr, none)
	}
}

// printList prints the items of a list: as one document, or as text, or on standard error that there are none.
func printList[T any](env *environment, items []T, none string, text func() string) error {
	env.noteNone(len(items), none)
	if len(items) == 0 && !env.options.json {
		return nil
	}
	return env.print(items, text)
}

// print prints a result: doc as one line of JSON, or its text.
func (env *environment) print(doc any, text func() string) error {
	if env.options.json {
		return env.printJSON(doc)
	}
	var s string
	if env.options.quiet {
		s = onlyIDs(doc)
	}
	if s == "" {
		s = text()
	}
	if s == "" {
		return nil
	}
	_, err := fmt.Fprintln(env.stdout, s)
	return err
}

// onlyIDs returns the IDs in a document, one a line; "" if it is of a type for which the text stands.
func onlyIDs(doc any) string {
	switch d := doc.(type) {
	case view.AgentStatus:
		return d.ID.String()
	case finished:
		return d.AgentID
	case []finished:
		return idLines(d, func(f finished) string { return f.AgentID })
	case pendingCall:
		return d.Form.String()
	case []pendingCall:
		return idLines(d, func(p pendingCall) string { return p.Form.String() })
	case []view.Rule:
		return idLines(d, func(r view.Rule) string { return r.Rule.String() })
	case []view.Granted:
		return idLines(d, func(g view.Granted) string { return g.ID.String() })
	case []view.Token:
		return idLines(d, func(t view.Token) string { return t.ID.String() })
	case []view.Peer:
		return idLines(d, func(p view.Peer) string { return p.Node.String() })
	case []view.Invitation:
		return idLines(d, func(v view.Invitation) string { return v.ID.String() })
	}
	return ""
}

func idLines[T any](items []T, id func(T) string) string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = id(item)
	}
	return strings.Join(lines, "\n")
}

// printJSON prints a document on one line, or as YAML.
func (env *environment) printJSON(doc any) error {
	raw, ok := doc.(json.RawMessage)
	if !ok {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(doc); err != nil {
			return err
		}
		raw = buf.Bytes()
	}
	if env.options.yaml {
		text, err := terminal.YAML(raw)
		if err != nil {
			return err
		}
		_, err = io.WriteString(env.stdout, text)
		return err
	}
	_, err := fmt.Fprintf(env.stdout, "%s\n", terminal.JSON(bytes.TrimSpace(raw)))
	return err
}

// orderedValues returns the values of an outcome, in the order of the form's fields; nil if they are no record.
func orderedValues(o view.Outcome) []namedValue {
	record, ok := o.Values.AsRecord()
	if !ok {
		return nil
	}
	list := make([]namedValue, 0, len(record))
	for _, name := range o.Order {
		if v, ok := record[name]; ok {
			list = append(list, namedValue{name, v})
		}
	}
	rest := slices.DeleteFunc(sorted(record), func(v namedValue) bool { return slices.Contains(o.Order, v.name) })
	return append(list, rest...)
}

// answerLines returns the answer to a form, "name: value" a line.
func answerLines(o view.Outcome) string {
	values := orderedValues(o)
	if values == nil && !o.Values.IsNull() {
		return valueText(o.Values)
	}
	return lines(values)
}

// requestText returns the capability that was given for a request, or the answer to another form.
func requestText(o view.Outcome) string {
	if values := orderedValues(o); len(values) == 1 && values[0].name == "value" {
		return valueText(values[0].value)
	}
	return answerLines(o)
}

// namedValue is a value with its name.
type namedValue struct {
	name  string
	value capabilities.Value
}

// sorted returns the values of a record, sorted by name.
func sorted(record map[string]capabilities.Value) []namedValue {
	list := make([]namedValue, 0, len(record))
	for _, name := range slices.Sorted(maps.Keys(record)) {
		list = append(list, namedValue{name, record[name]})
	}
	return list
}

// lines returns values as lines, "name: value".
func lines(record []namedValue) string {
	text := make([]string, len(record))
	for i, n := range record {
		text[i] = terminal.Visible(n.name) + ": " + valueText(n.value)
	}
	return strings.Join(text, "\n")
}

// valueText returns a value on one line. Texts stay as they are, references become locators, sealed values are
// masked, and other values are JSON.
func valueText(v capabilities.Value) string {
	if v.IsRef() {
		return terminal.Visible(v.Text())
	}
	located, err := v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		if leaf.IsRef() {
			return capabilities.String(leaf.Text()), nil
		}
		return leaf, nil
	})
	if err != nil {
		return terminal.Visible(v.Text())
	}
	return terminal.Visible(located.Text())
}

// readToken reads a token or password from a file, or from standard input for "-".
func readToken(env *environment, path string) (string, error) {
	b, err := env.readInput(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", parley.Refuse(parley.InvalidArgument, "there is no token in %s", terminal.Visible(path))
	}
	return token, nil
}
