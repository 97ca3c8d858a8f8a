package setup

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"parley"
	"parley/cmd/parley/hook"
	"parley/cmd/parley/terminal"
)

// object is a JSON object in the order of its text. Changing one member keeps the others as they are.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// readObject reads an object. An empty text is an empty object.
func readObject(text []byte) (object, bool) {
	if len(bytes.TrimSpace(text)) == 0 {
		return object{}, true
	}
	if !json.Valid(text) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	o := object{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		m := member{name: name.(string)} // valid JSON has nothing else here
		if err := d.Decode(&m.value); err != nil {
			return nil, false
		}
		o = append(o, m)
	}
	return o, true
}

// at returns the index of a member, or -1. Of several members with one name it is the last, as for other readers.
func (o object) at(name string) int {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].name == name {
			return i
		}
	}
	return -1
}

func (o object) get(name string) json.RawMessage {
	if i := o.at(name); i >= 0 {
		return o[i].value
	}
	return nil
}

// with returns the object with a member set.
func (o object) with(name string, value json.RawMessage) object {
	o = slices.Clone(o)
	if i := o.at(name); i >= 0 {
		o[i].value = value
		return o
	}
	return append(o, member{name, value})
}

func (o object) encode() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(plainJSON(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// plainJSON returns the JSON form of a value that has one, without escapes for HTML.
func plainJSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings, numbers and records of them always have one
	}
	return bytes.TrimSpace(b.Bytes())
}

func indented(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		panic(err) // it was made of valid parts
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// hookHandler is a hook in the settings of either agent.
type hookHandler struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // seconds
	Status  string `json:"statusMessage,omitempty"`
}

// eventHook is a hook on one event.
type eventHook struct {
	event string
	hookHandler
}

// ownHook returns the hook that asks on an event.
func ownHook(event, command string) eventHook {
	return eventHook{event, hookHandler{
		Type: "command", Command: command, Timeout: int(hook.Timeout.Seconds()), Status: "Waiting for a decision in Parley",
	}}
}

// endHook returns the hook that withdraws approvals on an event.
func endHook(event, command string) eventHook {
	return eventHook{event, hookHandler{Type: "command", Command: command, Timeout: 10}}
}

// enterHooks puts hooks into settings. Each replaces an earlier one of Parley's on its event, wherever the program was
// then. A new one comes after all others, since Codex trusts hooks by their places.
func enterHooks(settings object, agent string, own []eventHook) (object, bool) {
	hooks, ok := readObject(settings.get("hooks"))
	for _, h := range own {
		if !ok {
			return nil, false
		}
		hooks, ok = enterHook(hooks, agent, h)
	}
	if !ok {
		return nil, false
	}
	return settings.with("hooks", hooks.encode()), true
}

// enterHook puts a hook among the hooks of settings.
func enterHook(hooks object, agent string, own eventHook) (object, bool) {
	var groups []json.RawMessage
	if raw := hooks.get(own.event); raw != nil && json.Unmarshal(raw, &groups) != nil {
		return nil, false
	}
	found := false
	for i, raw := range groups {
		group, ok := readObject(raw)
		var handlers []json.RawMessage
		if !ok || json.Unmarshal(group.get("hooks"), &handlers) != nil {
			continue // not Parley's, whatever it is
		}
		for j, h := range handlers {
			if !isOwnHook(h, agent) {
				continue
			}
			found = true
			if !sameJSON(h, plainJSON(own.hookHandler)) {
				handlers[j] = plainJSON(own.hookHandler)
				groups[i] = group.with("hooks", plainJSON(handlers)).encode()
			}
		}
	}
	if !found {
		groups = append(groups, plainJSON(map[string]any{"hooks": []hookHandler{own.hookHandler}}))
	}
	return hooks.with(own.event, plainJSON(groups)), true
}

// isOwnHook reports whether a handler runs Parley's hook, wherever the program is.
func isOwnHook(raw json.RawMessage, agent string) bool {
	var h hookHandler
	if json.Unmarshal(raw, &h) != nil {
		return false
	}
	program, rest, ok := strings.Cut(h.Command, " hook "+agent)
	return ok && (rest == "" || rest[0] == ' ') && filepath.Base(strings.Trim(program, "'")) == "parley"
}

// mcpServer is a program that is an MCP server on its standard input and output.
type mcpServer struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// enterServer puts the MCP server into settings. It refuses to replace another server of that name.
func enterServer(settings object, server mcpServer) (object, error) {
	servers, ok := readObject(settings.get("mcpServers"))
	if !ok {
		return nil, parley.Refuse(parley.InvalidArgument, "its mcpServers are no object")
	}
	if raw := servers.get(hook.ServerName); raw != nil {
		var was mcpServer
		if json.Unmarshal(raw, &was) != nil || filepath.Base(was.Command) != "parley" {
			return nil, parley.Refuse(parley.InvalidArgument, "it has another MCP server with the name %s", hook.ServerName)
		}
	}
	return settings.with("mcpServers", servers.with(hook.ServerName, plainJSON(server)).encode()), nil
}

// sameJSON reports whether two JSON texts differ in layout only.
func sameJSON(a, b []byte) bool {
	var first, second bytes.Buffer
	return json.Compact(&first, a) == nil && json.Compact(&second, b) == nil && bytes.Equal(first.Bytes(), second.Bytes())
}

// enterJSON returns the file with an entry. A file that has the entry already stays unchanged.
func enterJSON(path string, entered any, enter func(object) (object, error)) (File, error) {
	f, err := readSettings(path)
	if err != nil {
		return f, err
	}
	f.Entered = string(indented(plainJSON(entered)))
	was, ok := readObject(f.before)
	if !ok {
		f.problem = leftAlone(f.Path, "it is no JSON object, or has comments")
		return f, nil
	}
	is, err := enter(was)
	if err != nil {
		f.problem = leftAlone(f.Path, terminal.Message(err))
		return f, nil
	}
	f.Changed = !f.there || !sameJSON(was.encode(), is.encode())
	f.after = indented(is.encode())
	return f, nil
}

func leftAlone(path, why string) error {
	return parley.Refuse(parley.InvalidArgument, "%s is left alone: %s", path, why).WithHint("--print shows what to enter by hand")
}
