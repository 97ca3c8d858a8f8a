package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/modeltest"
)

// TestMailReachesClientsOfMCP runs coding agents that have Parley as an MCP server alone: Gemini CLI and Qwen Code. The model reads its mail, and
// replies, by the tools; the text stands in the next request to it, and the sender sees that it was read.
func TestMailReachesClientsOfMCP(t *testing.T) {
	t.Parallel()
	const prompt = "Read your mail"
	for _, client := range inTurns(t, []struct {
		variable, settings, tool string // the tool's name is behind that
		env                      func(url string) []string
		args                     []string
	}{
		{"PARLEY_GEMINI", ".gemini/settings.json", "mcp_parley_", func(url string) []string {
			return []string{"GEMINI_API_KEY=a-key", "GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_CLI_TRUST_WORKSPACE=true"}
		}, []string{"--model", "gemini-2.5-pro", "--approval-mode", "yolo", "-p", prompt}},
		{"PARLEY_QWEN", ".qwen/settings.json", "mcp__parley__", func(url string) []string {
			return []string{"ANTHROPIC_API_KEY=a-key", "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_MODEL=claude-test"}
		}, []string{"--auth-type", "anthropic", "--model", "claude-test", "--approval-mode", "yolo", "-p", prompt}},
	}...) {
		t.Run(client.variable, func(t *testing.T) {
			t.Parallel()
			if os.Getenv(client.variable) == "" {
				t.Skipf("the coding agent is NOT tested: %s names no program", client.variable)
			}
			call := func(tool string, input map[string]any) modeltest.Turn {
				return modeltest.Turn{Calls: []modeltest.Call{{Tool: client.tool + tool, Input: input}}}
			}
			turns := []modeltest.Turn{
				call("read_mail", map[string]any{}), call("send_message", map[string]any{"replyTo": "0", "text": "I have read it"}), {Text: "I am done"},
			}
			asked := 0 // Qwen begins a conversation with an answer that no model gave
			c := newCoderTest(t, client.variable, modeltest.Script{Prompt: prompt, React: func(modeltest.Seen) modeltest.Turn {
				asked++
				return turns[min(asked, len(turns))-1]
			}})
			c.env = append(c.env, client.env(c.model.URL)...)
			state := nodeTest(t)
			if _, errs, exit := runTest(t.Context(), state, nil, "mkguest", "reader"); exit != 0 {
				t.Fatal(errs)
			}
			program, err := exec.LookPath("parley")
			if err != nil {
				t.Fatal(err)
			}
			c.write(t, filepath.Join(c.home, client.settings), map[string]any{
				"mcpServers": map[string]any{"parley": map[string]any{"command": program, "args": []string{"mcp", "--as", "reader", "--state", state}, "trust": true}},
				"security":   map[string]any{"auth": map[string]any{"selectedType": map[string]string{"PARLEY_GEMINI": "gemini-api-key", "PARLEY_QWEN": "anthropic"}[client.variable]}},
			})
			message := sendAs(t, state, "reader", "the first words")
			c.print(t, client.args...)
			results := c.model.Results(prompt)
			if len(results) != 2 || strings.Count(results[0].Text, "the first words") != 1 {
				t.Errorf("the model has read %q", results)
			}
			if out, _, _ := runTest(t.Context(), state, nil, "show", message); !strings.Contains(out, "handled") {
				t.Errorf("the sender sees %s", out)
			}
			if out, _, _ := runTest(t.Context(), state, nil, "inbox"); !strings.Contains(out, "I have read it") {
				t.Errorf("the inbox has %s", out)
			}
		})
	}
}
