package show

import (
	"fmt"
	"strings"

	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway/call"
)

// Kind is the part that a line has in a call or a message.
type Kind = call.RowKind

// The kinds of lines.
const (
	Text    = call.TextRow
	Path    = call.PathRow
	Key     = call.KeyRow
	Says    = call.SaysRow
	Command = call.CommandRow
	Note    = call.NoteRow
	Added   = call.AddedRow
	Removed = call.RemovedRow
	Risk    = call.RiskRow
	Folder  = call.FolderRow
)

// Line is a line that is safe to print.
type Line struct {
	Kind Kind
	Text string
}

// Wants returns what the call of an approval does, behind "wants to".
func Wants(e view.Message) string {
	r := call.Read(e.Permission)
	return terminal.Visible(r.Verb + " " + r.Object)
}

// Fact returns who uses which resource, as the node has found it out; "" for the call of an agent.
func Fact(e view.Message) string { return terminal.Visible(call.Read(e.Permission).Fact()) }

// CallLines returns the whole call of an approval.
func CallLines(e view.Message) []Line {
	return linesOf(call.Read(e.Permission).Rows())
}

// Said returns what the asker of a call says of it besides the call.
func Said(e view.Message) []Line { return linesOf(call.Said(e.Permission)) }

func linesOf(rows []call.Row) []Line {
	lines := make([]Line, len(rows))
	for i, r := range rows {
		lines[i] = Line{r.Kind, spread(r.Text)}
	}
	return lines
}

// Others returns what is said of calls that are shown as one with e, each behind its number. It leaves out those of which
// the same is said as of e.
func Others(e view.Message, same []view.Message) (lines []Line) {
	for _, o := range same {
		if o.MessageID == e.MessageID || o.Permission.Part == e.Permission.Part && o.Permission.Reason == e.Permission.Reason {
			continue
		}
		rows := call.Said(o.Permission)
		if len(rows) == 0 {
			rows = []call.Row{{Kind: Says, Text: "says nothing of it"}}
		}
		for i, r := range rows {
			prefix := fmt.Sprintf("%d ", o.Number)
			if i > 0 {
				prefix = strings.Repeat(" ", len(prefix))
			}
			lines = append(lines, Line{r.Kind, prefix + spread(r.Text)})
		}
	}
	return lines
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
// most, and cuts long ones. A line then says how many more a command shows. Else all of each line is shown.
func Preview(lines []Line, s terminal.Screen, most int, command string) string {
	rest := 0
	if most > 0 && len(lines) > most+1 {
		lines, rest = lines[:most], len(lines)-most
	}
	var shown []string
	for _, l := range lines {
		if most > 0 {
			shown = append(shown, s.Fit("   "+l.Paint(s)))
			continue
		}
		for _, part := range l.Broken(s, s.Width-3) {
			shown = append(shown, "   "+part)
		}
	}
	if rest > 0 {
		shown = append(shown, s.Fit("   "+s.Paint(terminal.Faint, fmt.Sprintf("… %d more lines: %s", rest, command))))
	}
	return strings.Join(shown, "\n")
}

// Broken returns a line in as many as a width needs; 0 or less is no bound. The further ones are indented, so that no word of
// a line looks like the beginning of another.
func (l Line) Broken(s terminal.Screen, width int) []string {
	const indent = "      "
	parts := []string{l.Text}
	if width > len(indent) {
		parts = terminal.Wrap(l.Text, width)
	}
	if len(parts) > 1 {
		rest := terminal.Wrap(l.Text[len(parts[0]):], width-len(indent))
		for i, r := range rest {
			rest[i] = indent + r
		}
		parts = append(parts[:1], rest...)
	}
	for i, part := range parts {
		parts[i] = Line{l.Kind, part}.Paint(s)
	}
	return parts
}

// Paint returns the line in the style of its kind.
func (l Line) Paint(s terminal.Screen) string {
	switch l.Kind {
	case Path, Folder:
		return s.Paint(terminal.Place, l.Text)
	case Command:
		return s.Paint(terminal.Strong, l.Text)
	case Note, Says:
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
