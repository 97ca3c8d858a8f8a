package setup

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"parley/cmd/parley/hook"
)

// TestSetupKeepsOtherSettings adds hooks and servers to all kinds of settings, again to the results, and takes them out.
func TestSetupKeepsOtherSettings(t *testing.T) {
	hooks := []eventHook{askHook(hook.PermissionRequest, "parley hook claude-code")}
	server := mcpServer{Type: "stdio", Command: "parley", Args: []string{"mcp", "--as", "fae"}}
	edits := map[string]func(string) (string, error){
		"hook":      edited(func(d *document) error { return d.setHooks("claude-code", hooks) }),
		"unhook":    edited(func(d *document) error { return d.setHooks("claude-code", nil) }),
		"server":    edited(func(d *document) error { return d.setServer(&server) }),
		"no-server": edited(func(d *document) error { return d.setServer(nil) }),
		"block": func(text string) (string, error) {
			if text != "" {
				text += "\n" // the reader of the test file removes it
			}
			is, err := withBlock([]byte(text), serverBlock(server))
			return string(is), err
		},
	}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			edit := edits[d.Cmd]
			if edit == nil {
				t.Fatalf("%s: no command %s", d.Pos, d.Cmd)
			}
			once, err := edit(d.Input)
			if err != nil {
				return err.Error() + "\n"
			}
			again, err := edit(once)
			if d.Cmd == "block" {
				again, err = edit(once[:len(once)-1])
			}
			if err != nil || again != once {
				t.Errorf("%s: edited twice it is another (%v):\n%s", d.Pos, err, again)
			}
			return strings.TrimSuffix(once, "\n") + "\n"
		})
	})
}

func edited(edit func(*document) error) func(string) (string, error) {
	return func(text string) (string, error) {
		d, ok := readDocument([]byte(text))
		if !ok {
			return "", fmt.Errorf("no JSON object")
		}
		if err := edit(d); err != nil {
			return "", err
		}
		if !json.Valid(d.text) {
			return "", fmt.Errorf("became what is no JSON: %s", d.text)
		}
		return string(d.text), nil
	}
}

// TestSettingsRunTheClient puts a client beside the program, which is this test. It is entered only if it is of the same
// version, and a hook that the path finds keeps its words.
func TestSettingsRunTheClient(t *testing.T) {
	o, _ := person(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	entry := func() string {
		t.Helper()
		s := settings{Options: o, agent: hook.ClaudeCode()}
		if err := s.findPrograms(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s.runs
	}
	client := clientOf(self)
	place := func(version string) {
		t.Helper()
		if err := os.Rename(fakeParley(t, clientName, version), client); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(client) })
	}
	if got := entry(); got != self {
		t.Errorf("without a client it is %s", got)
	}
	place("v1.2.2")
	if got := entry(); got != self {
		t.Errorf("beside a client of another version it is %s", got)
	}
	if wrong := (settings{Options: o}).wrongClient(t.Context()); len(wrong) != 1 || !strings.Contains(wrong[0], "install both of one version") {
		t.Errorf("a client of another version: %q", wrong)
	}
	place(testVersion)
	if got := entry(); got != client {
		t.Errorf("beside a client it is %s", got)
	}
	if own := fmt.Sprintf(`{"type":"command","command":"%s hook claude-code"}`, client); !isOwnHook([]byte(own), "claude-code") {
		t.Errorf("%s is no hook of Parley's", own)
	}
	if wrong := (settings{Options: o}).wrongClient(t.Context()); wrong != nil {
		t.Errorf("a client of this version: %q", wrong)
	}
	folder := t.TempDir()
	for name, to := range map[string]string{"parley": self, clientName: client} {
		if err := os.Symlink(to, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder)
	if got := entry(); got != clientName {
		t.Errorf("on the path it is %s", got)
	}
}

func TestTOMLStrings(t *testing.T) {
	for s, want := range map[string]string{
		`a`: `"a"`, `a"b\`: `"a\"b\\"`, "a\x7f\n&": `"a\u007f\n&"`, "é": `"é"`,
	} {
		if got := tomlString(s); got != want {
			t.Errorf("%q is %s, want %s", s, got, want)
		}
	}
}

// TestHooksThatFailBlockCallsAlone runs what setup enters with a program that ends with the status 2, as one of Go does that panics or cannot
// have a thread, and with one that has lost its text, as a full disk or a power cut leaves it during an update: a shell runs an empty file as
// a script that succeeds. The status 2 has an agent block. That is for calls: on other events it would keep a person from ending a turn, or
// from a prompt. A program that succeeds blocks nothing.
func TestHooksThatFailBlockCallsAlone(t *testing.T) {
	folder := t.TempDir()
	status := func(command string) int {
		t.Helper()
		c := exec.Command("/bin/sh", "-c", command)
		c.Env = []string{"PATH=" + folder}
		if err := c.Run(); c.ProcessState == nil {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode()
	}
	o, _ := person(t)
	program := filepath.Join(folder, "parley")
	for _, test := range []struct {
		text           string
		ofCall, others int // statuses
		asItIs         int
	}{{"#!/bin/sh\nexit 2\n", 2, 1, 2}, {"", 2, 0, 0}, {"#!/bin/sh\nexit 0\n", 0, 0, 0}} {
		if err := os.WriteFile(program, []byte(test.text), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, runs := range []string{"parley", program} {
			for _, a := range []hook.Agent{hook.ClaudeCode(), hook.Codex(), hook.GeminiCLI(), hook.QwenCode()} {
				s := settings{Options: o, agent: a, runs: runs}
				all := s.hooks("settings.json")
				if isOneFile(a) {
					all = s.oneFileHooks("settings.json")
				}
				for _, h := range all {
					want := test.others
					switch {
					case h.Wakes, strings.HasSuffix(h.Command, leasesFlag): // their status counts, and a lease is no gate
						want = test.asItIs
					case slices.Contains([]string{hook.PreToolUse, hook.PermissionRequest, geminiEvents[hook.PreToolUse]}, h.event):
						want = test.ofCall
					}
					if got := status(h.Command); got != want {
						t.Errorf("%s, %s, with the program %q: the status is %d", a.Name, h.event, test.text, got)
					}
				}
			}
		}
	}
}
