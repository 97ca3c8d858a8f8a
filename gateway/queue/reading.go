package queue

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/call"
	"parley/gateway/call/risk"
)

// Facts are what a row needs of a call. They are shared: nobody changes them.
type Facts struct {
	Risk  risk.Level
	Marks []string   // of its findings, the worst first
	Brief call.Brief // the second line
	Verb  string     // as of a call.Reading

	Added, Removed int // lines, of an edit

	alike string // the key by which similar calls fold; "" for none
}

// Mark returns the mark of the worst finding; "" for none.
func (f *Facts) Mark() string {
	if len(f.Marks) == 0 {
		return ""
	}
	return f.Marks[0]
}

// maxReadings bounds the readings of a generation, of which there are two.
const maxReadings = 8192

// Readings keep what was read of calls. Their methods may be called at the same time. The zero value is ready.
type Readings struct {
	mu        sync.Mutex
	new, past map[callKey]*Facts // what was not looked at for a generation is forgotten
	read      int                // calls that were read, for tests
}

// callKey names a call of a message. A message keeps its ID, and its digest is of the call.
type callKey struct {
	message capabilities.ID
	digest  string
}

// Of returns the facts of an approval; nil for any other message.
func (r *Readings) Of(m *view.Message) *Facts {
	if m.Permission == nil {
		return nil
	}
	key := callKey{m.MessageID, m.Digest}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.new[key]; f != nil {
		return f
	}
	f := r.past[key]
	if f == nil {
		f = factsOf(m.Permission)
		r.read++
	}
	if r.new == nil || len(r.new) >= maxReadings {
		r.new, r.past = make(map[callKey]*Facts), r.new
	}
	r.new[key] = f
	return f
}

// factsOf reads a call.
func factsOf(p *parley.Permission) *Facts {
	reading := call.Read(p)
	f := &Facts{Risk: reading.Risks.Level(), Marks: reading.Risks.Marks(), Brief: reading.Brief(), Verb: reading.Verb}
	for _, b := range reading.Blocks {
		f.Added, f.Removed = f.Added+b.Added, f.Removed+b.Removed
	}
	f.alike = alikeOf(p, reading.Verb)
	if p.Use != nil {
		f.alike = "use " + reading.Verb
	}
	if p.Use != nil && reading.Verb == "use" {
		f.alike += " " + reading.Object
	}
	return f
}

// alikeOf returns what similar calls share besides their agent, folder and risk: the server and tool, the program and its
// subcommand of a simple command, or that it changes files.
func alikeOf(p *parley.Permission, verb string) string {
	if strings.HasPrefix(p.Tool, "mcp__") {
		return "tool " + p.Tool
	}
	switch verb {
	case "edit", "write":
		return "changes " + p.Session
	case "read":
		return "read"
	case "run":
		if words := simpleCommand(p.Input); len(words) > 0 {
			key := "command " + path.Base(words[0])
			if len(words) > 1 && !strings.HasPrefix(words[1], "-") && hasSubcommands(path.Base(words[0])) {
				key += " " + words[1]
			}
			return key
		}
		return ""
	}
	return "tool " + p.Tool
}

// hasSubcommands reports whether the first operand of a program says what it does.
func hasSubcommands(program string) bool {
	return slices.Contains([]string{"git", "go", "npm", "pnpm", "yarn", "cargo", "docker", "podman", "kubectl", "helm", "terraform", "gh", "pip", "uv", "make", "aws", "gcloud", "az", "bundle", "mvn", "gradle", "dotnet", "swift", "deno", "bun", "brew", "systemctl"}, program)
}

// simpleCommand returns the words of a command line that is one command of literal words; nil for any other.
func simpleCommand(input string) (words []string) {
	var in struct{ Command json.RawMessage }
	if json.Unmarshal([]byte(input), &in) != nil {
		return nil
	}
	var line string
	if json.Unmarshal(in.Command, &line) != nil {
		if json.Unmarshal(in.Command, &words) != nil || len(words) == 0 {
			return nil
		}
		if len(words) != 3 || words[1] != "-c" && words[1] != "-lc" {
			return words
		}
		line, words = words[2], nil
	}
	file := risk.Parse(line)
	if file == nil || len(file.Stmts) != 1 {
		return nil
	}
	s := file.Stmts[0]
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Background || s.Negated || len(c.Assigns) > 0 {
		return nil
	}
	for _, r := range s.Redirs {
		if r.Word == nil || r.Word.Lit() != "/dev/null" && r.Op != syntax.DplOut {
			return nil
		}
	}
	for i, w := range c.Args {
		text := w.Lit()
		if text == "" && i < 2 {
			return nil
		}
		words = append(words, text)
	}
	return words
}
