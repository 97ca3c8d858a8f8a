package client_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/gateway/client"
	"parley/gateway/mux"
	"parley/internal/eventually"
)

// slowPython skips a test unless PARLEY_PYTHON names the Python to test with. The others run with any.
func slowPython(t *testing.T) {
	t.Helper()
	if os.Getenv("PARLEY_PYTHON") == "" {
		t.Skip("PARLEY_PYTHON names no Python")
	}
}

// python returns the Python to test with: that of PARLEY_PYTHON, or the system's. The client needs nothing but its library.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if named := os.Getenv("PARLEY_PYTHON"); named != "" {
		path, err = named, nil
	}
	if err == nil {
		err = exec.Command(path, "-c", "import sys, asyncio; sys.exit(sys.version_info < (3, 9))").Run()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s is not run: there is no Python 3.9 or later: %v\n", t.Name(), err)
		t.SkipNow()
	}
	return path
}

// startPython runs a script of the Python client.
func startPython(t *testing.T, name, url, token string, args ...string) *script {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, python(t), append([]string{"-W", "error", filepath.Join("python", filepath.FromSlash(name))}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1", "PARLEY_URL="+url, "PARLEY_TOKEN="+token)
	return runScript(t, name, cmd)
}

func TestPythonUnits(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(python(t), "-W", "error", filepath.Join("python", "tests", "test_units.py"))
	cmd.Env = append(os.Environ(), "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPythonAskSurvivesRestart kills the node while a program in Python waits for its answer.
func TestPythonAskSurvivesRestart(t *testing.T) {
	for _, name := range []string{"ask.py", "ask_async.py"} {
		t.Run(name, func(t *testing.T) {
			if name == "ask.py" { // the other is nearly the same
				slowPython(t)
			}
			testPythonAskSurvivesRestart(t, name)
		})
	}
}

func testPythonAskSurvivesRestart(t *testing.T, name string) {
	h, host, _ := openTest(t)
	cut := openCuttingProxy(t, h.address, "/form")
	cut.cuts.Store(1)
	ask := startPython(t, "examples/"+name, cut.url, tokenOf(t, host))
	if got := ask.line(t); got != "asked" {
		t.Fatalf("got %q", got)
	}
	h.kill()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, host, client.View{}); len(got) != 1 || cut.cuts.Load() >= 0 {
		t.Errorf("%d messages arrived, with %d cuts to come", len(got), cut.cuts.Load())
	}
	if err := host.Call(t.Context(), "respond_form", map[string]any{"number": "0", "values": map[string]any{"port": 443}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := ask.ends(t); got != "asked\nthe host says 443\nfollowed 0\n" {
		t.Errorf("%s: %s", name, got)
	}
}

// TestPythonAgentsShareConnection counts what cycles of two agents put on the wire.
func TestPythonAgentsShareConnection(t *testing.T) {
	slowPython(t)
	h, host, _ := openTest(t)
	pass := openCuttingProxy(t, h.address, "")
	const cycles = 100
	s := startPython(t, "tests/cycles.py", pass.url, tokenOf(t, host), fmt.Sprint(cycles), "16", hostToken(t, host))
	if got := strings.Count(s.ends(t), "cycle"); got != cycles {
		t.Errorf("%d cycles, want %d", got, cycles)
	}
	t.Log(strings.TrimSpace(s.stderr.String()))
	for operation, want := range map[string]int{"form": cycles, "respond_form": cycles, "await": 0, "follow": 1} {
		if got := pass.begunOf(operation); got != want {
			t.Errorf("%s was called %d times, want %d", operation, got, want)
		}
	}
	if sockets, plain, asked := pass.sockets.Load(), pass.plain.Load(), pass.framesOf(mux.Asked); sockets != 1 || plain != 0 || asked != cycles {
		t.Errorf("%d connections, %d calls by HTTP and %d accepted forms, want 1, 0 and %d", sockets, plain, asked, cycles)
	}
}

// TestPythonThreadsShareConnection counts what the threads of a client that blocks put on the wire.
func TestPythonThreadsShareConnection(t *testing.T) {
	h, host, _ := openTest(t)
	pass := openCuttingProxy(t, h.address, "")
	const cycles = 20
	s := startPython(t, "tests/blocking.py", pass.url, tokenOf(t, host), hostToken(t, host), "cycles alone")
	if got := strings.Count(s.ends(t), "cycle"); got != cycles {
		t.Errorf("%d cycles, want %d", got, cycles)
	}
	t.Log(strings.TrimSpace(s.stderr.String()))
	for operation, want := range map[string]int{"form": cycles + 1, "respond_form": cycles, "await": 0, "follow": 1} {
		if got := pass.begunOf(operation); got != want {
			t.Errorf("%s was called %d times, want %d", operation, got, want)
		}
	}
	if sockets, plain := pass.sockets.Load(), pass.plain.Load(); sockets != 2 || plain != 0 {
		t.Errorf("two clients opened %d connections and made %d calls by HTTP, want 2 and 0", sockets, plain)
	}
}

// TestPythonBlockingClient uses a client that blocks after timeouts, after its end and in a child process.
func TestPythonBlockingClient(t *testing.T) {
	slowPython(t)
	h, host, _ := openTest(t)
	plain := openCuttingProxy(t, h.address, "")
	plain.plainOnly = true
	for _, url := range []string{h.url(), plain.url} {
		s := startPython(t, "tests/blocking.py", url, tokenOf(t, host), hostToken(t, host))
		if _, got, _ := strings.Cut(s.ends(t), "TimeoutError\n"); got != "followed []\ncancelled cancelled\nchild True\nexit 0 parent True\nthreads 1\n" {
			t.Errorf("over %s:\n%s", url, got)
		}
		if said := s.stderr.String(); strings.Count(said, "\n") != 1 {
			t.Errorf("over %s it complains: %s", url, said)
		}
	}
}

// TestPythonCyclesSurviveKill kills the node with SIGKILL in the middle, and later, with PARLEY_PYTHON, stops it in order.
func TestPythonCyclesSurviveKill(t *testing.T) {
	h, host, _ := openTest(t)
	const cycles = 60
	ends := []func(){h.kill, h.stop}
	if os.Getenv("PARLEY_PYTHON") == "" {
		ends = ends[:1]
	}
	s := startPython(t, "tests/cycles.py", h.url(), tokenOf(t, host), fmt.Sprint(cycles), "8", hostToken(t, host))
	for _, end := range ends {
		for range cycles / 4 {
			s.line(t)
		}
		end()
		if err := h.start(); err != nil {
			t.Fatal(err)
		}
	}
	ended := strings.Fields(strings.ReplaceAll(s.ends(t), "cycle ", ""))
	var asked, want []string
	for _, m := range listed(t, host, client.View{All: true}) {
		asked = append(asked, m.Description)
	}
	for i := range cycles {
		want = append(want, fmt.Sprint(i))
	}
	slices.Sort(ended)
	slices.Sort(asked)
	slices.Sort(want)
	if !slices.Equal(ended, want) || !slices.Equal(asked, want) {
		t.Errorf("%d cycles ended, and %d forms were asked, want %d of each, once", len(ended), len(asked), cycles)
	}
}

// TestPythonFallsBackToHTTP has something on the way that knows no WebSockets.
func TestPythonFallsBackToHTTP(t *testing.T) {
	slowPython(t)
	h, host, _ := openTest(t)
	pass := openCuttingProxy(t, h.address, "")
	pass.plainOnly = true
	s := startPython(t, "tests/cycles.py", pass.url, tokenOf(t, host), "10", "4", hostToken(t, host))
	if got := strings.Count(s.ends(t), "cycle"); got != 10 {
		t.Errorf("%d cycles, want 10", got)
	}
	if tried := pass.sockets.Load(); tried != 1 {
		t.Errorf("%d connections were tried, want 1", tried)
	}
}

// TestPythonFollowSurvivesKill kills the node, cuts the connection, and resumes in another program.
func TestPythonFollowSurvivesKill(t *testing.T) {
	slowPython(t)
	h, host, fae := openTest(t)
	pass := openCuttingProxy(t, h.address, "follow")
	token := hostToken(t, host)
	say := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: text}); err != nil {
				t.Fatal(err)
			}
		}
	}
	say("one", "two")
	follow := startPython(t, "tests/follow.py", pass.url, token)
	cursor, text, _ := strings.Cut(follow.line(t), " ")
	if text != "one" {
		t.Fatalf("got %q", text)
	}
	if _, text, _ = strings.Cut(follow.line(t), " "); text != "two" {
		t.Fatalf("got %q", text)
	}
	eventually.Holds(t, "it follows over the connection", func() bool { return pass.begunOf("follow") > 0 })
	pass.cuts.Store(1)
	say("three")
	if _, text, _ = strings.Cut(follow.line(t), " "); text != "three" {
		t.Fatalf("got %q", text)
	}
	h.kill()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	for i := range 80 { // more than the node sends ahead
		say(fmt.Sprint(i))
		fmt.Fprint(&want, " ", i)
	}
	say("end")
	if got := texts(follow.ends(t)); got != "one two three"+want.String()+" end" {
		t.Errorf("it was told %s", got)
	}
	if got := texts(startPython(t, "tests/follow.py", pass.url, token, cursor).ends(t)); got != "two three"+want.String()+" end" {
		t.Errorf("after %s: %s", cursor, got)
	}
}

// TestPythonAnswersWhatWasShown has a form amended after it was read.
func TestPythonAnswersWhatWasShown(t *testing.T) {
	slowPython(t)
	h, host, _ := openTest(t)
	for _, url := range []string{h.url(), "unix:" + h.socket()} {
		s := startPython(t, "tests/shown.py", url, hostToken(t, host), tokenOf(t, host))
		if got, want := s.ends(t), `AMENDED
AMENDED
AMENDED
INVALID_ANSWER {'port': 'want a number'}
{'port': 81}
upsert fae
TOO_LARGE
TOO_LARGE
TOO_LARGE
not waited for
True voted False
2
voted cancelled
`; got != want {
			t.Errorf("over %s:\n%swant\n%s", url, got, want)
		}
	}
}

// TestPythonOverTLS has the certificate of the node's proxy checked.
func TestPythonOverTLS(t *testing.T) {
	slowPython(t)
	h, host, _ := openTest(t)
	pass := openCuttingProxy(t, h.address, "")
	secure := httptest.NewTLSServer(pass)
	t.Cleanup(secure.Close)
	token, other := tokenOf(t, host), hostToken(t, host)
	if err := startPython(t, "tests/cycles.py", secure.URL, token, "1", "1", other).cmd.Wait(); err == nil {
		t.Error("it takes a certificate that nobody has signed")
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", path)
	if got := strings.Count(startPython(t, "tests/cycles.py", secure.URL, token, "20", "4", other).ends(t), "cycle"); got != 20 {
		t.Errorf("%d cycles, want 20", got)
	}
	if sockets, plain := pass.sockets.Load(), pass.plain.Load(); sockets != 1 || plain != 0 {
		t.Errorf("%d connections and %d calls by HTTP, want 1 and 0", sockets, plain)
	}
}
