package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/cmd/parley/hook"
	"parley/cmd/parley/terminal"
)

const versionTime = 10 * time.Second // for a program to say its version

// Check reports whether a coding agent asks as it should, in words, from all settings that take effect in o.Folder. Where
// the agent is installed, it has it make a call. It reports no words where neither settings nor the program are found.
func Check(ctx context.Context, agent hook.Agent, o Options) (words string, good bool) {
	s := settings{Options: o, agent: agent}
	switch agent.Name {
	case hook.Codex().Name:
		return s.checkCodex(ctx)
	case hook.OpenCode().Name:
		return s.checkOpenCode(ctx)
	}
	if isOneFile(agent) {
		return s.checkOneFile(ctx)
	}
	return s.checkClaudeCode(ctx)
}

// source is a file of settings that takes effect.
type source struct {
	path    string
	flag    string // with which setup enters its hooks there
	managed bool   // by an administrator
	doc     *document
}

// checkClaudeCode reports whether Claude Code asks in every mode.
func (s settings) checkClaudeCode(ctx context.Context) (words string, good bool) {
	sources, wrong := s.claudeSources()
	var own []ownHook
	for _, from := range sources {
		own = append(own, from.doc.own(s.agent.Name)...)
	}
	version, found := versionOf(ctx, "claude")
	switch {
	case len(own) == 0 && len(wrong) > 0:
		return strings.Join(wrong, "; "), false
	case len(own) == 0 && !found:
		return "", true
	case len(own) == 0:
		return "not set up: parley setup claude-code", true
	}
	wrong = append(wrong, s.disabled(sources)...)
	wrong = append(wrong, s.otherServers()...)
	missing := missingFrom(own, claudeHooks("", "", ""))
	mail := slices.DeleteFunc(slices.Clone(missing), func(event string) bool { return !isOfMail(event) })
	if missing = slices.DeleteFunc(missing, isOfMail); len(missing) > 0 {
		wrong = append(wrong, fmt.Sprintf("no hook on %s, so not every mode asks: parley setup claude-code enters it", strings.Join(missing, ", ")))
	}
	if len(mail) > 0 {
		wrong = append(wrong, fmt.Sprintf("no hook on %s, so mail does not reach its model: parley setup claude-code enters it", strings.Join(mail, ", ")))
	}
	wrong = append(wrong, s.wrongHooks(ctx, sources, claudeHooks("", "", otherwise(s.agent.Name, "", "")))...)
	wrong = append(wrong, replaced(sources)...)
	wrong = append(wrong, s.wrongServers(ctx)...)
	wrong = append(wrong, s.wrongClient(ctx)...)
	asks := "asks in every mode"
	if s.Folder != s.Home && !slices.ContainsFunc(sources, func(from source) bool {
		return from.flag != " --project" && slices.ContainsFunc(from.doc.own(s.agent.Name), ownHook.asks)
	}) {
		asks += " where it is started in this very folder: not below it, and in a worktree of it (--worktree) once its .claude/settings.json is committed"
	}
	others := s.othersHooks(sources)
	if len(others) > 0 {
		asks += ", but hooks of others may allow calls unasked in the mode default in a terminal, and change what was allowed in any mode, of which you are told once it has run: " + strings.Join(others, ", ")
	}
	if rules := hook.AllowedTools(s.Folder, s.Env); len(rules) > 0 {
		asks += ", but for what permissions.allow allows: " + strings.Join(rules, ", ")
	}
	if started := startedByProject(s.agent.Name, s.Folder, sources); len(started) > 0 {
		asks += ". The project has programs run that nobody is asked about: " + strings.Join(started, ", ")
	}
	away, runs := s.whenAway(own)
	if runs && !s.Running {
		wrong = append(wrong, "no node runs, so a call runs unasked if Claude Code's mode and rules allow it (--when-away mode): parley start")
	}
	switch {
	case len(wrong) > 0:
		return strings.Join(wrong, "; "), false
	case !found:
		if i := slices.IndexFunc(own, func(h ownHook) bool { return h.asks() && !h.isShut(s.agent.Name) }); i >= 0 {
			return fmt.Sprintf("the hook on %s is not as setup enters it, and without the program claude it cannot be tried that its failure blocks: parley setup claude-code replaces it", own[i].event), false
		}
		return asks + "; the program claude is not on the path, so it was not tried" + away, len(others) == 0
	case isOlder(version, LeastClaudeCode):
		return fmt.Sprintf("version %s is too old to ask in every mode: at least %s", version, LeastClaudeCode), false
	}
	if failed := s.probe(ctx, sources, false); failed != "" {
		return fmt.Sprintf("version %s was tried: %s", version, failed), false
	}
	if slices.ContainsFunc(own, func(h ownHook) bool { return h.asks() && !h.isShut(s.agent.Name) }) {
		if failed := s.probe(ctx, sources, true); failed != "" {
			return fmt.Sprintf("version %s was tried: %s", version, failed), false
		}
	}
	return asks + ", version " + version + ": a call was tried, and refused" + away + ". --bare, --safe-mode, --restricted and --setting-sources leave hooks out", len(others) == 0
}

// otherServers returns which files have another MCP server under the name of Parley's.
func (s settings) otherServers() (wrong []string) {
	for _, path := range s.agent.OtherServers(s.Folder, s.Env) {
		wrong = append(wrong, fmt.Sprintf("%s has another MCP server with the name %s, or cannot be read, so that calls of Parley's tools are asked too", path, hook.ServerName))
	}
	return wrong
}

// claudeSources returns the settings that Claude Code merges for the folder, the strongest first. It says what is wrong
// with a file that cannot be read, which Claude Code leaves out as a whole.
func (s settings) claudeSources() (sources []source, wrong []string) {
	read := func(from source) {
		f, err := readSettings(resolve(from.path, maxLinks))
		if err != nil {
			wrong = append(wrong, terminal.Message(err))
			return
		}
		var ok bool
		if from.doc, ok = readDocument(f.before); !ok {
			wrong = append(wrong, fmt.Sprintf("%s is no JSON object, or has comments, so none of it takes effect", from.path))
			return
		}
		if f.there {
			sources = append(sources, from)
		}
	}
	s.Project = false
	own := s.claudeFiles()
	s.Project = true
	project := s.claudeFiles()
	pieces, _ := filepath.Glob(filepath.Join(s.Managed, "managed-settings.d", "*.json")) // the pattern is right
	slices.Reverse(pieces)                                                               // the last one is the strongest
	managed := append([]string{filepath.Join(filepath.Dir(own.hooks), "remote-settings.json")}, pieces...)
	for _, path := range append(managed, filepath.Join(s.Managed, "managed-settings.json")) {
		read(source{path: path, managed: true})
	}
	read(source{path: project.local, flag: " --project"})
	read(source{path: project.hooks, flag: " --project"})
	if project.hooks != own.hooks {
		read(source{path: own.hooks, flag: " --user"})
	}
	return sources, wrong
}

// ManagedFolder returns where an administrator keeps settings of Claude Code.
func ManagedFolder() string {
	switch runtime.GOOS {
	case "darwin":
		return "/Library/Application Support/ClaudeCode"
	case "windows":
		return `C:\Program Files\ClaudeCode`
	}
	return "/etc/claude-code"
}

// disabled returns what keeps Claude Code from running the hooks of settings. Of several files that set a switch, the
// strongest holds. The managed settings alone leave hooks of others out, and nothing else leaves theirs out.
func (s settings) disabled(sources []source) (wrong []string) {
	for _, name := range simpleModes() {
		if set, _ := s.Env(name); set != "" && set != "0" && set != "false" {
			wrong = append(wrong, "it asks nothing where the environment has "+name)
		}
	}
	inManaged := slices.ContainsFunc(sources, func(from source) bool { return from.managed && len(from.doc.own(s.agent.Name)) > 0 })
	for _, from := range sources {
		var off bool
		if raw := from.doc.get("disableAllHooks"); raw == nil || json.Unmarshal(raw, &off) != nil {
			continue // what is no boolean is ignored
		}
		if off && (from.managed || !inManaged) {
			wrong = append(wrong, fmt.Sprintf("it asks nothing: %s has disableAllHooks", from.path))
		}
		break
	}
	for _, from := range sources {
		if !from.managed || inManaged {
			continue
		}
		for _, name := range []string{"allowManagedHooksOnly", "strictPluginOnlyCustomization"} {
			switch raw := string(from.doc.get(name)); {
			case raw == "true", strings.HasPrefix(raw, "[") && strings.Contains(raw, `"hooks"`):
				wrong = append(wrong, fmt.Sprintf("it asks nothing: %s has %s, so that hooks of others do not run", from.path, name))
			}
		}
	}
	return wrong
}

// simpleModes are the variables that have Claude Code run no hooks, as --bare and --safe-mode do.
func simpleModes() []string {
	return []string{"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_RESTRICTED"}
}

// asks reports whether a hook decides about calls.
func (h ownHook) asks() bool {
	return h.event == hook.PermissionRequest || h.event == hook.PreToolUse && !slices.Contains(h.args, leasesFlag)
}

// replaced returns which variables a project's settings give to the hooks that may put another program in the hook's place, or in that of a
// command. One of the first is enough for a repository to have no hook run, and no call asked.
func replaced(sources []source) (wrong []string) {
	for _, from := range sources {
		if from.flag != " --project" {
			continue
		}
		var env map[string]any
		_ = json.Unmarshal(from.doc.get("env"), &env) // what is no object sets nothing
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(env)), func(name string) bool { return !replacesPrograms(name) })
		if others := slices.DeleteFunc(slices.Sorted(maps.Keys(env)), func(name string) bool { return replacesPrograms(name) || !hook.StartsPrograms(name) }); len(others) > 0 {
			wrong = append(wrong, fmt.Sprintf("%s sets %s, by which a command that was allowed, as git status, may run another program: take it out", from.path, strings.Join(others, ", ")))
		}
		if len(names) > 0 {
			wrong = append(wrong, fmt.Sprintf("%s sets %s, which may have another program run in place of the hook, so that nothing is asked: take it out", from.path, strings.Join(names, ", ")))
		}
	}
	return wrong
}

// replacesPrograms reports whether a variable says which program, shell or library runs.
func replacesPrograms(name string) bool {
	return slices.Contains([]string{"PATH", "BASH_ENV", "ENV", "SHELL"}, name) || isShells(name) || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_")
}

// isShells reports whether a variable says how Claude Code runs commands, hooks too.
func isShells(name string) bool { return strings.HasPrefix(name, "CLAUDE_CODE_SHELL") }

// missingFrom returns the events of the wanted hooks on which there is none.
func missingFrom(own []ownHook, wanted []eventHook) (missing []string) {
	for _, h := range wanted {
		if !slices.ContainsFunc(own, func(o ownHook) bool { return o.event == h.event }) {
			missing = append(missing, h.event)
		}
	}
	return missing
}

// wrongHooks returns what is wrong with Parley's hooks: those that ask other than the wanted ones or another node, and
// those whose program is not this one.
func (s settings) wrongHooks(ctx context.Context, sources []source, wanted []eventHook) (wrong []string) {
	tried := map[string]bool{} // by program
	for _, from := range sources {
		var events []string
		for _, h := range from.doc.own(s.agent.Name) {
			i := slices.IndexFunc(wanted, func(w eventHook) bool { return w.event == h.event })
			if i >= 0 && (h.differs(wanted[i]) || endsShut(wanted[i].Command) && !h.shuts(s.agent.Name)) {
				events = append(events, h.event)
			}
			if !tried[h.program] {
				tried[h.program] = true
				wrong = append(wrong, s.wrongProgram(ctx, "hooks in "+from.path, h.program, from.flag)...)
			}
			if node := s.nodeOf(h.args); !sameFolder(node, s.State) {
				words := fmt.Sprintf("the hooks in %s ask another node, that of %s: parley setup %s%s enters those of %s", from.path, node, s.agent.Name, from.flag, s.State)
				if !slices.Contains(wrong, words) {
					wrong = append(wrong, words)
				}
			}
		}
		if len(events) > 0 {
			wrong = append(wrong, fmt.Sprintf("the hooks on %s in %s are from an earlier setup, or changed: not every call is asked, or a failure allows it: parley setup %s%s replaces them",
				strings.Join(events, ", "), from.path, s.agent.Name, from.flag))
		}
	}
	return wrong
}

// shuts reports whether a hook blocks where it fails, or may: of Claude Code, a probe tells then.
func (h ownHook) shuts(agent string) bool {
	return h.isShut(agent) || agent == hook.ClaudeCode().Name && endsShut(h.Command)
}

// differs reports whether a hook is less than the wanted one: it asks about fewer calls, or gives up earlier.
func (h ownHook) differs(wanted eventHook) bool {
	if h.matcher != "" || h.Type != "command" || h.Timeout < wanted.Timeout || wanted.Wakes && !h.Wakes {
		return true
	}
	for _, name := range []string{"if", "async", "asyncRewake", "once"} { // which limit when it runs, or what it decides
		if set, there := h.more[name]; there && set != false && !(name == "asyncRewake" && wanted.Wakes) {
			return true
		}
	}
	if slices.Contains(h.args, leasesFlag) != strings.HasSuffix(wanted.Command, " "+leasesFlag) {
		return true
	}
	return slices.Contains(h.args, "--skip-asked") && h.event != hook.PermissionRequest
}

// nodeOf returns the state folder of the node that a hook asks.
func (s settings) nodeOf(args []string) string {
	if set := flagOf(args, "--state"); set != "" {
		return set
	}
	if set, ok := s.Env("PARLEY_STATE"); ok && set != "" && s.agent.Name != hook.ClaudeCode().Name { // of whose hooks it is no option
		return set
	}
	return s.Default
}

// Nodes returns the state folders of the nodes that the hooks in files ask, as the files are now.
func Nodes(agent hook.Agent, files []File, o Options) (nodes []string) {
	s := settings{Options: o, agent: agent}
	for _, f := range files {
		if command := pluginCommand(f.before); len(command) > 3 && agent.Name == hook.OpenCode().Name {
			nodes = append(nodes, s.nodeOf(command[3:]))
			continue
		}
		d, ok := readDocument(f.before)
		if !ok {
			continue
		}
		for _, h := range d.own(agent.Name) {
			if node := s.nodeOf(h.args); !slices.Contains(nodes, node) {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

func sameFolder(a, b string) bool {
	return a == b || resolve(absolute(a), maxLinks) == resolve(absolute(b), maxLinks)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// wrongProgram returns what is wrong with the program of an entry. The flag is that with which setup makes the entry.
func (s settings) wrongProgram(ctx context.Context, of, program, flag string) []string {
	why := s.wrongVersion(ctx, program)
	if why == "" {
		return nil
	}
	return []string{fmt.Sprintf("the program of the %s, %s, %s: parley setup %s%s enters this one", of, program, why, s.agent.Name, flag)}
}

// wrongServers returns what is wrong with the programs of the MCP servers in Claude Code's settings.
func (s settings) wrongServers(ctx context.Context) (wrong []string) {
	for _, project := range []bool{true, false} {
		s.Project = project
		path, flag := s.claudeFiles().servers, " --user"
		if project {
			flag = " --project"
		}
		f, err := readSettings(resolve(path, maxLinks))
		if err != nil {
			continue // that Claude Code reads it is not for the hooks to say
		}
		var server mcpServer
		if doc, ok := readDocument(f.before); ok && json.Unmarshal(doc.get("mcpServers", hook.ServerName), &server) == nil && isParley(server.Command) {
			wrong = append(wrong, s.wrongProgram(ctx, "MCP server in "+path, server.Command, flag)...)
		}
	}
	return wrong
}

// wrongClient returns what keeps setup from entering the client that lies beside this program.
func (s settings) wrongClient(ctx context.Context) []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	client, err := exec.LookPath(clientOf(self))
	if err != nil {
		return nil // there is none
	}
	if why := s.wrongVersion(ctx, client); why != "" {
		return []string{fmt.Sprintf("%s %s, so it is not entered: install both of one version", client, why)}
	}
	return nil
}

// versionOf returns the version of a program on the path, and whether there is one: the word of its output that begins
// with a digit.
func versionOf(ctx context.Context, name string) (string, bool) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", false
	}
	scratch, err := os.MkdirTemp("", "parley-version-*") // Codex writes to its folder even then
	if err != nil {
		return "", false
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // a folder that is only temporary
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	c := exec.CommandContext(ctx, path, "--version")
	c.Env = append(os.Environ(), "CODEX_HOME="+scratch)
	out, err := c.Output()
	if err != nil {
		return "", false
	}
	for word := range strings.FieldsSeq(string(out)) {
		if word[0] >= '0' && word[0] <= '9' {
			return word, true
		}
	}
	return "", false
}

// isOlder reports whether a version comes before another. Both are numbers between dots.
func isOlder(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range min(len(a), len(b)) {
		x, _ := strconv.Atoi(a[i])
		y, _ := strconv.Atoi(b[i])
		if x != y {
			return x < y
		}
	}
	return len(a) < len(b)
}
