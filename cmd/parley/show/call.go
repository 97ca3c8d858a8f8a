package show

import (
	"fmt"
	"strings"

	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway/call"
	"parley/mailbox"
	"parley/mailbox/rule"
)

// Kind is the part that a line has in a call or a message.
type Kind int

// The kinds of lines.
const (
	Text    Kind = iota
	Path         // of a file, above its lines
	Key          // of an input, above or before its value
	Command      // that a shell runs
	Note         // about the lines above
	Added        // by an edit
	Removed
	Risk // of the call
)

// Line is a line that is safe to print.
type Line struct {
	Kind Kind
	Text string
}

// read reads the call of an approval.
func read(e view.Message) call.Reading {
	return call.Read(call.Call{Tool: e.Title, Input: e.Description, Folder: folderOf(e)})
}

// folderOf returns the folder of an approval's call, which stands in the words of its first rule; "" if none does.
func folderOf(e view.Message) string {
	folder, found := strings.CutPrefix(mailbox.OffersOf(e.Fields)[0], rule.VeryCall("")+", in ")
	if !found || !strings.HasPrefix(folder, "/") {
		return ""
	}
	return folder
}

// Wants returns what the call of an approval does, behind "wants to".
func Wants(e view.Message) string {
	r := read(e)
	return terminal.Visible(r.Verb + " " + r.Object)
}

// CallLines returns the whole call of an approval. If it has too many lines, the input as it stands follows the first.
func CallLines(e view.Message) []Line {
	r := read(e)
	var lines []Line
	for _, risk := range r.Risks {
		lines = append(lines, Line{Risk, "! " + terminal.Visible(risk.Text)})
	}
	for i, b := range r.Blocks {
		if b.Path != "" && (i == 0 || r.Blocks[i-1].Path != b.Path) {
			lines = append(lines, Line{Path, terminal.Visible(b.Path)})
		} else if b.Path != "" {
			lines = append(lines, Line{Note, "…"})
		}
		for _, n := range b.Notes {
			lines = append(lines, Line{Note, terminal.Visible(n)})
		}
		for k, l := range b.Lines {
			lines = append(lines, lineOf(b.Kind, k, l))
		}
		for _, v := range b.Values {
			lines = append(lines, valueLines(v)...)
		}
	}
	if r.LeftOut > 0 {
		lines = append(lines, Line{Note, fmt.Sprintf("… %d more lines, which the whole input has:", r.LeftOut)})
		lines = append(lines, plain(Text, "", e.Description)...)
	}
	return lines
}

// lineOf returns a line of a block, the number k of it.
func lineOf(block call.Kind, k int, l call.Line) Line {
	text := spread(l.Text())
	switch {
	case block == call.Command && k == 0:
		return Line{Command, "$ " + text}
	case block == call.Command:
		return Line{Command, "  " + text}
	case l.Mark == call.Note || l.Mark == call.Skip:
		return Line{Note, "… " + text}
	case l.Mark == call.Added || block == call.File:
		return Line{Added, "+" + text}
	case l.Mark == call.Removed:
		return Line{Removed, "-" + text}
	}
	return Line{Text, " " + text}
}

// valueLines returns a key with its value. A long value stands below its key.
func valueLines(v call.Value) []Line {
	switch {
	case v.Key == "":
		return plain(Text, "", v.Text)
	case v.IsLong():
		return append([]Line{{Key, terminal.Visible(v.Key) + ":"}}, plain(Text, "  ", v.Text)...)
	}
	return []Line{{Key, terminal.Visible(v.Key) + ": " + terminal.Visible(v.Text)}}
}

// plain returns the lines of a text, each behind a prefix.
func plain(kind Kind, prefix, text string) []Line {
	parts := strings.Split(text, "\n")
	lines := make([]Line, len(parts))
	for i, p := range parts {
		lines[i] = Line{kind, prefix + spread(p)}
	}
	return lines
}

// spread returns a line as it is safe to print, with tabs as spaces.
func spread(line string) string {
	return terminal.Visible(strings.ReplaceAll(line, "\t", "    "))
}

// Preview returns lines for a screen, below a message and indented. With most greater than 0 it returns so many at
// most. A line then says how many more a command shows.
func Preview(lines []Line, s terminal.Screen, most int, command string) string {
	rest := 0
	if most > 0 && len(lines) > most+1 {
		lines, rest = lines[:most], len(lines)-most
	}
	shown := make([]string, len(lines), len(lines)+1)
	for i, l := range lines {
		shown[i] = s.Fit("   " + l.Paint(s))
	}
	if rest > 0 {
		shown = append(shown, s.Fit("   "+s.Paint(terminal.Faint, fmt.Sprintf("… %d more lines: %s", rest, command))))
	}
	return strings.Join(shown, "\n")
}

// Paint returns the line in the style of its kind.
func (l Line) Paint(s terminal.Screen) string {
	switch l.Kind {
	case Path:
		return s.Paint(terminal.Place, l.Text)
	case Command:
		return s.Paint(terminal.Strong, l.Text)
	case Note:
		return s.Paint(terminal.Faint, l.Text)
	case Risk:
		return s.Paint(terminal.Waiting, l.Text)
	case Added:
		return s.Paint(terminal.Right, l.Text)
	case Removed:
		return s.Paint(terminal.Wrong, l.Text)
	}
	return l.Text
}
