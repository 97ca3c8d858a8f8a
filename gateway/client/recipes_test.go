package client_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"parley/gateway/client"
	"parley/internal/eventually"
)

// recipes are the programs of docs/recipes that have a person decide, and what they print at the end.
var recipes = []struct {
	name     string
	answer   map[string]any
	says     string
	declined string
}{
	{name: "langgraph.mjs", answer: map[string]any{"port": 443}, says: "listens on 443\n"},
	{name: "langgraph_form.py", answer: map[string]any{"port": 443}, says: "listens on 443\n"},
	{name: "openai-agents.mjs", answer: map[string]any{"decision": "once"}, says: "7.0 is deployed\n", declined: "not allowed: not on a Friday\n"},
	{name: "openai_agents.py", answer: map[string]any{"decision": "once"}, says: "7.0 is deployed\n", declined: "not allowed: not on a Friday\n"},
	{name: "ai-sdk.mjs", answer: map[string]any{"decision": "once"}, says: "7.0 is deployed\n", declined: "not allowed: not on a Friday\n"},
}

// TestRecipes runs each recipe twice. The first run is killed while it waits, and then the node: the second finds the
// question as it was asked. PARLEY_RECIPES names a folder with the node_modules of docs/recipes/README.md, and
// PARLEY_RECIPES_PYTHON a Python that has the packages.
func TestRecipes(t *testing.T) {
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			path := placeRecipe(t, r.name)
			h, host, _ := openTest(t)
			token := tokenOf(t, host)
			_, stop := startRecipe(t, path, h.url(), token, "first")
			form := nextForm(t, host)
			stop()
			h.kill()
			if err := h.start(); err != nil {
				t.Fatal(err)
			}
			again, _ := startRecipe(t, path, h.url(), token, "first")
			if _, err := host.Answer(t.Context(), form, r.answer); err != nil {
				t.Fatal(err)
			}
			if got := again.ends(t); got != r.says {
				t.Errorf("it says %q, want %q", got, r.says)
			}
			if got := len(listed(t, host, client.View{All: true})); got != 1 {
				t.Errorf("%d forms arrived, want 1", got)
			}
			no, _ := startRecipe(t, path, h.url(), token, "second")
			second := nextForm(t, host)
			if second == form {
				t.Fatal("two sessions have the same form")
			}
			if r.declined == "" {
				if _, err := host.Decline(t.Context(), second, "not on a Friday"); err != nil {
					t.Fatal(err)
				}
				if err := no.cmd.Wait(); err == nil {
					t.Error("it ends well though it was declined")
				}
				return
			}
			if _, err := host.Answer(t.Context(), second, map[string]string{"decision": "deny", "reason": "not on a Friday"}); err != nil {
				t.Fatal(err)
			}
			if got := no.ends(t); got != r.declined {
				t.Errorf("it says %q, want %q", got, r.declined)
			}
		})
	}
}

// placeRecipe returns the path of a recipe. One in JavaScript is copied beside its packages and the client.
func placeRecipe(t *testing.T, name string) string {
	t.Helper()
	if filepath.Ext(name) == ".py" {
		if os.Getenv("PARLEY_RECIPES_PYTHON") == "" {
			t.Skip("PARLEY_RECIPES_PYTHON names no Python with the recipes' packages")
		}
		return filepath.Join("..", "..", "docs", "recipes", name)
	}
	packages := os.Getenv("PARLEY_RECIPES")
	if packages == "" {
		t.Skip("PARLEY_RECIPES names no folder with the recipes' packages")
	}
	folder := t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "recipes", name))
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("typescript")
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(folder, "node_modules")
	err = errors.Join(os.WriteFile(filepath.Join(folder, name), text, 0o600), os.MkdirAll(filepath.Join(modules, "@parley"), 0o700),
		os.Symlink(here, filepath.Join(modules, "@parley", "client")))
	if err != nil {
		t.Fatal(err)
	}
	installed, err := filepath.Glob(filepath.Join(packages, "node_modules", "*"))
	if err != nil || len(installed) == 0 {
		t.Fatal("no packages", err)
	}
	for _, at := range installed {
		if filepath.Base(at) == "@parley" {
			continue
		}
		if err := os.Symlink(at, filepath.Join(modules, filepath.Base(at))); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, name)
}

// startRecipe runs a recipe. The returned function kills it.
func startRecipe(t *testing.T, path, url, token, session string) (*script, func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	program := "node"
	if filepath.Ext(path) == ".py" {
		program = os.Getenv("PARLEY_RECIPES_PYTHON")
	}
	cmd := exec.CommandContext(ctx, program, path, session)
	cmd.Env = append(os.Environ(), "PARLEY_URL="+url, "PARLEY_TOKEN="+token, "OPENAI_AGENTS_DISABLE_TRACING=1", "LANGSMITH_TRACING=false",
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=python"+string(filepath.ListSeparator)+os.Getenv("PYTHONPATH"))
	s := runScript(t, filepath.Base(path), cmd)
	return s, func() {
		cancel()
		_ = s.cmd.Wait() // the error is that it was killed
	}
}

// nextForm waits for the one form that waits for the host's answer.
func nextForm(t *testing.T, host *client.Client) client.ID {
	t.Helper()
	var pending []client.Message
	eventually.Holds(t, "a form arrives", func() bool {
		pending = listed(t, host, client.View{Pending: true})
		return len(pending) == 1
	})
	return pending[0].ID()
}
