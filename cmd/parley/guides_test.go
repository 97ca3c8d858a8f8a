package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"parley/internal/eventually"
	"parley/internal/freeport"
)

// unrun are the documents without a command that a test can run.
var unrun = []string{"a2a.md", "ag-ui.md", "benchmarks.md", "comparison.md", "testing.md", "elements.md", "nats.md", "security.md"}

// TestGuides runs the blocks of type console in the README and in docs, in order, on real nodes, and compares the output
// that they show. A block of another type is not run.
func TestGuides(t *testing.T) {
	t.Parallel()
	guides, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(guides, "../../README.md") {
		name := filepath.Base(path)
		t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			steps := stepsOf(string(text))
			if none := slices.Contains(unrun, name); none != (len(steps) == 0) {
				t.Fatalf("%d commands are run", len(steps))
			}
			g := newGuide(t, string(text))
			for _, s := range steps {
				g.run(t, name, s)
			}
		})
	}
}

// step is a command of a guide.
type step struct {
	line    int    // in the document
	machine string // before the prompt; "" for the only one
	command string
	want    []string // the lines that are shown; none for any
}

var prompt = regexp.MustCompile(`^([a-z]*)\$ (.*)$`)

// stepsOf returns the commands of a document. In a block of type console a command follows a prompt, "$ " or "name$ ", and
// goes on behind "> ". The other lines are its output.
func stepsOf(text string) (steps []step) {
	inside := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			inside = line == "```console"
			continue
		}
		if !inside {
			continue
		}
		if m := prompt.FindStringSubmatch(line); m != nil {
			steps = append(steps, step{line: i + 1, machine: m[1], command: m[2]})
			continue
		}
		if len(steps) == 0 {
			continue
		}
		last := &steps[len(steps)-1]
		if more, ok := strings.CutPrefix(line, "> "); ok && len(last.want) == 0 {
			last.command += "\n" + more
		} else {
			last.want = append(last.want, line)
		}
	}
	return steps
}

// guide runs the commands of a document in one folder. Each machine in it has a shell and a state of its own.
type guide struct {
	folder string
	ports  *strings.Replacer // by those that the document has
	shells map[string]*shellOf
}

// shellOf is the shell of a machine.
type shellOf struct {
	runner *interp.Runner
	out    lockedBuffer
}

func newGuide(t *testing.T, text string) *guide {
	t.Helper()
	g := &guide{folder: t.TempDir(), shells: map[string]*shellOf{}}
	var ports []string
	for _, port := range []string{"7420", "7421", "7422"} {
		if strings.Contains(text, "127.0.0.1:"+port) {
			ports = append(ports, "127.0.0.1:"+port, freeport.Address(t))
		}
	}
	g.ports = strings.NewReplacer(ports...)
	t.Cleanup(func() { killNodes(t, g.folder) })
	return g
}

// shell returns the shell of a machine.
func (g *guide) shell(t *testing.T, machine string) *shellOf {
	t.Helper()
	if s := g.shells[machine]; s != nil {
		return s
	}
	home := filepath.Join(g.folder, machine+".home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	listen := "off"
	if machine == "" || machine == "here" {
		if a := g.ports.Replace("127.0.0.1:7420"); a != "127.0.0.1:7420" {
			listen = a
		}
	}
	s := &shellOf{}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "PARLEY_LISTEN=" + listen,
		"GORACE=atexit_sleep_ms=0", "TMPDIR=" + os.Getenv("TMPDIR"),
	}
	var err error
	s.runner, err = interp.New(interp.Env(expand.ListEnviron(env...)), interp.Dir(g.folder), interp.StdIO(nil, &s.out, &s.out), interp.ExecHandlers(callHere))
	if err != nil {
		t.Fatal(err)
	}
	g.shells[machine] = s
	return s
}

// atTerminal are the commands that are for a person at a terminal, and what installs or starts other programs.
var atTerminal = []string{"claude", "codex", "go", "parley open", "parley watch"}

// callHere runs a command that only calls a node in this process. To start one takes longer than most of them.
func callHere(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		h := interp.HandlerCtx(ctx)
		if slices.Contains(atTerminal, strings.Join(args[:min(len(args), 2)], " ")) || slices.Contains(atTerminal, args[0]) {
			return nil
		}
		if args[0] != "parley" || len(args) < 2 || !slices.Contains(calls, args[1]) || slices.ContainsFunc(args, func(a string) bool {
			_, err := os.Stat(filepath.Join(h.Dir, a[strings.IndexByte(a, '=')+1:]))
			return err == nil && a != "."
		}) {
			return next(ctx, args)
		}
		args = slices.Clone(args[1:])
		if args[0] == "run" {
			args = slices.Insert(args, 1, "--folder", h.Dir)
		}
		p := &program{environment: environment{stdin: h.Stdin, stdout: h.Stdout, stderr: h.Stderr}, args: args}
		if h.Stdin == nil {
			p.stdin = strings.NewReader("")
		}
		p.lookup = func(name string) (string, bool) {
			v := h.Env.Get(name)
			if name == "PARLEY_STATE" && v.IsSet() && !filepath.IsAbs(v.String()) {
				return filepath.Join(h.Dir, v.String()), true
			}
			return v.String(), v.IsSet()
		}
		if code := p.run(ctx); code != 0 {
			return interp.ExitStatus(code)
		}
		return nil
	}
}

// reads matches commands that change nothing. They are repeated until they show what is shown in the document.
var reads = regexp.MustCompile(`^parley (inbox|show|permit ls|permit show|names|nodes|grants|ls|logs|rules ls|inspect|status)\b`)

// fails reports whether the document says that a command fails: its output has an error, or it says "exit status".
func (s step) fails() bool {
	return strings.Contains(s.command, "exit status") || slices.ContainsFunc(s.want, func(line string) bool { return strings.HasPrefix(line, "parley: ") })
}

// run runs a command, and fails the test if its output is not that of the document.
func (g *guide) run(t *testing.T, document string, s step) {
	t.Helper()
	sh := g.shell(t, s.machine)
	file, err := syntax.NewParser().Parse(strings.NewReader(g.ports.Replace(s.command)), "")
	if err != nil {
		t.Fatalf("%s:%d: %s: %v", document, s.line, s.command, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*eventually.Patience)
	defer cancel()
	for end := time.Now().Add(eventually.Patience); ; time.Sleep(20 * time.Millisecond) {
		err := sh.runner.Run(ctx, file)
		var status interp.ExitStatus
		if err != nil && !errors.As(err, &status) {
			t.Fatalf("%s:%d: %s: %v", document, s.line, s.command, err)
		}
		got := sh.out.take()
		if (err == nil || s.fails()) && (s.want == nil || shows(s.want, shownLines(got))) {
			return
		}
		if !reads.MatchString(s.command) || time.Now().After(end) {
			t.Fatalf("%s:%d: $ %s\n%s(%v), and not\n%s", document, s.line, s.command, got, err, strings.Join(s.want, "\n"))
		}
	}
}

func shownLines(text string) []string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// shows reports whether output is that of a document: "…" in a line stands for anything, and as a line for any lines.
func shows(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "…" {
		return shows(want[1:], got) || len(got) > 0 && shows(want, got[1:])
	}
	if len(got) == 0 {
		return false
	}
	line := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(want[0], " ")), "…", ".*") + "$")
	return line.MatchString(strings.TrimRight(got[0], " ")) && shows(want[1:], got[1:])
}

// lockedBuffer is a buffer to which commands in the background write, too.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// take returns what was written since the last call.
func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.b.Reset()
	return b.b.String()
}

var _ io.Writer = (*lockedBuffer)(nil)

// TestLinksOfDocumentsLead checks that each link between documents has a file, and a heading if it names one.
func TestLinksOfDocumentsLead(t *testing.T) {
	t.Parallel()
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, path := range append(append(documents, recipes...), "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				target = path
			}
			there, err := os.ReadFile(target)
			if err != nil {
				if info, err := os.Stat(target); err != nil || !info.IsDir() {
					t.Errorf("%s: %s: %v", path, m[1], err)
				}
				continue
			}
			if heading != "" && !slices.Contains(anchors(string(there)), heading) {
				t.Errorf("%s: %s has no heading %s", path, target, heading)
			}
		}
	}
}

var (
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors of a document's headings, as GitHub makes them.
func anchors(text string) (all []string) {
	for _, m := range headings.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// TestREADMEIsShort keeps the README to what a newcomer reads at once. Its Go code is that of an example.
func TestREADMEIsShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n >= 120 {
		t.Errorf("the README has %d lines, wanted under 120", n)
	}
	example, err := os.ReadFile("../../actors/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, snippet, _ := strings.Cut(string(text), "```go\n")
	snippet, _, _ = strings.Cut(snippet, "```")
	for line := range strings.Lines(snippet) {
		code, _, _ := strings.Cut(strings.TrimSpace(line), " // ")
		if code == "" || !strings.Contains(string(example), code) {
			t.Errorf("%q is in no example that runs", code)
		}
	}
}
