package setup

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/cmd/parley/hook"
	"parley/cmd/parley/shell"
)

// endTime is how long a coding agent gives a hook that withdraws. One that asks waits for a person.
const endTime = 10 * time.Second

// hookHandler is a hook in the settings of either agent.
type hookHandler struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // seconds; of Gemini CLI and Qwen Code, milliseconds
	// Failure is "block" where Claude Code blocks a call whose hook was killed, timed out or could not start. Versions
	// before 2.1.295 do not read it.
	Failure string `json:"onFailure,omitempty"`
	Status  string `json:"statusMessage,omitempty"`
	// Wakes has Claude Code not wait for the hook, and begin a turn with its words if it ends with the status 2.
	Wakes bool `json:"asyncRewake,omitempty"`
}

// eventHook is a hook on one event.
type eventHook struct {
	event string
	hookHandler
}

// askHook returns the hook that asks on an event.
func askHook(event, command string) eventHook {
	return eventHook{event, hookHandler{
		Type: "command", Command: command, Timeout: int(hook.Timeout.Seconds()), Status: "Waiting for a decision in Parley",
	}}
}

// shutHook returns the hook that asks on an event of Claude Code, and blocks the call if it cannot run.
func shutHook(event, command, otherwise string) eventHook {
	h := askHook(event, command+otherwise)
	h.Failure = "block"
	return h
}

// endHook returns the hook that withdraws approvals on an event, or carries mail. If it fails nothing is blocked: a program of Go that
// panics, or that cannot have a thread, ends with the status that blocks.
func endHook(event, command string) eventHook {
	return quickHook(event, command+" || exit 1")
}

// quickHook returns a hook that waits for nobody, and whose status is what the agent goes by.
func quickHook(event, command string) eventHook {
	return eventHook{event, hookHandler{Type: "command", Command: command, Timeout: int(endTime.Seconds())}}
}

// wakeHook returns the hook that wakes an idle session of Claude Code.
func wakeHook(event, command string) eventHook {
	h := quickHook(event, command)
	h.Wakes = true
	return h
}

// otherwise is what a shell does if the hook of an agent before it, which is a command, fails: it says how to take the hooks out of
// the file shown, and ends with the status that blocks. A program that has lost its text fails too, as a full disk or a power cut leaves it
// during an update: a shell runs an empty file as a script that succeeds, and a call would run unasked.
func otherwise(agent, command, shown string) string {
	entry := "parley hook"
	if strings.Contains(command, clientName+" hook ") {
		entry = clientName + " hook"
	}
	program := ""
	if words, err := shell.Split(command); err == nil && len(words) > 0 {
		program = words[0]
	}
	return ` && [ -s "$(command -v ` + shell.Word(program) + `)" ] || { echo ` + shell.Word(fmt.Sprintf(`parley: the hook could not run, so this call is blocked. To take the hooks out: `+
		`delete the entries with "%s" in %s, or where parley runs: parley setup %s --remove`, entry, shown, agent)) + " >&2; exit 2; }"
}

// endsShut reports whether a command ends as one that blocks if the hook in it fails. That it does so is for who runs it to see.
func endsShut(command string) bool {
	return strings.Contains(command, "|| {") && strings.HasSuffix(command, "exit 2; }")
}

// isShut reports whether the command of a hook of Parley's is what setup enters so that it blocks if the hook fails, and nothing else: what
// stands between the hook and its end, as in "|| true", would hide the failure.
func (h ownHook) isShut(agent string) bool {
	joined := shell.Join(append([]string{h.program, "hook", agent}, h.args...))
	rest, ok := strings.CutPrefix(h.Command, joined)
	if !ok {
		return false
	}
	const mark = "\x00"
	before, after, _ := strings.Cut(otherwise(agent, joined, mark), mark)
	shown, ok := strings.CutPrefix(rest, before)
	if ok {
		shown, ok = strings.CutSuffix(shown, after)
	}
	return ok && !strings.Contains(strings.ReplaceAll(shown, `'\''`, ""), "'") // it stays within the quotes
}

// setHooks brings Parley's own hooks to the given ones. A hook of its own stays in its place in a group for all tools. The
// others are taken out, and what is missing comes last, since Codex trusts hooks by their places. Without hooks to set
// it takes all of its own out, with the groups, events and objects that become empty.
func (d *document) setHooks(agent string, own []eventHook) error {
	if d.get("hooks") != nil && d.get("hooks")[0] != '{' {
		return fmt.Errorf("its hooks are not as they should be")
	}
	for _, h := range own {
		if d.get("hooks", h.event) != nil && d.count("hooks", h.event) < 0 {
			return fmt.Errorf("its hooks on %s are not as they should be", h.event)
		}
	}
	found := false
	for _, event := range d.names("hooks") {
		i := slices.IndexFunc(own, func(h eventHook) bool { return h.event == event })
		var wanted *hookHandler
		if i >= 0 {
			wanted = &own[i].hookHandler
		}
		found = d.setEvent(agent, event, wanted) || found
	}
	for _, h := range own {
		if n := max(d.count("hooks", h.event), 0); !d.hasOwn(agent, h.event) {
			group := plainJSON(map[string]any{"hooks": []hookHandler{h.hookHandler}})
			if n == 0 {
				d.set(plainJSON([]json.RawMessage{group}), "hooks", h.event)
				continue
			}
			d.set(group, "hooks", h.event, n)
		}
	}
	if found && len(d.names("hooks")) == 0 {
		d.cut("hooks")
	}
	return nil
}

// setEvent brings Parley's hooks on an event to the wanted one, or takes them out. It reports whether there were any.
func (d *document) setEvent(agent, event string, wanted *hookHandler) (found bool) {
	kept := false
	for i := d.count("hooks", event) - 1; i >= 0; i-- {
		handlers := d.count("hooks", event, i, "hooks")
		mine := 0
		for j := handlers - 1; j >= 0; j-- {
			if !isOwnHook(d.get("hooks", event, i, "hooks", j), agent) {
				continue
			}
			mine++
			if wanted != nil && !kept && matchesAll(d.get("hooks", event, i)) {
				d.set(plainJSON(wanted), "hooks", event, i, "hooks", j)
				kept = true
				continue
			}
			d.cut("hooks", event, i, "hooks", j)
		}
		if mine > 0 && d.count("hooks", event, i, "hooks") == 0 {
			d.cut("hooks", event, i)
		}
		found = found || mine > 0
	}
	if found && d.count("hooks", event) == 0 {
		d.cut("hooks", event)
	}
	return found
}

func (d *document) hasOwn(agent, event string) bool {
	return slices.ContainsFunc(d.own(agent), func(h ownHook) bool { return h.event == event })
}

// ownHook is a hook of Parley's as it stands in settings.
type ownHook struct {
	eventHook
	matcher string // of its group
	program string
	args    []string       // behind "hook AGENT"
	more    map[string]any // all members of the handler
}

// own returns Parley's hooks in the order of the text.
func (d *document) own(agent string) (all []ownHook) {
	for _, event := range d.names("hooks") {
		for i := range max(d.count("hooks", event), 0) {
			for j := range max(d.count("hooks", event, i, "hooks"), 0) {
				raw := d.get("hooks", event, i, "hooks", j)
				program, args, ok := ownCommand(raw, agent)
				if !ok {
					continue
				}
				h := ownHook{eventHook: eventHook{event: event}, matcher: matcherOf(d.get("hooks", event, i)), program: program, args: args}
				_ = json.Unmarshal(raw, &h.hookHandler) // ownCommand has read it
				_ = json.Unmarshal(raw, &h.more)
				all = append(all, h)
			}
		}
	}
	return all
}

// matcherOf returns the tools that a group of hooks is for: "" for all.
func matcherOf(group json.RawMessage) string {
	var g struct {
		Matcher *string `json:"matcher"`
	}
	switch err := json.Unmarshal(group, &g); {
	case err != nil:
		return "?"
	case g.Matcher == nil, *g.Matcher == "*", *g.Matcher == ".*":
		return ""
	}
	return *g.Matcher
}

func matchesAll(group json.RawMessage) bool { return matcherOf(group) == "" }

// isOwnHook reports whether a handler runs Parley's hook, wherever the program is.
func isOwnHook(raw json.RawMessage, agent string) bool {
	_, _, ok := ownCommand(raw, agent)
	return ok
}

// ownCommand returns the program of a handler that runs Parley's hook. The arguments are those of the hook, without what
// the shell does besides.
func ownCommand(raw json.RawMessage, agent string) (program string, args []string, ok bool) {
	var h hookHandler
	if json.Unmarshal(raw, &h) != nil {
		return "", nil, false
	}
	words, err := shell.Split(h.Command)
	if err != nil {
		return "", nil, false
	}
	for len(words) > 0 && (words[0] == "exec" || words[0] == "env" || isAssignment(words[0])) {
		words = words[1:]
	}
	if len(words) < 3 || !isParley(words[0]) || words[1] != "hook" || words[2] != agent {
		return "", nil, false
	}
	args = words[3:]
	if i := slices.IndexFunc(args, func(w string) bool { return w == "||" || w == "&&" || w == ";" || w == "|" }); i >= 0 {
		args = args[:i]
	}
	return words[0], args, true
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && !strings.ContainsAny(name, "/-.")
}

// isParley reports whether a command is this program, wherever it is, or its client.
func isParley(command string) bool {
	self, err := os.Executable()
	name := filepath.Base(command)
	return name == "parley" || name == clientName || err == nil && command == self
}

// mcpServer is a program that is an MCP server on its standard input and output.
type mcpServer struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Trust   bool     `json:"trust,omitempty"` // the tools are asked about by nobody
}

// setServer puts the MCP server into settings, or takes it out where it is nil. It refuses to replace another server of
// that name, and does not take it out.
func (d *document) setServer(server *mcpServer) error {
	var was mcpServer
	raw := d.get("mcpServers", hook.ServerName)
	own := raw != nil && json.Unmarshal(raw, &was) == nil && isParley(was.Command)
	if server == nil {
		if own {
			d.cut("mcpServers", hook.ServerName)
			if len(d.names("mcpServers")) == 0 {
				d.cut("mcpServers")
			}
		}
		return nil
	}
	if all := d.get("mcpServers"); all != nil && all[0] != '{' {
		return parley.Refuse(parley.InvalidArgument, "its mcpServers are no object")
	}
	if raw != nil && !own {
		return parley.Refuse(parley.InvalidArgument, "it has another MCP server with the name %s", hook.ServerName)
	}
	d.set(plainJSON(server), "mcpServers", hook.ServerName)
	return nil
}
