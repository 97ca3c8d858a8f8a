package client_test

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"parley/gateway/client"
)

// TestPythonAskSurvivesRestart kills the node while a program in Python waits for its answer.
func TestPythonAskSurvivesRestart(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	h, host, _ := openTest(t)
	ask := exec.CommandContext(t.Context(), python, "python/examples/ask.py")
	ask.Env = append(os.Environ(), "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1", "PARLEY_URL="+h.url(), "PARLEY_TOKEN="+tokenOf(t, host))
	ask.Stderr = os.Stderr
	out, err := ask.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ask.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	h.kill()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	if len(listed(t, host, client.View{})) > 0 {
		if err := host.Call(t.Context(), "respond_form", map[string]any{"number": "0", "values": map[string]any{"port": 443}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"the host says 443", "followed 0"} {
		if lines.Scan(); lines.Text() != want {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
	}
	if err := ask.Wait(); err != nil {
		t.Error(err)
	}
}
