package edgetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/gateway/api"
)

// Caller is an agent that calls.
type Caller struct {
	Token string // "" for none
	As    string // the name under which the node's host holds the agent; "" is the host
}

// Edge is a way to call the operations of a node.
type Edge struct {
	Name string // of letters
	// Call performs an operation with the JSON of its request, and returns the JSON of its response. The error of a refusal
	// is a *parley.Error. It is called by one goroutine at a time.
	Call func(ctx context.Context, c Caller, operation, request string) (response []byte, err error)
	// Local is set if the edge takes no tokens: each caller is the node's host, which acts for the agent.
	Local bool
	// Shapes has the operations whose responses are of another shape at this edge.
	Shapes map[string]bool
	// Differs has the codes by which the edge refuses scenes, where they are not those of the others. "" is a scene that the
	// edge cannot express.
	Differs map[string]parley.Code
}

// scene is a call and what has to come of it.
type scene struct {
	name      string // "" is the operation
	by        string // the caller; "" is fae
	operation string
	request   string            // $name is a variable
	keep      map[string]string // sets variables to members of the response
	code      parley.Code       // of the refusal; "" is a success
	local     bool              // only at an edge that takes no tokens
	shape     bool              // only the shape of the response is compared: the rest depends on the node
}

func (s scene) title() string {
	if s.name != "" {
		return s.name
	}
	return s.operation
}

// Run plays all scenes at an edge, and compares them with the golden transcript. Host is the caller with all scopes.
func Run(t *testing.T, e Edge, host Caller, golden string) {
	p := &play{t: t, edge: e, callers: map[string]Caller{"host": host}, variables: map[string]string{"edge": e.Name}}
	p.begin()
	for _, s := range scenes() {
		if e.Local || !s.local {
			p.perform(s)
		}
	}
	p.perOperation()
	p.compare(golden)
}

// CheckTable fails for each operation that no scene calls with success, unless no edge can.
func CheckTable(t *testing.T) {
	for _, o := range api.Operations() {
		if !slices.ContainsFunc(scenes(), func(s scene) bool { return s.operation == o.Name && (s.code == "" || alone[o.Name]) }) {
			t.Errorf("the operation %s has no scene in edgetest", o.Name)
		}
	}
}

// play is a performance of the scenes at one edge.
type play struct {
	t         *testing.T
	edge      Edge
	callers   map[string]Caller
	variables map[string]string
	blocks    []block
}

// block is a part of a transcript.
type block struct{ title, call, result string }

// begin makes the agents that call, with their tokens.
func (p *play) begin() {
	p.t.Helper()
	fae := "fae" + p.edge.Name
	p.must("host", "make_agent", fmt.Sprintf(`{"name":%q}`, fae))
	p.variables["fae"] = fae
	scopes := map[string]string{"fae": `["read","ask","answer","admin"]`, "reader": `["read"]`, "asker": `["ask"]`, "answerer": `["answer"]`, "manager": `["admin"]`}
	for name, list := range scopes {
		p.callers[name] = Caller{Token: p.member(p.must("host", "create_token", fmt.Sprintf(`{"as":%q,"scopes":%s}`, fae, list)), "token"), As: fae}
	}
	p.must("fae", "make_agent", `{"name":"bob"}`)
	bob := "bob" + p.edge.Name
	p.variables["bob"] = bob
	sent := p.member(p.must("fae", "send", `{"recipient":"@host","text":"This is @bob"}`), "message")
	p.must("host", "adopt", fmt.Sprintf(`{"id":%q,"edge":"bob","name":%q}`, sent, bob))
	p.callers["bob"] = Caller{Token: p.member(p.must("host", "create_token", fmt.Sprintf(`{"as":%q,"scopes":["read","ask","answer","admin"]}`, bob)), "token"), As: bob}
	ended := p.must("host", "create_token", fmt.Sprintf(`{"as":%q}`, fae))
	p.callers["ended"] = Caller{Token: p.member(ended, "token"), As: fae}
	p.must("ended", "list_names", `{}`)
	p.must("host", "revoke_token", fmt.Sprintf(`{"as":%q,"token":%q}`, fae, p.member(ended, "id")))
	p.callers["nobody"] = Caller{As: fae}
	p.callers["stranger"] = Caller{Token: "ply_" + strings.Repeat("0", 52) + "SECRET", As: fae}
	p.callers["forger"] = Caller{Token: p.callers["fae"].Token[:len(p.callers["fae"].Token)-1] + "_", As: fae}
}

func (p *play) must(caller, operation, request string) []byte {
	p.t.Helper()
	response, err := p.edge.Call(p.t.Context(), p.callers[caller], operation, request)
	if err != nil {
		p.t.Fatalf("%s by %s: %v", operation, caller, err)
	}
	return response
}

// member returns a member of a response, named with dots, as a variable's text.
func (p *play) member(response []byte, name string) string {
	p.t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(response))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		p.t.Fatalf("%s: %v", response, err)
	}
	for part := range strings.SplitSeq(name, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[part]
		case []any:
			v = at[len(at)-1] // whatever the part is
		}
	}
	if v == nil {
		p.t.Fatalf("%s has no member %s", response, name)
	}
	return fmt.Sprint(v)
}

var variable = regexp.MustCompile(`\$[a-z]+`)

// perform plays a scene, and adds it to the transcript.
func (p *play) perform(s scene) {
	p.t.Helper()
	want := s.code
	if code, differs := p.edge.Differs[s.title()]; differs {
		if want = code; code == "" {
			p.blocks = append(p.blocks, block{title: s.title()})
			return
		}
	}
	caller := s.by
	if caller == "" {
		caller = "fae"
	}
	request := variable.ReplaceAllStringFunc(s.request, func(name string) string {
		value, ok := p.variables[name[1:]]
		if !ok {
			p.t.Fatalf("%s: the variable %s is not set", s.title(), name)
		}
		return value
	})
	response, err := p.edge.Call(p.t.Context(), p.callers[caller], s.operation, request)
	if got := codeOf(err); got != want {
		p.t.Errorf("%s: %v, want the code %q", s.title(), err, want)
	}
	b := block{title: s.title(), call: fmt.Sprintf("%s by %s %.200s", s.operation, caller, s.request)}
	switch _, differs := p.edge.Differs[s.title()]; {
	case err != nil && !differs:
		b.result = p.refusal(err)
	case err != nil || p.edge.Shapes[s.operation]:
	case s.local:
		p.checkType(s, response)
	case s.shape:
		b.result = p.checkType(s, response)
	default:
		p.checkType(s, response)
		b.result = p.plain(response)
	}
	p.blocks = append(p.blocks, b)
	if err == nil {
		for name, member := range s.keep {
			p.variables[name] = p.member(response, member)
		}
	}
}

func codeOf(err error) parley.Code {
	if err == nil {
		return ""
	}
	return parley.CodeOf(err)
}

// checkType checks that a response is of the operation's type, and of no more. It returns the name of the type.
func (p *play) checkType(s scene, response []byte) string {
	p.t.Helper()
	i := slices.IndexFunc(api.Operations(), func(o api.Operation) bool { return o.Name == s.operation })
	if i < 0 {
		p.t.Fatalf("there is no operation %s", s.operation)
	}
	if s.operation == "read_log" { // an event is written, and never read
		return "api.ReadLogResponse"
	}
	into := reflect.New(api.Operations()[i].Response)
	d := json.NewDecoder(bytes.NewReader(response))
	d.DisallowUnknownFields()
	if err := d.Decode(into.Interface()); err != nil {
		p.t.Errorf("%s: %s is no %s: %v", s.title(), response, into.Elem().Type(), err)
	}
	return into.Elem().Type().String()
}

// refusal returns an error as it stands in a transcript.
func (p *play) refusal(err error) string {
	e, ok := errors.AsType[*parley.Error](err)
	if !ok {
		return "not an error of the node: " + err.Error()
	}
	text, failed := json.Marshal(e)
	if failed != nil {
		p.t.Fatal(failed)
	}
	return p.plain(text)
}
