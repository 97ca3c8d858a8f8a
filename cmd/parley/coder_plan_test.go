package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/modeltest"
)

// TestPlanThatChangesIsNotApproved changes the file of a plan while its approval is open. The model is not told that the other plan was
// approved, and presents that one.
func TestPlanThatChangesIsNotApproved(t *testing.T) {
	t.Parallel()
	const prompt = "Plan it"
	for _, agent := range byDay(t, 1, newestClaude, olderClaude) {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			present := modeltest.Turn{Calls: []modeltest.Call{{Tool: "ExitPlanMode", Input: map[string]any{}}}}
			turns := 0
			c := newClaudeOf(t, agent, modeltest.Script{Prompt: prompt, React: func(s modeltest.Seen) modeltest.Turn {
				switch turns++; turns {
				case 1:
					return modeltest.Turn{Calls: []modeltest.Call{{Tool: "Write", Input: map[string]any{"file_path": planIn(s.News), "content": "# The first plan"}}}}
				case 2, 3:
					return present
				}
				return modeltest.Turn{Text: "I am ready"}
			}})
			state := c.setUp(t, "claude-code")
			attend(t, state)
			terminal := inTerminal(t, c.command(t.Context(), prompt, "--permission-mode", "plan"))
			number := awaitCall(t, state, "# The first plan")
			files, err := filepath.Glob(filepath.Join(c.home, ".claude", "plans", "*.md"))
			if err != nil || len(files) != 1 {
				t.Fatalf("the plans are in %q, %v", files, err)
			}
			c.writeText(t, files[0], "# Another plan")
			decide(t, state, "allow", number)
			decide(t, state, "allow", awaitCall(t, state, "# Another plan"))
			terminal.expect(t, "I am ready")
			results := c.model.Results(prompt)
			if len(results) != 3 || !strings.Contains(results[1].Text, "changed since it was shown") || strings.Contains(results[1].Text, "Another plan") ||
				!strings.Contains(results[2].Text, "Another plan") {
				t.Errorf("the model has read %q", results)
			}
			if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "# Another plan") {
				t.Errorf("the file has %q, %v", text, err)
			}
		})
	}
}

// TestPlansInTheProjectAreAskedAbout has settings keep plans in the project. Claude Code writes the plan of its session without its own
// prompt, in the mode default too.
func TestPlansInTheProjectAreAskedAbout(t *testing.T) {
	t.Parallel()
	const prompt = "Plan it"
	for _, agent := range byDay(t, 1, newestClaude, olderClaude) {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			plan, turns := "", 0
			c := newClaudeOf(t, agent, modeltest.Script{Prompt: prompt, React: func(s modeltest.Seen) modeltest.Turn {
				if plan == "" {
					plan = planIn(s.News)
				}
				write := func(text string) modeltest.Turn {
					return modeltest.Turn{Calls: []modeltest.Call{{Tool: "Write", Input: map[string]any{"file_path": plan, "content": text}}}}
				}
				switch turns++; turns {
				case 1:
					return write("# The plan")
				case 2:
					return modeltest.Turn{Calls: []modeltest.Call{{Tool: "ExitPlanMode", Input: map[string]any{}}}}
				case 3:
					return write("# Not asked about")
				}
				return modeltest.Turn{Text: "I am ready"}
			}})
			c.writeText(t, filepath.Join(c.project, ".claude", "settings.json"), `{"plansDirectory":"./plans"}`)
			state := c.setUp(t, "claude-code")
			attend(t, state)
			terminal := inTerminal(t, c.command(t.Context(), prompt, "--permission-mode", "plan"))
			decide(t, state, "allow", awaitCall(t, state, `"content":"# The plan"`))
			decide(t, state, "allow", awaitCall(t, state, `"plan":"# The plan"`))
			decide(t, state, "deny", awaitCall(t, state, "# Not asked about"), "--message", "nobody has looked at it")
			terminal.expect(t, "I am ready")
			if results := c.model.Results(prompt); len(results) != 3 || !strings.Contains(results[2].Text, "denied in Parley: nobody has looked at it") {
				t.Errorf("the model has read %q", results)
			}
		})
	}
}

// planIn returns the path of the plan that Claude Code has named to the model.
func planIn(texts []string) string {
	for _, text := range texts {
		before, after, found := strings.Cut(text, "/plans/")
		if name, _, named := strings.Cut(after, ".md"); found && named {
			return before[strings.LastIndexAny(before, " \n\"'`")+1:] + "/plans/" + name + ".md"
		}
	}
	return "no plan was named"
}
