package call

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"parley/capabilities"
	"parley/gateway/call/risk"
)

// member is a key of an object with its value.
type member struct {
	key   string
	value json.RawMessage
}

// object is an object in the order of its text.
type object []member

// membersOf returns the members of an object. It reports false for any other text. So it does for an object that is too
// long, too deep or has a key twice.
func membersOf(doc string) (all object, ok bool) {
	if len(doc) > maxInput || capabilities.Nesting([]byte(doc)) > maxNesting || !json.Valid([]byte(doc)) {
		return nil, false
	}
	dec := json.NewDecoder(strings.NewReader(doc))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var m member
		if m.key, ok = key.(string); !ok || seen[m.key] || dec.Decode(&m.value) != nil {
			return nil, false
		}
		seen[m.key] = true
		all = append(all, m)
	}
	return all, true
}

// text returns the text under a key.
func (o object) text(key string) (text string, ok bool) {
	i := slices.IndexFunc(o, func(m member) bool { return m.key == key })
	if i < 0 || len(o[i].value) == 0 || o[i].value[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(o[i].value, &text) == nil
}

// raw returns the value under a key, nil for none.
func (o object) raw(key string) json.RawMessage {
	if i := slices.IndexFunc(o, func(m member) bool { return m.key == key }); i >= 0 {
		return o[i].value
	}
	return nil
}

// read reads the members of an input into blocks. What no other block shows is shown by its key.
func (r *reader) read(in object) {
	shown := r.readCommand(in)
	if shown == nil {
		shown = r.readFiles(in)
	}
	if shown == nil {
		r.readTool(in)
	}
	rest := Block{Kind: Values}
	for _, m := range in {
		if slices.Contains(shown, m.key) {
			continue
		}
		v := Value{Key: m.key, Text: pretty(m.value)}
		if text, ok := in.text(m.key); ok {
			v.Text = text
		}
		rest.Values = append(rest.Values, v)
		switch {
		case risk.IsAddress(v.Text):
			r.risks.Address(v.Text)
		case isFileKey(m.key):
			r.risks.Reads(v.Text)
		}
	}
	if len(rest.Values) > 0 || len(r.blocks) == 0 {
		r.add(rest)
	}
}

// readCommand reads a command line, and returns the keys that its block shows; nil if there is none.
func (r *reader) readCommand(in object) []string {
	line, note := commandOf(in)
	if line == "" || strings.HasPrefix(r.call.Tool, "mcp__") {
		return nil
	}
	b := Block{Kind: Command}
	shown := []string{"command"}
	for _, key := range []string{"description", "title"} {
		if text, ok := in.text(key); ok && strings.TrimSpace(text) != "" {
			b.Says, shown = text, append(shown, key)
			break
		}
	}
	if note != "" {
		b.Notes = append(b.Notes, note)
	}
	lines, found := parse(line, r.call.Folder, startOf(in, r.call.Folder))
	b.Lines = lines
	r.risks.Add(found)
	r.add(b)
	return shown
}

// startOf returns the folder in which a command line is run: the one that the input names, or that of the call.
func startOf(in object, folder string) string {
	for _, key := range []string{"cwd", "workdir", "directory", "dir_path"} {
		if name, ok := in.text(key); ok && name != "" {
			return name
		}
	}
	return folder
}

// readTool notes what the name of a tool tells.
func (r *reader) readTool(in object) {
	if rest, ok := strings.CutPrefix(r.call.Tool, "mcp__"); ok {
		server, tool, _ := strings.Cut(rest, "__")
		r.risks.Tool(server, tool, r.call.Input)
		return
	}
	switch r.call.Tool {
	case "Bash", "shell", "exec", "exec_command", "local_shell", "execute", "Edit", "MultiEdit", "Write", "NotebookEdit", "edit", "apply_patch":
		if r.call.Tool == "NotebookEdit" {
			if name, ok := in.text("notebook_path"); ok {
				r.risks.Writes(name)
				return
			}
		}
		r.risks.Unread("What it does is not where it is looked for: read the input with care.")
	case "Read", "Glob", "Grep", "LS", "NotebookRead", "TodoWrite", "Task", "WebFetch", "WebSearch", "BashOutput", "ExitPlanMode", "read", "search", "fetch", "think", "update_plan":
	default:
		r.risks.Tool("", r.call.Tool, r.call.Input)
	}
}

// commandOf returns a command line that is given as text or as words, and the shell that words name.
func commandOf(in object) (line, note string) {
	if line, ok := in.text("command"); ok {
		return line, ""
	}
	var words []string
	if json.Unmarshal(in.raw("command"), &words) != nil || len(words) == 0 {
		return "", ""
	}
	if len(words) == 3 && isShell(words[0]) && (words[1] == "-c" || words[1] == "-lc") {
		return words[2], "by " + named(words[0]) + " " + words[1]
	}
	for i, w := range words {
		quoted, err := syntax.Quote(w, syntax.LangBash)
		if err != nil {
			quoted = fmt.Sprintf("%q", w)
		}
		words[i] = quoted
	}
	return strings.Join(words, " "), ""
}

// edit is a change of a file.
type edit struct {
	path, old, new string
	notes          []string
	rest           []Value // other members
	isFile         bool    // the old text is not known: new is the whole file
}

// readFiles reads edits and written files, and returns the keys that their blocks show; nil if there are none.
func (r *reader) readFiles(in object) []string {
	var edits []edit
	var shown []string
	name, hasPath := in.text("file_path")
	was, hasOld := in.text("old_string")
	is, hasNew := in.text("new_string")
	content, hasContent := in.text("content")
	switch {
	case hasPath && hasOld && hasNew && !hasContent && in.raw("edits") == nil:
		edits, shown = []edit{{path: name, old: was, new: is}}, []string{"file_path", "old_string", "new_string"}
		if all := in.raw("replace_all"); all != nil {
			edits[0].add(member{"replace_all", all})
			shown = append(shown, "replace_all")
		}
	case hasPath && in.raw("edits") != nil && !hasOld && !hasNew && !hasContent:
		edits, shown = editsOf(name, in.raw("edits")), []string{"file_path", "edits"}
	case hasPath && hasContent && !hasOld && !hasNew:
		edits, shown = []edit{{path: name, new: content, isFile: true}}, []string{"file_path", "content"}
	case !hasPath && !hasContent && in.raw("content") != nil:
		edits, shown = diffsOf(in.raw("content")), []string{"content"}
	}
	if len(edits) == 0 {
		return nil
	}
	for _, e := range edits {
		r.risks.Writes(e.path)
		r.add(e.block())
	}
	return shown
}

// add adds a member that is no part of the texts.
func (e *edit) add(m member) {
	switch {
	case m.key == "replace_all" && string(m.value) == "true":
		e.notes = append(e.notes, "replaces each occurrence")
	case m.key == "replace_all" && string(m.value) == "false":
		e.notes = append(e.notes, "replaces one occurrence")
	default:
		e.rest = append(e.rest, Value{m.key, pretty(m.value)})
	}
}

// objectsOf returns a list of objects; nil for any other value.
func objectsOf(list json.RawMessage) []object {
	var parts []json.RawMessage
	if json.Unmarshal(list, &parts) != nil {
		return nil
	}
	all := make([]object, len(parts))
	for i, p := range parts {
		var ok bool
		if all[i], ok = membersOf(string(p)); !ok {
			return nil
		}
	}
	return all
}

// editsOf returns the edits of one file; nil if a part is none.
func editsOf(name string, list json.RawMessage) []edit {
	var edits []edit
	for _, o := range objectsOf(list) {
		was, hasOld := o.text("old_string")
		is, hasNew := o.text("new_string")
		if !hasOld || !hasNew {
			return nil
		}
		e := edit{path: name, old: was, new: is}
		for _, m := range o {
			if m.key != "old_string" && m.key != "new_string" {
				e.add(m)
			}
		}
		edits = append(edits, e)
	}
	return edits
}

// diffsOf returns the diffs of the Agent Client Protocol; nil if a part is none.
func diffsOf(list json.RawMessage) []edit {
	var edits []edit
	for _, o := range objectsOf(list) {
		kind, _ := o.text("type")
		name, hasPath := o.text("path")
		is, hasNew := o.text("newText")
		was, hasOld := o.text("oldText")
		none := o.raw("oldText") == nil || string(o.raw("oldText")) == "null"
		if kind != "diff" || !hasPath || !hasNew || !hasOld && !none {
			return nil
		}
		e := edit{path: name, old: was, new: is, isFile: none}
		for _, m := range o {
			if !slices.Contains([]string{"type", "path", "newText", "oldText"}, m.key) {
				e.rest = append(e.rest, Value{m.key, pretty(m.value)})
			}
		}
		edits = append(edits, e)
	}
	return edits
}

// pretty returns a JSON value as text: short ones as they are, long ones with a line for each member. Text that is not
// JSON, or nests too deep, stays as it is.
func pretty(value []byte) string {
	var b bytes.Buffer
	if capabilities.Nesting(value) > maxNesting || len(value) <= maxPhrase {
		if json.Compact(&b, value) != nil {
			return string(value)
		}
		return b.String()
	}
	if json.Indent(&b, value, "", "  ") != nil {
		return string(value)
	}
	return b.String()
}

func isFileKey(key string) bool {
	switch key {
	case "file_path", "notebook_path", "path", "abs_path", "cwd", "workdir", "directory", "dir_path":
		return true
	}
	return false
}

// CommandIn returns the command line of an input that has it as one text, which a person can edit as it stands.
func CommandIn(input string) (line string, ok bool) {
	in, ok := membersOf(input)
	if !ok {
		return "", false
	}
	return in.text("command")
}

// WithCommand returns an input with another command line. All else of it stays as it is, byte by byte. The input must have a command
// line as CommandIn returns it.
func WithCommand(input, line string) string {
	dec := json.NewDecoder(strings.NewReader(input))
	if _, err := dec.Token(); err != nil {
		return input
	}
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return input
		}
		if key == "command" {
			end := int(dec.InputOffset())
			return input[:end-len(value)] + quoted(line) + input[end:]
		}
	}
	return input
}

// quoted returns a text as a JSON string, with no more escapes than it needs.
func quoted(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil { // a text always has a JSON form
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
