package setup

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Codex's MCP servers are in a TOML file with the person's own comments. Nothing in it is rewritten: what Parley
// enters stands between two lines of its own, at the end, where a table may always stand.
const (
	blockBegin = "# >>> parley: what is between these lines is parley setup's"
	blockEnd   = "# <<< parley"
)

// others are the ways in which a file may have an MCP server of that name outside the block, or have all servers in
// one line so that no table can add one.
var others = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^\s*\[\s*["']?mcp_servers["']?\s*\.\s*["']?` + serverName + `["']?\s*[.\]]`),
	regexp.MustCompile(`(?m)^\s*["']?mcp_servers["']?\s*\.\s*["']?` + serverName + `["']?\s*[.=]`),
	regexp.MustCompile(`(?m)^\s*["']?mcp_servers["']?\s*=`),
	regexp.MustCompile(`(?m)^\s*\[\s*["']?mcp_servers["']?\s*\]`),
}

// enterTOML makes the file with the block in it.
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
		blockBegin, serverName, tomlString(s.Command), strings.Join(args, ", "), blockEnd)
}

// tomlString is a basic string. All that JSON escapes, TOML escapes alike; TOML wants DEL escaped too.
func tomlString(s string) string {
	return strings.ReplaceAll(string(plainJSON(s)), "\x7f", `\u007f`)
}

// withBlock gives the text with the block where it was, or at the end.
func withBlock(text []byte, block string) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("it is not UTF-8")
	}
	before, rest, begun := strings.Cut(string(text), blockBegin+"\n")
	_, after, ended := strings.Cut(rest, blockEnd+"\n")
	switch {
	case begun != ended, strings.Contains(before, blockEnd):
		return nil, fmt.Errorf("the lines around what parley setup entered are not both there")
	case begun && strings.Contains(after, blockBegin):
		return nil, fmt.Errorf("parley setup has entered something twice")
	}
	for _, other := range others {
		if other.MatchString(before) || other.MatchString(after) {
			return nil, fmt.Errorf("it has MCP servers in a way that leaves no room for another table, or one with the name %s", serverName)
		}
	}
	if !begun {
		switch {
		case before == "":
		case !strings.HasSuffix(before, "\n"):
			before += "\n\n"
		case !strings.HasSuffix(before, "\n\n"):
			before += "\n"
		}
	}
	return []byte(before + block + after), nil
}
