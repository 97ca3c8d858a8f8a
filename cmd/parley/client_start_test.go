package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// heavy are packages that a client of a node has no use for. Each costs every run of a program in which it is linked.
var heavy = []string{
	"parley/actors", "parley/persistence", "parley/gateway", "parley/gateway/web",
	"github.com/nats-io/nats-server", "github.com/nats-io/nats.go", "github.com/minio/", "github.com/slack-go/", "github.com/asynkron/",
	"github.com/yuin/goldmark", "github.com/prometheus/", "github.com/microcosm-cc/bluemonday", "google.golang.org/grpc", "google.golang.org/protobuf",
	"go.opentelemetry.io/", "github.com/klauspost/", "html/template", "github.com/santhosh-tekuri/jsonschema",
}

// TestClientHasNoNode reads what the program links with the tag "client".
func TestClientHasNoNode(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-tags", "client", "-deps", "parley/cmd/parley").Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		if slices.ContainsFunc(heavy, func(h string) bool { return pkg == h || !strings.HasPrefix(h, "parley/") && strings.HasPrefix(pkg, h) }) {
			t.Errorf("it links %s", pkg)
		}
	}
}

// TestTimeZonesAreInTheProgram reads whether what the program links has the time zones: a container, as of packaging/Containerfile, has none.
func TestTimeZonesAreInTheProgram(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{"", "client"} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-tags", tag, "-deps", "parley/cmd/parley").Output()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(strings.Fields(string(out)), "time/tzdata") {
			t.Errorf("with the tag %q there are none", tag)
		}
	}
}

// TestHooksStartWithLittleWork builds the client, has it answer hooks as the program does, and reads what its packages
// initialise before main. Without the commit the client is of the version of the node, which is this test.
func TestHooksStartWithLittleWork(t *testing.T) {
	t.Parallel()
	client := filepath.Join(t.TempDir(), "parley-client")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-tags", "client", "-o", client, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	state := nodeTest(t)
	h := startHook(t, state, "PreToolUse", "first", "make all")
	number := awaitCall(t, state, `"make all"`)
	if _, errs, exit := runTest(t.Context(), state, nil, "permit", "allow", number, "--always"); exit != 0 {
		t.Fatal(errs)
	}
	if err := h.command.Wait(); err != nil {
		t.Fatal(err)
	}
	for name, input := range map[string]string{
		"by a rule":  hookInput("PreToolUse", "second", "make all"),
		"left alone": `{"session_id":"s","cwd":"/home/fae/app","hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"/x"}}`,
		"unreadable": "{",
	} {
		out, errs, exit := runTest(t.Context(), state, strings.NewReader(input), "hook", "claude-code")
		c := exec.CommandContext(t.Context(), client, "hook", "claude-code", "--state", state)
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
		c.Stdin = strings.NewReader(input)
		var stderr strings.Builder
		c.Stderr = &stderr
		stdout, err := c.Output()
		if c.ProcessState == nil {
			t.Fatal(err)
		}
		if got := c.ProcessState.ExitCode(); got != exit || string(stdout) != out || stderr.String() != errs {
			t.Errorf("%s: the client ends with %d: %s%s, and the program with %d: %s%s", name, got, stdout, stderr.String(), exit, out, errs)
		}
	}
	// The collector begins at 4 MiB. So a hook ends before, as long as its packages take little.
	const most, mostOfOne = 768 << 10, 128 << 10
	total := 0
	for pkg, bytes := range initialised(t, client) {
		total += bytes
		if bytes > mostOfOne {
			t.Errorf("%s takes %d bytes to initialise", pkg, bytes)
		}
	}
	if total == 0 || total > most {
		t.Errorf("the packages take %d bytes to initialise, over %d", total, most)
	}
}

// TestPackagesInitialiseLittle reads what this module's packages initialise in the whole program.
func TestPackagesInitialiseLittle(t *testing.T) {
	t.Parallel()
	const most = 32 << 10
	for pkg, bytes := range initialised(t, "parley") {
		own := strings.HasPrefix(pkg, "parley/") && pkg != "parley/cmd/parley" // that has the tests' own
		if own && bytes > most {
			t.Errorf("%s takes %d bytes before main: it should when they are needed, as by sync.OnceValue", pkg, bytes)
		}
	}
}

var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* ms clock, (\d+) bytes`)

// initialised returns how many bytes each package of a program allocates before main.
func initialised(t *testing.T, program string) map[string]int {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, "version")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var stderr strings.Builder
	c.Stderr = &stderr
	if err := c.Run(); err != nil {
		t.Fatal(err, stderr.String())
	}
	all := map[string]int{}
	for _, m := range initLine.FindAllStringSubmatch(stderr.String(), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", m[0], err))
		}
		all[m[1]] = n
	}
	if len(all) == 0 {
		t.Fatal("no package is initialised: " + stderr.String())
	}
	return all
}
