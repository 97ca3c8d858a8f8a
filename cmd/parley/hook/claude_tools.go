package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"parley/internal/regular"
)

// ClaudeTool says whether the calls of a tool of Claude Code are asked about. Calls of a tool that is not listed are.
type ClaudeTool struct {
	Name  string
	Asked bool   // every call is asked about
	Shown bool   // Claude Code asks at its own prompt in the mode default, and calls PermissionRequest
	Why   string // in words, for the guide

	// free reports that a call needs no question. Nil frees every call of a tool that is not Asked.
	free func(call toolCall, folder string, env func(string) (string, bool)) bool
}

// Depends reports whether a call is asked about for its input.
func (t ClaudeTool) Depends() bool { return t.free != nil }

const (
	looks    = "only reads what is there"
	ownTasks = "keeps the session's own list of tasks"
	writes   = "writes files, but for the plan that the session makes"
	ownWork  = "only concerns the session, whose later calls are asked about one by one"
)

// ClaudeTools returns the tools of Claude Code, by name.
func ClaudeTools() []ClaudeTool {
	const starts = "starts a subagent, whose calls are asked about one by one. It is asked about where the folder, or one above it, " +
		"has `.claude/agents`, whose files run commands, or Git's main worktree of one, or one of `--add-dir` (seen on Linux) or of `/add-dir`, where a definition of yours loads `skills`, which a " +
		"folder may bring too, where it is of a plugin, and where the subagent works elsewhere (`isolation`)"
	return []ClaudeTool{
		{Name: "Agent", Why: starts, free: startsHere},
		{Name: "Bash", Asked: true, Shown: true, Why: "runs a command"},
		{Name: "BashOutput", Why: looks},
		{Name: "CronCreate", Asked: true, Why: "has prompts run later, also in other sessions"},
		{Name: "CronDelete", Asked: true, Why: "changes what runs later"},
		{Name: "CronList", Why: looks},
		{Name: "Edit", Asked: true, Shown: true, Why: writes},
		{Name: "EnterPlanMode", Why: ownWork},
		{Name: "EnterWorktree", Asked: true, Why: "makes a folder and a branch, and runs hooks of git"},
		{Name: planTool, Asked: true, Shown: true, Why: "an approval of the plan"},
		{Name: "ExitWorktree", Asked: true, Why: "may remove a folder and a branch"},
		{Name: "Glob", Why: looks},
		{Name: "Grep", Why: looks},
		{Name: "KillShell", Asked: true, Why: "ends a program"},
		{Name: "LS", Why: looks},
		{Name: "ListAgents", Why: looks},
		{Name: "ListMcpResourcesTool", Why: looks},
		{Name: "Monitor", Asked: true, Why: "runs a command"},
		{Name: "NotebookEdit", Asked: true, Shown: true, Why: "writes a notebook"},
		{Name: "NotebookRead", Why: looks},
		{Name: "PowerShell", Asked: true, Shown: true, Why: "runs a command"},
		{Name: "PushNotification", Asked: true, Why: "sends words to other machines"},
		{Name: "Read", Why: looks},
		{Name: "ReadMcpResourceDirTool", Asked: true, Why: "hands words of the model to an MCP server"},
		{Name: "ReadMcpResourceTool", Asked: true, Why: "hands words of the model to an MCP server"},
		{Name: "RemoteTrigger", Asked: true, Why: "acts on other machines"},
		{Name: "ReportFindings", Why: ownWork},
		{Name: "ScheduleWakeup", Why: "has the session go on later. It is asked about where its prompt is a command or a skill (`/`, `!`), which may run commands", free: wakesWithWords},
		{Name: "SendMessage", Asked: true, Why: "reaches other sessions, also on other machines"},
		{Name: "SendUserFile", Asked: true, Why: "sends files to other machines"},
		{Name: "Skill", Asked: true, Why: "runs the commands in the skill's file as it loads, and the file may come with a repository"},
		{Name: "StructuredOutput", Why: "is the answer that `--json-schema` asks for"},
		{Name: "Task", Why: starts, free: startsHere},
		{Name: "TaskCreate", Why: ownTasks},
		{Name: "TaskGet", Why: ownTasks},
		{Name: "TaskList", Why: ownTasks},
		{Name: "TaskOutput", Why: looks},
		{Name: "TaskStop", Asked: true, Why: "ends a program"},
		{Name: "TaskUpdate", Why: ownTasks},
		{Name: "TodoWrite", Why: ownTasks},
		{Name: "ToolSearch", Why: looks},
		{Name: "WebFetch", Asked: true, Shown: true, Why: "sends words of the model to other machines"},
		{Name: "WebSearch", Asked: true, Shown: true, Why: "sends words of the model to other machines"},
		{Name: "Workflow", Asked: true, Why: "runs a script"},
		{Name: "Write", Asked: true, Shown: true, Why: writes},
	}
}

// isShown reports whether Claude Code asks about the calls of a tool at its own prompt in the mode default, but for those that
// its rules allow. It does about those of MCP servers. It asks nothing about some that run commands unseen.
func isShown(tool string) bool {
	return strings.HasPrefix(tool, "mcp__") || slices.ContainsFunc(ClaudeTools(), func(t ClaudeTool) bool { return t.Name == tool && t.Shown })
}

// needsNoQuestion reports whether a call changes nothing outside of the session, and runs nothing unseen.
func needsNoQuestion(call toolCall, folder string, env func(string) (string, bool)) bool {
	if call.mode == "plan" && isPlan(call, env) {
		return true
	}
	for _, t := range ClaudeTools() {
		if t.Name == call.tool {
			return !t.Asked && (t.free == nil || t.free(call, folder, env))
		}
	}
	return false
}

// wakesWithWords reports whether the prompt of a call is words: Claude Code runs a command or a skill as if the person had typed it.
func wakesWithWords(call toolCall, _ string, _ func(string) (string, bool)) bool {
	prompt, ok := textMember(call.input, "prompt")
	if !ok {
		return false
	}
	words := strings.TrimLeftFunc(prompt, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.IsControl(r) })
	return !strings.HasPrefix(words, "/") && !strings.HasPrefix(words, "!")
}

// textMember returns the text of a member of an input, and whether it has one of this very name. Package encoding/json also takes
// names in other case, which agents do not.
func textMember(input json.RawMessage, name string) (text string, ok bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(input, &all) != nil || json.Unmarshal(all[name], &text) != nil {
		return "", false
	}
	return text, true
}

// startsSubagent reports whether a tool of Claude Code starts a subagent.
func startsSubagent(tool string) bool { return tool == "Agent" || tool == "Task" }

// startsHere reports whether a call starts a subagent of Claude Code's own or of the person's, as its session works. The
// definition of a subagent may have hooks, MCP servers and skills, which run commands. It may replace one of Claude
// Code's own. A repository can bring one, also in a plugin, which it enables in its settings or has among its skills.
func startsHere(call toolCall, folder string, env func(string) (string, bool)) bool {
	var input map[string]json.RawMessage
	if json.Unmarshal(call.input, &input) != nil {
		return false
	}
	for _, known := range []string{"description", "effort", "model", "prompt", "resume", "run_in_background", "subagent_type"} {
		delete(input, known)
	}
	if len(input) > 0 {
		return false
	}
	kind, _ := textMember(call.input, "subagent_type")
	if strings.Contains(kind, ":") { // a plugin's
		return false
	}
	own := filepath.Join(ClaudeConfig(env), "agents")
	if call.hidden {
		return false
	}
	for _, added := range append(addedFolders(env), call.added...) {
		if _, err := os.Lstat(filepath.Join(added, ".claude", "agents")); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	for _, start := range []string{folder, call.folder} {
		for at := filepath.Clean(start); filepath.IsAbs(at); at = filepath.Dir(at) {
			for _, place := range append(mainWorktree(at), at) {
				agents := filepath.Join(place, ".claude", "agents")
				if _, err := os.Lstat(agents); agents != own && !errors.Is(err, fs.ErrNotExist) {
					return false
				}
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return !preloads(own, cmp.Or(kind, generalPurpose))
}

// addedFolders returns the folders that the command line of Claude Code adds, as far as it can be read. Subagents are defined there too.
func addedFolders(env func(string) (string, bool)) (added []string) {
	const flag = "--add-dir" // takes words up to the next flag
	words, folder := claudeCommand(env)
	isIn := false
	for _, word := range words {
		switch one, is := strings.CutPrefix(word, flag+"="); {
		case is:
			added, isIn = append(added, within(folder, one)), true
		case word == flag:
			isIn = true
		case strings.HasPrefix(word, "-"):
			isIn = false
		case isIn && word != "":
			added = append(added, within(folder, word))
		}
	}
	return added
}

// mainWorktree returns where the main worktree of a repository may be, if a folder is one that "git worktree add" has made: Claude Code
// takes the definitions of that for it.
func mainWorktree(folder string) []string {
	text, err := regular.ReadLinked(filepath.Join(folder, ".git"))
	if err != nil {
		return nil // a repository of its own, or none
	}
	of, _ := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
	of = within(folder, strings.TrimSpace(of))
	common, err := regular.ReadLinked(filepath.Join(of, "commondir"))
	if err != nil {
		return nil // that of a submodule has none
	}
	of = within(of, strings.TrimSpace(string(common)))
	return []string{of, filepath.Dir(of)}
}

// within returns a path, which counts from a folder unless it is absolute.
func within(folder, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(folder, path)
}

// maxDefinitions bounds the files and folders that are looked through for definitions of subagents.
const maxDefinitions = 20_000

// builtIn are the kinds of subagents that Claude Code has itself. A definition may replace one.
var builtIn = []string{"Explore", "Plan", "claude", "claude-code-guide", "fork", generalPurpose, "statusline-setup"}

const generalPurpose = "general-purpose" // where a call names none

// preloads reports whether a definition of a subagent below a folder may have skills loaded as it starts, which runs their commands. One of
// the person's may name a skill that a repository brings. For Claude Code's own kinds those alone count that may be in their place.
func preloads(folder, kind string) bool {
	looked, found := 0, false
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch looked++; {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case looked > maxDefinitions:
			return errors.New("too many")
		case d.Type()&fs.ModeSymlink != 0: // not followed here; it is where the link leads
			if at, err := os.Stat(path); err == nil && at.IsDir() {
				return errors.New("a link to a folder")
			}
		case d.IsDir():
			return nil
		}
		if !strings.EqualFold(filepath.Ext(path), ".md") {
			return nil
		}
		text, err := regular.ReadLinked(path)
		if err != nil {
			return err
		}
		if head := frontMatter(text); preloading.Match(head) && (!slices.Contains(builtIn, kind) || bytes.Contains(head, []byte(kind))) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found || err != nil
}

// preloading matches the member of a definition that names skills.
var preloading = regexp.MustCompile(`(?m)(^|[\s{,"'])skills["']?\s*:`)

// frontMatter returns what stands between the first two lines of dashes.
func frontMatter(text []byte) []byte {
	_, text, _ = bytes.Cut(text, []byte("---"))
	head, _, _ := bytes.Cut(text, []byte("\n---"))
	return head
}
