package service

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley"
)

// system stands for the program of an operating system that starts services.
type system struct {
	calls []string
	gone  bool // it is not installed
	fails string
}

func (s *system) run(_ context.Context, program string, args ...string) (string, error) {
	call := program + " " + strings.Join(args, " ")
	s.calls = append(s.calls, call)
	switch {
	case s.gone:
		return "", &exec.Error{Name: program, Err: exec.ErrNotFound}
	case s.fails != "" && strings.Contains(call, s.fails):
		return "Failed to connect to bus: No medium found", errors.New("exit status 1")
	case strings.Contains(call, "is-active"):
		return "active", nil
	case strings.Contains(call, "is-enabled"):
		return "enabled", nil
	case strings.Contains(call, "print"):
		return "state = running", nil
	}
	return "", nil
}

func options(t *testing.T, os string, s *system) Options {
	t.Helper()
	home := t.TempDir()
	state := filepath.Join(home, "state")
	return Options{Program: "/opt/my programs/100%/parley", State: state, Default: state, Home: home, System: os, User: 501, Run: s.run}
}

func TestServiceIsInstalledAndRemoved(t *testing.T) {
	for name, want := range map[string][]string{
		"linux":  {"systemctl --user daemon-reload", "systemctl --user enable parley.service", "systemctl --user restart parley.service", "systemctl --user disable --now parley.service"},
		"darwin": {"launchctl bootstrap gui/501 ", "launchctl bootout gui/501/parley"},
	} {
		s := &system{}
		o := options(t, name, s)
		got, err := Install(t.Context(), o)
		if err != nil || !got.Installed || !got.Running || !got.Starts || got.Changed {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if again, err := Install(t.Context(), o); err != nil || again.Path != got.Path {
			t.Errorf("%s: a second time: %v", name, err)
		}
		if removed, err := Remove(t.Context(), o); err != nil || !removed {
			t.Errorf("%s: removed %t, %v", name, removed, err)
		}
		if _, err := os.Stat(got.Path); err == nil {
			t.Errorf("%s: %s is left", name, got.Path)
		}
		if removed, err := Remove(t.Context(), o); err != nil || removed {
			t.Errorf("%s: removed %t, %v a second time", name, removed, err)
		}
		all := strings.Join(s.calls, "\n")
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: no %q in\n%s", name, w, all)
			}
		}
	}
}

func TestUnitNamesTheProgram(t *testing.T) {
	o := options(t, "linux", &system{})
	path, text, err := Preview(o)
	if err != nil || path != filepath.Join(o.Home, ".config", "systemd", "user", "parley.service") {
		t.Fatal(path, err)
	}
	for _, line := range []string{"ExecStart=\"/opt/my programs/100%%/parley\" serve\n", "Type=notify\n", "Restart=always\n", "WantedBy=default.target\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	o.State = filepath.Join(o.Home, "other $tate")
	other, text, err := Preview(o)
	if err != nil || other == path || !strings.Contains(text, `--state "`+o.Home+`/other $$tate"`) {
		t.Errorf("%s, %v:\n%s", other, err, text)
	}
	if systemd, err := exec.LookPath("systemd-analyze"); err == nil {
		file := filepath.Join(t.TempDir(), "parley.service")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "/opt/my programs/100%%/parley", "/bin/true")), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), systemd, "verify", "--user", file).CombinedOutput(); err != nil && !strings.Contains(string(out), "bus") {
			t.Logf("systemd-analyze verify: %v: %s", err, out)
		}
	}
}

func TestPropertyListIsXML(t *testing.T) {
	o := options(t, "darwin", &system{})
	o.Program = "/opt/a & <b>/parley"
	path, text, err := Preview(o)
	if err != nil || path != filepath.Join(o.Home, "Library", "LaunchAgents", "parley.plist") {
		t.Fatal(path, err)
	}
	dec := xml.NewDecoder(strings.NewReader(text))
	var words []string
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := token.(xml.CharData); ok && strings.TrimSpace(string(data)) != "" {
			words = append(words, string(data))
		}
	}
	if all := strings.Join(words, "|"); !strings.Contains(all, "ProgramArguments|/opt/a & <b>/parley|serve|RunAtLoad") {
		t.Errorf("%s", all)
	}
}

func TestWithoutManagerNothingChanges(t *testing.T) {
	for name, s := range map[string]*system{"no systemctl": {gone: true}, "no bus": {fails: "show-environment"}} {
		o := options(t, "linux", s)
		_, err := Install(t.Context(), o)
		if parley.CodeOf(err) != parley.InvalidArgument || !strings.Contains(err.Error(), "systemd does not run for you here") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(o.Home, ".config")); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
	if _, err := Install(t.Context(), options(t, "plan9", &system{})); parley.CodeOf(err) != parley.InvalidArgument {
		t.Error(err)
	}
}

func TestFileOfOthersIsLeftAlone(t *testing.T) {
	o := options(t, "linux", &system{})
	got, err := Install(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(got.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(got.Path, append(text, "Nice=5\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is left alone") {
		t.Error(err)
	}
	if _, err := Remove(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is left alone") {
		t.Error(err)
	}
	if now, err := Of(t.Context(), o); err != nil || !now.Changed || !strings.Contains(now.Words(), "changed by hand") {
		t.Errorf("%+v, %v", now, err)
	}
}
