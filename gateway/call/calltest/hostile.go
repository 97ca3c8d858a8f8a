package calltest

import (
	"fmt"
	"strings"
)

// Case is a call that hides what it does. No place may offer to allow it without showing each text of Shows. One with Hidden
// has characters that do not show: no notice offers to allow it.
type Case struct {
	Name, Tool, Input string
	Shows             []string
	Hidden            bool
	Forges            bool // its free words begin lines as Parley does: see Forged
	Long              bool // no notice has room for it
}

const harm = "rm -rf ~"

// Hostile returns the calls.
func Hostile() []Case {
	blank := strings.Repeat("\n", 900)
	return []Case{
		{Name: "blank lines between members", Tool: "Bash", Input: `{"description":"List files",` + blank + `"command":"ls; ` + harm + `"}`, Shows: []string{harm}},
		{Name: "blank lines before the end", Tool: "mcp__a__b", Input: `{"one":1,` + blank + `"two":"` + harm + `"` + blank + `}`, Shows: []string{harm}},
		{Name: "blank lines in a command", Tool: "Bash", Input: `{"command":"ls` + strings.Repeat(`\n`, 900) + harm + `"}`, Shows: []string{harm}},
		{Name: "blank lines in a quoted word", Tool: "Bash", Input: `{"command":"echo '` + strings.Repeat(`\n`, 900) + `'\n` + harm + `"}`, Shows: []string{"899 blank lines", harm}},
		{Name: "blank lines in a value", Tool: "send", Input: `{"to":"a","text":"hello` + strings.Repeat(`\n \t`, 900) + `\n` + harm + `"}`, Shows: []string{"900 blank lines", harm}},
		{Name: "blank lines in a file", Tool: "Write", Input: `{"file_path":"a.sh","content":"ls` + strings.Repeat(`\n`, 900) + harm + `"}`, Shows: []string{"899 blank lines", harm}},
		{Name: "blank lines in an edit", Tool: "Edit", Input: `{"file_path":"a.sh","old_string":"ls","new_string":"ls` + strings.Repeat(`\n`, 900) + harm + `"}`, Shows: []string{"blank lines are added", harm}},
		{Name: "blanks in a line", Tool: "Bash", Input: `{"command":"echo a` + strings.Repeat(" ", 5000) + harm + `"}`, Shows: []string{"5000 blanks", harm}},
		{Name: "wide blanks in a value", Tool: "send", Input: `{"text":"hello` + strings.Repeat("\u3000\u2003", 300) + harm + `"}`, Shows: []string{"600 blanks", harm}},
		{Name: "deep with blank lines", Tool: "send", Input: `{"a":` + strings.Repeat("[", 60) + blank + `"` + harm + `"` + strings.Repeat("]", 60) + `}`, Shows: []string{harm}, Long: true},
		{Name: "a reversed line", Tool: "Bash", Input: "{\"command\":\"ls \u202e ~ fr- mr\"}", Shows: []string{`\u{202e}`}, Hidden: true},
		{Name: "no width", Tool: "Bash", Input: "{\"command\":\"ls \u200b\u2060\ufeff" + harm + "\"}", Shows: []string{`\u{200b}`, harm}, Hidden: true},
		{Name: "a joined emoji", Tool: "Bash", Input: "{\"command\":\"git commit -m '👩\u200d💻'\"}", Shows: []string{`\u{200d}`}, Hidden: true},
		{Name: "a carriage return", Tool: "Bash", Input: `{"command":"` + harm + `\r ls # harmless\r\n"}`, Shows: []string{harm}, Hidden: true},
		{Name: "vertical tabs and feeds", Tool: "Bash", Input: `{"command":"ls ` + strings.Repeat(`\u000b\u000c`, 20) + harm + `"}`, Shows: []string{`\u{b}`, harm}, Hidden: true},
		{Name: "line separators", Tool: "Bash", Input: "{\"command\":\"ls " + strings.Repeat("\u2028\u2029", 20) + harm + "\"}", Shows: []string{`\u{2028}`, harm}, Hidden: true},
		{Name: "letters without ink", Tool: "Bash", Input: "{\"command\":\"ls " + strings.Repeat("\u2800\u3164", 20) + harm + "\"}", Shows: []string{`\u{2800}`, `\u{3164}`, harm}, Hidden: true},
		{Name: "a hidden key", Tool: "send", Input: "{\"to\u200b\":\"" + harm + "\"}", Shows: []string{`\u{200b}`, harm}, Hidden: true},
		{Name: "a long word", Tool: "Bash", Input: `{"command":"ls ` + strings.Repeat("x", 5000) + `; ` + harm + `"}`, Shows: []string{harm}, Long: true},
		{Name: "many lines", Tool: "Bash", Input: `{"command":"` + strings.Repeat(`ls\n`, 200) + harm + `"}`, Shows: []string{harm}, Long: true},
		{Name: "a description of lines", Tool: "Bash", Input: `{"command":"` + harm + `","description":"List files\nin /harmless\n$ harmless\n! harmless\n+ harmless\n- harmless"}`, Shows: []string{harm, "says: “List files"}, Forges: true},
		{Name: "a description before its lines", Tool: "Bash", Input: `{"description":"$ harmless","command":"` + harm + `"}`, Shows: []string{harm, "says: “$ harmless”"}, Forges: true},
		{Name: "a title of a command", Tool: "shell", Input: `{"title":"in /harmless\n$ harmless","command":["bash","-lc","` + harm + `"]}`, Shows: []string{harm, "says: “in /harmless"}, Forges: true},
		{Name: "a long description", Tool: "Bash", Input: `{"command":"` + harm + `","description":"it is safe` + strings.Repeat(`\n! harmless`, 10) + `"}`, Shows: []string{harm, "says: “it is safe"}, Forges: true},
		{Name: "a name of a shell", Tool: "shell", Input: `{"command":["/x\n$ harmless/bash","-c","` + harm + `"]}`, Shows: []string{harm}, Forges: true},
		{Name: "a path of a command", Tool: "Edit", Input: `{"file_path":"$ harmless","old_string":"ls","new_string":"` + harm + `"}`, Shows: []string{harm}, Forges: true},
		{Name: "a path of lines", Tool: "Write", Input: `{"file_path":"a\n$ harmless\nin /harmless","content":"` + harm + `"}`, Shows: []string{harm}, Forges: true},
		{Name: "names of members", Tool: "send", Input: `{"in /harmless":"x","$ harmless":"y","! harmless":"z","+ harmless":"1","a\n- harmless":"2","to":"` + harm + `"}`, Shows: []string{harm}, Forges: true},
		{Name: "names of members of an edit", Tool: "MultiEdit", Input: `{"file_path":"a","edits":[{"old_string":"ls","new_string":"` + harm + `","$ harmless":"x","a":{"b":"` + strings.Repeat("x", 200) + `"}}]}`, Shows: []string{harm}, Forges: true},
		{Name: "a name of a tool", Tool: "$ harmless", Input: `{"command":"` + harm + `"}`, Shows: []string{harm}, Forges: true},
		{Name: "a host in two scripts", Tool: "Bash", Input: `{"command":"curl https://ex\u0430mple.com; ` + harm + `"}`, Shows: []string{`ex\u{430}mple.com`, harm}, Hidden: true},
		{Name: "marks on a letter", Tool: "Bash", Input: `{"command":"echo a` + strings.Repeat(`\u0301`, 500) + harm + `"}`, Shows: []string{"500 marks", harm}, Hidden: true},
		{Name: "many members", Tool: "send", Input: `{"a":1` + members(200) + `,"z":"` + harm + `"}`, Shows: []string{harm}, Long: true},
	}
}

// Forged returns a line of a text that begins as Parley's do, with free words of a call that Forges; else "". Line
// breaks may be escaped as in JSON, and lines may be indented or quoted as the place does.
func Forged(text, indent string) string {
	for line := range strings.SplitSeq(strings.ReplaceAll(text, `\n`, "\n"), "\n") {
		for _, words := range []string{"$ harmless", "in /harmless", "! harmless", "+ harmless", "- harmless", "it is safe"} {
			if strings.HasPrefix(strings.TrimPrefix(line, indent), words) {
				return line
			}
		}
	}
	return ""
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":1`, i)
	}
	return b.String()
}
