package resource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// tool is the tools of a server of the Model Context Protocol, which the node's host runs or reaches. Each use has a session of its
// own. In it the tool is looked at first: one whose description or schemas are others than when the host granted it is refused, since
// a model reads them as what it is told to do.
type tool struct{}

const (
	longestTool  = 2 * time.Minute
	maxToolTexts = 128 << 10
)

func (tool) verbs() []Verb {
	return []Verb{
		{Name: "list", Words: "lists the tools", Takes: []Take{}},
		{Name: "call", Words: "calls a tool", Writes: true, Takes: []Take{{"tool", "text"}, {"arguments", "record"}}, Needs: 1},
	}
}

// Describe implements Kind.
func (k tool) Describe(_ Resource, f capabilities.Facet) []Verb { return permitted(f, k.verbs()...) }

// Narrow implements Kind.
func (tool) Narrow(f capabilities.Facet) error { return f.CheckFor(capabilities.KindTool) }

// Revoke implements Kind.
func (tool) Revoke(Resource) error { return nil }

// Read implements Kind.
func (k tool) Read(r Resource, verb string, in Input) (Call, error) {
	v, err := find(k.verbs(), verb, in)
	if err != nil {
		return Call{}, err
	}
	c := Call{Action: capabilities.Action{Verb: verb, Writes: v.Writes}, Words: "list the tools", Input: in}
	if verb == "list" {
		return c, nil
	}
	name, err := textIn(in, "tool")
	if err != nil {
		return Call{}, err
	}
	if !slices.ContainsFunc(r.Made.Tools, func(t events.ResourceTool) bool { return t.Name == name }) {
		return Call{}, parley.Refuse(parley.InvalidArgument, "there is no tool %s", parley.Quoted(name, 80)).WithHint("list says which there are")
	}
	arguments := capabilities.Record(nil)
	if v, ok := in["arguments"]; ok {
		if _, ok := v.AsRecord(); !ok {
			return Call{}, parley.Refuse(parley.InvalidArgument, "the arguments of a tool are a record")
		}
		if v.Has(capabilities.Value.IsRef) || v.Has(capabilities.Value.IsSealed) {
			return Call{}, parley.Refuse(parley.InvalidArgument, "the arguments of a tool are plain data")
		}
		arguments = v
	}
	c.Action.Word = name
	c.Words = parley.Shown("call "+name+" "+arguments.Text(), 2<<10)
	return c, nil
}

// Invoke implements Kind.
func (tool) Invoke(ctx context.Context, r Resource, c Call, f capabilities.Facet) (capabilities.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, longestTool)
	defer cancel()
	s, err := connect(ctx, r.Made)
	if err != nil {
		return capabilities.Value{}, err
	}
	defer s.Close()
	now, err := toolsOf(ctx, s.ClientSession)
	if err != nil {
		return capabilities.Value{}, err
	}
	if c.Action.Verb == "list" {
		return listTools(r.Made, now, f), nil
	}
	if err := checkSame(r.Made, now, c.Action.Word); err != nil {
		return capabilities.Value{}, err
	}
	arguments := json.RawMessage("{}")
	if v, ok := c.Input["arguments"]; ok {
		if arguments, err = json.Marshal(v); err != nil {
			return capabilities.Value{}, err
		}
	}
	got, err := s.CallTool(ctx, &sdk.CallToolParams{Name: c.Action.Word, Arguments: arguments})
	if err != nil {
		return capabilities.Value{}, broken(ctx, err)
	}
	return resultOf(got)
}

// ToolsOf returns the tools of a server as they are now.
func ToolsOf(ctx context.Context, m *events.ResourceMade) ([]events.ResourceTool, error) {
	ctx, cancel := context.WithTimeout(ctx, longestTool)
	defer cancel()
	s, err := connect(ctx, m)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	now, err := toolsOf(ctx, s.ClientSession)
	if err != nil {
		return nil, err
	}
	tools := []events.ResourceTool{}
	for _, t := range now {
		d, err := digestOf(t)
		if err != nil {
			return nil, err
		}
		tools = append(tools, events.ResourceTool{Name: t.Name, Digest: d})
	}
	slices.SortFunc(tools, func(a, b events.ResourceTool) int { return strings.Compare(a.Name, b.Name) })
	return tools, nil
}

// passed are the variables of the node that the program of a server gets. Others may be secrets.
var passed = []string{"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "USER", "LOGNAME", "SYSTEMROOT"}

// session is a session with a server. Close is for the goroutine that has connected.
type session struct {
	*sdk.ClientSession
	release func()
}

// Close ends the session, and the server's program.
func (s session) Close() {
	_ = s.ClientSession.Close() // what the use has returned stands
	s.release()
}

func connect(ctx context.Context, m *events.ResourceMade) (session, error) {
	var transport sdk.Transport
	release := func() {}
	errs := &lastWords{}
	if len(m.Command) > 0 {
		cmd := exec.CommandContext(ctx, m.Command[0], m.Command[1:]...)
		cmd.Dir, cmd.Stderr = m.Folder, errs
		for _, name := range passed {
			if v, ok := os.LookupEnv(name); ok {
				cmd.Env = append(cmd.Env, name+"="+v)
			}
		}
		release = endsWithNode(cmd)
		transport = &sdk.CommandTransport{Command: cmd, TerminateDuration: time.Second}
	} else {
		client, err := clientFor(nil)
		if err != nil {
			return session{}, err
		}
		transport = &sdk.StreamableClientTransport{Endpoint: m.Address, HTTPClient: client, DisableStandaloneSSE: true, MaxRetries: -1}
	}
	s, err := sdk.NewClient(&sdk.Implementation{Name: "parley", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		release()
		err := broken(ctx, err)
		if words := errs.String(); words != "" {
			err = parley.AsError(err).WithHint("it said: %s", words)
		}
		return session{}, err
	}
	return session{s, release}, nil
}

// lastWords keeps the end of what a program writes.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p[max(0, len(p)-500):]...)
	w.text = w.text[max(0, len(w.text)-500):]
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return parley.Shown(strings.TrimSpace(strings.ToValidUTF8(string(w.text), "")), 500)
}

// CheckServer refuses with INVALID_ARGUMENT a server that cannot be run or reached.
func CheckServer(m *events.ResourceMade) error {
	if len(m.Command) > 0 {
		if m.Folder != "" && !filepath.IsAbs(m.Folder) {
			return parley.Refuse(parley.InvalidArgument, "the folder that a server runs in is an absolute path")
		}
		return nil
	}
	u, err := url.Parse(m.Address)
	local := err == nil && u.Scheme == "http" && (u.Hostname() == "127.0.0.1" || u.Hostname() == "::1" || u.Hostname() == "localhost")
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !local {
		return parley.Refuse(parley.InvalidArgument, "%s is no address of a server: it begins with https://", parley.Quoted(m.Address, 200))
	}
	return nil
}

// broken says that a server failed. What it says itself is for the node's host, and is data.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return parley.Refuse(parley.Timeout, "the server of the tool did not answer in time")
	}
	return parley.Refuse(parley.NodeUnreachable, "the server of the tool failed: %s", parley.Shown(err.Error(), 500))
}

func toolsOf(ctx context.Context, s *sdk.ClientSession) (all []*sdk.Tool, err error) {
	for t, err := range s.Tools(ctx, nil) {
		if err != nil {
			return nil, broken(ctx, err)
		}
		if all = append(all, t); len(all) > 256 {
			return nil, parley.Refuse(parley.TooLarge, "the server has too many tools")
		}
	}
	return all, nil
}

// digestOf returns the digest of all that a model reads of a tool.
func digestOf(t *sdk.Tool) (string, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("tool %s: %w", t.Name, err)
	}
	var sorted any // the library may keep members in the order of the server
	if err := json.Unmarshal(text, &sorted); err != nil {
		return "", fmt.Errorf("tool %s: %w", t.Name, err)
	}
	if text, err = json.Marshal(sorted); err != nil {
		return "", fmt.Errorf("tool %s: %w", t.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// checkSame refuses a tool that is not as it was when the host granted it.
func checkSame(m *events.ResourceMade, now []*sdk.Tool, name string) error {
	was := slices.IndexFunc(m.Tools, func(t events.ResourceTool) bool { return t.Name == name })
	found := 0
	for _, t := range now {
		if t.Name != name {
			continue
		}
		found++
		if d, err := digestOf(t); err != nil || was < 0 || d != m.Tools[was].Digest {
			return parley.Refuse(parley.NotPermitted, "the tool %s is not as it was when it was granted: its description or schema has changed", parley.Quoted(name, 80)).
				WithHint("the host looks at it, and grants it again: parley make tool NAME --again")
		}
	}
	if found != 1 {
		return parley.Refuse(parley.NotPermitted, "the server has %d tools %s", found, parley.Quoted(name, 80))
	}
	return nil
}

// listTools returns the tools that a facet permits and that are as they were.
func listTools(m *events.ResourceMade, now []*sdk.Tool, f capabilities.Facet) capabilities.Value {
	tools, size := []capabilities.Value{}, 0
	for _, t := range now {
		if !capabilities.HasWord(f.Only, t.Name) {
			continue
		}
		one := Input{"name": capabilities.String(t.Name)}
		if checkSame(m, now, t.Name) != nil {
			one["changed"] = capabilities.Bool(true)
		} else if schema, err := json.Marshal(t.InputSchema); err == nil && size+len(t.Description)+len(schema) <= maxToolTexts {
			size += len(t.Description) + len(schema)
			one["description"], one["schema"] = capabilities.String(t.Description), capabilities.String(string(schema))
		}
		tools = append(tools, capabilities.Record(one))
	}
	return capabilities.Record(Input{"tools": capabilities.List(tools...)})
}

// resultOf returns what a tool has returned, as texts: nothing in it is a reference, whatever it looks like.
func resultOf(got *sdk.CallToolResult) (capabilities.Value, error) {
	result := Input{"failed": capabilities.Bool(got.IsError)}
	var texts []string
	size := 0
	for _, c := range got.Content {
		text := ""
		if t, ok := c.(*sdk.TextContent); ok {
			text = t.Text
		} else if b, err := json.Marshal(c); err == nil {
			text = string(b)
		}
		if size += len(text); size > maxPiece {
			return capabilities.Value{}, parley.Refuse(parley.TooLarge, "the tool has returned more than %d KiB", maxPiece>>10)
		}
		texts = append(texts, strings.ToValidUTF8(text, "\uFFFD"))
	}
	result["text"] = capabilities.String(strings.Join(texts, "\n"))
	if got.StructuredContent != nil {
		if b, err := json.Marshal(got.StructuredContent); err == nil && size+len(b) <= maxPiece && string(b) != result["text"].Text() {
			result["structured"] = capabilities.String(string(b))
		}
	}
	return capabilities.Record(result), nil
}
