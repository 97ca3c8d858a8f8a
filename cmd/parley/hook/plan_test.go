package hook

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPlanIsNamedBehind has Claude Code write down where the plan of a session is, and the call that writes it, after it has made the call, as on a
// busy machine. A plan that the conversation names is the session's own. Another is none, whether the conversation has the call or never has it.
func TestPlanIsNamedBehind(t *testing.T) {
	const id = "toolu_1"
	for name, test := range map[string]struct {
		named, call bool // what is written down
		another     bool // the call is about another file
		want        bool
	}{
		"its own":                 {named: true, call: true, want: true},
		"before the call":         {named: true, want: true},
		"another":                 {named: true, call: true, another: true},
		"none is named":           {call: true},
		"nothing is written ever": {},
		"the call is not there":   {named: true, another: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			plan := filepath.Join(home, ".claude", "plans", "neat.md")
			transcript := filepath.Join(home, "c.jsonl")
			text := ""
			if test.named {
				text += fmt.Sprintf(`{"type":"attachment","attachment":{"type":"plan_mode","planFilePath":%q}}`, plan) + "\n"
			}
			if test.call {
				text += `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"` + id + `","name":"Write"}]}}` + "\n"
			}
			written := make(chan error, 1)
			time.AfterFunc(4*writtenLook, func() { written <- os.WriteFile(transcript, []byte(text), 0o600) })
			if test.another {
				plan = filepath.Join(home, ".claude", "plans", "of-others.md")
			}
			input, err := json.Marshal(map[string]string{"file_path": plan, "content": "# A plan"})
			if err != nil {
				t.Fatal(err)
			}
			env := func(name string) (string, bool) { return map[string]string{"HOME": home}[name], name == "HOME" }
			if got := isPlan(toolCall{id: id, tool: "Write", mode: "plan", input: input, transcript: transcript}, env); got != test.want {
				t.Errorf("%t", got)
			}
			if err := <-written; err != nil {
				t.Error(err)
			}
		})
	}
}
