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

// tomlFile returns the file with the block in it, or without it.
func (s settings) tomlFile(path string, server mcpServer) (File, error) {
	f, err := s.settingsFile(path)
	if err != nil || f.problem != nil {
		return f, err
	}
	if s.Remove {
		f.withoutBlock(blockBegin, blockEnd)
		return f, nil
	}
	block := serverBlock(server)
	f.Entered = block
	after, err := withBlock(f.before, block)
	if err != nil {
		f.problem = leftAlone(f.Path, err.Error())
		return f, nil
	}
	f.becomes(after, !bytes.Contains(f.before, []byte(blockBegin)))
	return f, nil
}

func serverBlock(s mcpServer) string {
	args := make([]string, len(s.Args))
	for i, a := range s.Args {
		args[i] = tomlString(a)
	}
	// The server has Codex queue prompts, and so needs the folder that this Codex has.
	return fmt.Sprintf("%s\n[mcp_servers.%s]\ncommand = %s\nargs = [%s]\nenv_vars = [\"CODEX_HOME\"]\n%s\n",
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
	entered := enterBlock(before, block, after, begun)
	if taken || toml.Unmarshal(entered, new(map[string]any)) != nil { // a table cannot stand twice, nor extend an inline one
		return nil, fmt.Errorf("it has MCP servers in a way that leaves no room for another table, or one with the name %s", hook.ServerName)
	}
	return entered, nil
}

// enterBlock returns the text with a block between its parts. Those are around a former block if begun is true. The block
// has the line ends of the text.
func enterBlock(before, block, after string, begun bool) []byte {
	if !begun {
		before = spaced(before)
	}
	return []byte(before + strings.ReplaceAll(block, "\n", newlineOf(before+after)) + after)
}

// withoutBlock sets the text of the file without the block. The empty line that spaced has put before it goes too.
func (f *File) withoutBlock(begin, end string) {
	before, after, begun, err := cutBlock(string(f.before), begin, end)
	if err != nil {
		f.problem = leftAlone(f.Path, err.Error())
		return
	}
	if !begun {
		return
	}
	if kept, ok := f.kept(); ok && strings.TrimRight(string(kept.before), "\r\n") == strings.TrimRight(before, "\r\n") {
		before = string(kept.before)
		if after != "" && before != "" && !strings.HasSuffix(before, "\n") {
			before += "\n"
		}
	} else if newline := newlineOf(before); strings.HasSuffix(before, newline+newline) {
		before = strings.TrimSuffix(before, newline)
	}
	text := before + after
	f.withoutEntries([]byte(text), strings.TrimSpace(text) == "", func(kept []byte) bool { return string(kept) == text })
}

// cutBlock returns the text before and after the lines that begin and end a block, and whether there is one.
func cutBlock(text, begin, end string) (before, after string, found bool, err error) {
	var begun, ended int
	before, after = text, ""
	at := 0
	for line := range strings.Lines(text) {
		switch strings.TrimRight(line, "\r\n") {
		case begin:
			begun++
			before = text[:at]
		case end:
			ended++
			after = text[at+len(line):]
		}
		at += len(line)
	}
	switch {
	case begun > 1:
		return "", "", false, fmt.Errorf("parley setup has entered something twice")
	case begun != ended, begun == 1 && len(before)+len(after) >= len(text):
		return "", "", false, fmt.Errorf("the lines around what parley setup entered are not both there")
	}
	if begun == 1 && begin == blockBegin {
		after = otherTables(text[len(before):len(text)-len(after)]) + after
	}
	return before, after, begun == 1, nil
}

// otherTables returns the tables in a block of TOML beside the MCP server's, without the block's last line.
// Codex adds its own at the end of a file, but before a last comment: what a person trusts, and tables for the terminal.
func otherTables(block string) string {
	others, other := "", false
	for line := range strings.Lines(block) {
		if header, ok := strings.CutPrefix(line, "["); ok {
			name, isServer := strings.CutPrefix(strings.TrimSpace(header), "mcp_servers."+hook.ServerName)
			other = !isServer || name[:min(1, len(name))] != "]" && name[:min(1, len(name))] != "."
			if other && others == "" {
				others = newlineOf(block)
			}
		}
		if other && strings.TrimRight(line, "\r\n") != blockEnd {
			others += line
		}
	}
	return others
}

// spaced returns a text that ends with an empty line, so that a block can follow.
func spaced(text string) string {
	newline := newlineOf(text)
	switch {
	case text == "":
		return text
	case !strings.HasSuffix(text, "\n"):
		return text + newline + newline
	case !strings.HasSuffix(text, newline+newline):
		return text + newline
	}
	return text
}

func newlineOf(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}
