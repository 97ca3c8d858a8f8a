package setup

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"parley/cmd/parley/hook"
)

// Codex's MCP servers are in a TOML file with the person's own comments. The entry stands between these lines at the end
// of the file, where a table may always stand. Nothing else of the file is changed.
const (
	blockBegin = "# >>> parley: what is between these lines is parley setup's"
	blockEnd   = "# <<< parley"
)

// enterTOML returns the file with the block in it.
func enterTOML(path string, server mcpServer) (File, error) {
	f, err := readSettings(path)
	if err != nil {
		return f, err
	}
	block := serverBlock(server)
	f.Entered = block
	if f.after, err = withBlock(f.before, block); err != nil {
		f.problem = leftAlone(f.Path, err.Error())
		return f, nil
	}
	f.Changed = !bytes.Equal(f.before, f.after)
	return f, nil
}

func serverBlock(s mcpServer) string {
	args := make([]string, len(s.Args))
	for i, a := range s.Args {
		args[i] = tomlString(a)
	}
	return fmt.Sprintf("%s\n[mcp_servers.%s]\ncommand = %s\nargs = [%s]\n%s\n",
		blockBegin, hook.ServerName, tomlString(s.Command), strings.Join(args, ", "), blockEnd)
}

// tomlString returns a basic string. TOML has the escapes of JSON, and wants DEL escaped too.
func tomlString(s string) string {
	return strings.ReplaceAll(string(plainJSON(s)), "\x7f", `\u007f`)
}

// withBlock returns the text with the block in its former place, or at the end.
func withBlock(text []byte, block string) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("it is not UTF-8")
	}
	before, after, begun, err := cutBlock(string(text), blockBegin, blockEnd)
	if err != nil {
		return nil, err
	}
	var others map[string]any
	if toml.Unmarshal([]byte(before+after), &others) != nil {
		return nil, fmt.Errorf("it is no TOML")
	}
	servers, _ := others["mcp_servers"].(map[string]any) // nil also for what is no table
	_, taken := servers[hook.ServerName]
	if !begun {
		before = spaced(before)
	}
	entered := []byte(before + block + after)
	if taken || toml.Unmarshal(entered, new(map[string]any)) != nil { // a table cannot stand twice, nor extend an inline one
		return nil, fmt.Errorf("it has MCP servers in a way that leaves no room for another table, or one with the name %s", hook.ServerName)
	}
	return entered, nil
}

// cutBlock returns the text before and after the lines that begin and end a block, and whether there is one.
func cutBlock(text, begin, end string) (before, after string, found bool, err error) {
	before, rest, begun := strings.Cut(text, begin+"\n")
	_, after, ended := strings.Cut(rest, end+"\n")
	switch {
	case begun != ended, strings.Contains(before, end):
		return "", "", false, fmt.Errorf("the lines around what parley setup entered are not both there")
	case begun && strings.Contains(after, begin):
		return "", "", false, fmt.Errorf("parley setup has entered something twice")
	}
	return before, after, begun, nil
}

// spaced returns a text that ends with an empty line, so that a block can follow.
func spaced(text string) string {
	switch {
	case text == "":
		return text
	case !strings.HasSuffix(text, "\n"):
		return text + "\n\n"
	case !strings.HasSuffix(text, "\n\n"):
		return text + "\n"
	}
	return text
}
