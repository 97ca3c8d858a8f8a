package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/internal/regular"
)

// planTool is the tool by which Claude Code has a plan approved. In a terminal it shows its prompt in every mode.
const planTool = "ExitPlanMode"

// isPlan reports whether a call writes the file of the plan that its session makes: the one that Claude Code has named to the
// model, or a subagent's beside it, in the folder of plans in the person's settings. The plan is approved as a whole when it
// is made. A plan of another session may be about to be approved, and a link leads elsewhere, so both are asked about. Where the
// conversation has neither the plan nor the call yet, it is waited for.
func isPlan(call toolCall, env func(string) (string, bool)) bool {
	own := ClaudeConfig(env)
	path, ok := textMember(call.input, "file_path")
	if call.tool != "Write" && call.tool != "Edit" || own == "" || !ok {
		return false
	}
	if path != filepath.Join(own, "plans", filepath.Base(path)) || filepath.Ext(path) != ".md" {
		return false
	}
	for until := time.Now().Add(writtenWithin); ; time.Sleep(writtenLook) {
		text := call.conversation()
		plan := planFile(text)
		if call.part != "" {
			plan = strings.TrimSuffix(plan, ".md") + "-agent-" + call.part + ".md"
		}
		if path == plan {
			return isOwnFile(filepath.Join(own, "plans"), filepath.Base(plan))
		}
		if call.part != "" || call.id == "" || bytes.Contains(text, []byte(`"`+call.id+`"`)) || time.Now().After(until) { // a subagent's call is elsewhere
			return false
		}
	}
}

// planFile returns the path of the plan in a conversation of Claude Code, as it was last named to the model; "" for none.
func planFile(conversation []byte) (path string) {
	for line := range bytes.Lines(conversation) {
		if !bytes.Contains(line, []byte("planFilePath")) {
			continue
		}
		var entry map[string]json.RawMessage
		if kind, _ := textMember(line, "type"); kind == "attachment" && json.Unmarshal(line, &entry) == nil {
			if named, ok := textMember(entry["attachment"], "planFilePath"); ok && named != "" {
				path = named
			}
		}
	}
	return path
}

// hasOtherPlan reports whether the file of a plan that is to be approved has another text than the plan as it was shown: the model is told
// that this was approved, whatever input the call is allowed with.
func hasOtherPlan(call toolCall) bool {
	path, named := textMember(call.input, "planFilePath")
	shown, ok := textMember(call.input, "plan")
	if !named || !ok {
		return false
	}
	text, err := regular.ReadLinked(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || strings.TrimSpace(string(text)) != strings.TrimSpace(shown)
}

// isOwnFile reports whether a file in a folder is one that exists under this name alone, or that is not there yet. Neither is a link.
func isOwnFile(folder, name string) bool {
	if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
		return os.IsNotExist(err)
	}
	info, err := os.Lstat(filepath.Join(folder, name))
	if err != nil {
		return os.IsNotExist(err)
	}
	return info.Mode().IsRegular() && linksOf(info) == 1
}
