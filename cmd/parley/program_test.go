package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/actors"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/client"
	"parley/gateway/sanitize"
)

// runTest runs a command line against the state folder.
func runTest(ctx context.Context, state string, stdin io.Reader, args ...string) (out, errs string, exit int) {
	var stdout, stderr bytes.Buffer
	p := &program{
		environment: environment{stdin: stdin, stdout: &stdout, stderr: &stderr, lookup: func(string) (string, bool) { return "", false }},
		args:        append([]string{"--state", state}, args...),
	}
	exit = p.run(ctx)
	return stdout.String(), stderr.String(), exit
}

// nodeTest runs a node in this process and returns its state folder.
func nodeTest(t *testing.T) string {
	t.Helper()
	state := t.TempDir()
	serveTest(t, state)
	return state
}

// serveTest runs a node in this process.
func serveTest(t *testing.T, state string) {
	t.Helper()
	node, err := actors.Open(t.Context(), actors.Options{Folder: state, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	server, err := gateway.Listen(node, gateway.Options{
		Socket: filepath.Join(state, socketFile), Listen: gateway.Off, Version: "test", Log: slog.New(slog.DiscardHandler),
		Coders: stateFolder(state).coders(),
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Serve()
	t.Cleanup(func() {
		if err := server.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		if err := node.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestInterruptedWaitPrintsHowToResume(t *testing.T) {
	t.Parallel()
	state := nodeTest(t)
	if _, errs, exit := runTest(t.Context(), state, nil, "mkguest", "fae"); exit != 0 {
		t.Fatal(errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	watcher := onceClient(t, state)
	go func() { // ends when the form arrives
		for range watcher.Follow(ctx, client.View{}, "") {
			time.AfterFunc(50*time.Millisecond, cancel)
			return
		}
	}()
	_, errs, exit := runTest(ctx, state, nil, "form", "HOST", "Wait", "--as", "fae", "--field", "a:A")
	if exit != exitInterrupted || !strings.Contains(errs, "stays open") || !strings.Contains(errs, "parley await 0") && !strings.Contains(errs, "parley await ") {
		t.Errorf("exit %d, %s", exit, errs)
	}
	if out, _, _ := runTest(t.Context(), state, nil, "inbox", "--pending"); !strings.Contains(out, "Wait") {
		t.Errorf("the form is gone: %q", out)
	}
	if out, errs, exit := runTest(ctx, state, nil, "inbox", "--follow"); exit != exitInterrupted {
		t.Errorf("exit %d, %q %q", exit, out, errs)
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain äöü 漢字 🙂":         "plain äöü 漢字 🙂",
		"a\nb\tc\rd":             `a\nb\tc\u{d}d`,
		"\x1b[31mred\x7f":        `\u{1b}[31mred\u{7f}`,
		"\u202eevil\u2066\u200f": `\u{202e}evil\u{2066}\u{200f}`,
		"a\u200bb\u2060\ufeffc":  `a\u{200b}b\u{2060}\u{feff}c`,
		"\u00ad\u034f\u3164":     `\u{ad}\u{34f}\u{3164}`,
		"\u2028\u2029":           `\u{2028}\u{2029}`,
		"\U000e0041\U000e0100":   `\u{e0041}\u{e0100}`,
		"\ue000\u0085":           `\u{e000}\u{85}`,
		"bad\xff\xfe":            `bad\xff\xfe`,
		"❤\ufe0f":                "❤\ufe0f",
		"\ufffd":                 "\ufffd",
	} {
		if got := terminal.Visible(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
	if got := terminal.Quoted(`a "b" \n`); got != `"a \"b\" \\n"` {
		t.Error(got)
	}
}

func TestSafeJSONKeepsMeaning(t *testing.T) {
	t.Parallel()
	text := []byte(`{"a":"x` + "\u202e\u200b\U000e0041" + `y","b":[1]}`)
	safe := sanitize.JSON(text)
	if terminal.Visible(string(safe)) != string(safe) {
		t.Errorf("%s", safe)
	}
	var was, is any
	if json.Unmarshal(text, &was) != nil || json.Unmarshal(safe, &is) != nil || was.(map[string]any)["a"] != is.(map[string]any)["a"] {
		t.Errorf("%v became %v", was, is)
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Second, "1.5": 1500 * time.Millisecond, "30s": 30 * time.Second, "2h30m": 150 * time.Minute,
		"3d": 72 * time.Hour, "0": 0, "300ms": 300 * time.Millisecond, "0.5d": 12 * time.Hour,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "-1s", "1x", "d", ".", "999999999999d", "99999999999999999999", "1764100000", "1764100000000"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func TestMoments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1764100000": "2025-11-25T19:46:40Z", "1764100000123": "2025-11-25T19:46:40.123Z", "2026-01-31T12:00:00+01:00": "2026-01-31T11:00:00Z",
	} {
		var m moment
		if err := m.Set(text); err != nil || m.at.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%s is %s, %v; want %s", text, m.at, err, want)
		}
		var p past
		if err := p.Set(text); err != nil || p.at.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%s is %s, %v; want %s", text, p.at, err, want)
		}
	}
	var m moment
	if err := m.Set("90"); err != nil || time.Until(m.at) > 90*time.Second || time.Until(m.at) < 80*time.Second {
		t.Errorf("90 is %s, %v", m.at, err)
	}
}

func TestLastFailure(t *testing.T) {
	t.Parallel()
	e := lastFailure("time=1 level=INFO msg=x\nparley: CORRUPT_LOG: commit 7: bad hash\nhint: restore a backup\n")
	if e == nil || e.Code != "CORRUPT_LOG" || e.Message != "commit 7: bad hash" || e.Hint != "restore a backup" {
		t.Errorf("%#v", e)
	}
	if e := lastFailure("panic: everything\n"); e != nil {
		t.Errorf("%#v", e)
	}
}
