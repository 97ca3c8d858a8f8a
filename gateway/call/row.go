package call

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley"
	"parley/gateway/call/risk"
)

// RowKind is the part that a row has in a call or another message.
type RowKind int

// The kinds of rows.
const (
	TextRow    RowKind = iota
	PathRow            // of a file, above its lines
	KeyRow             // of an input, above or before its value
	SaysRow            // what the caller says of the call, in its own words
	CommandRow         // that a shell runs
	NoteRow            // about the call, or the rows above
	AddedRow           // by an edit
	RemovedRow
	RiskRow   // of the call
	FolderRow // in which the call is made
)

// Row is a line of a message as plain text.
type Row struct {
	Kind RowKind
	Text string
}

// Rows returns the whole call as lines of text: where it is made, what is risky, what it does, and what its caller says of
// it. If the blocks leave lines out, the input as it stands follows them. No row begins with words of the caller: they
// stand behind a mark, a name or an indent.
func (r Reading) Rows() []Row {
	var rows []Row
	add := func(kind RowKind, text string) { rows = append(rows, Row{kind, text}) }
	switch {
	case r.call.Use != nil:
		add(FolderRow, r.Fact())
	case r.call.Folder != "":
		add(FolderRow, "in "+Spelled(r.call.Folder))
	case r.Verb == "run":
		add(FolderRow, "in a folder that is not known")
	}
	for _, f := range r.Risks {
		if f.Level == risk.None {
			add(NoteRow, "… "+f.Text)
			continue
		}
		add(RiskRow, "! "+f.Mark+": "+f.Text)
	}
	for i, b := range r.Blocks {
		if b.Path != "" && (i == 0 || r.Blocks[i-1].Path != b.Path) {
			add(PathRow, named(b.Path))
		} else if b.Path != "" {
			add(NoteRow, "…")
		}
		for _, n := range b.Notes {
			rows = append(rows, rowsOf(NoteRow, "", n)...)
		}
		for k, l := range b.Lines {
			rows = append(rows, rowOf(b.Kind, k, l))
		}
		if b.Says != "" {
			rows = append(rows, says("says", b.Says)...)
		}
		for _, v := range b.Values {
			rows = append(rows, v.rows()...)
		}
	}
	if r.LeftOut > 0 {
		add(NoteRow, fmt.Sprintf("… %d more lines, which the whole input has:", r.LeftOut))
		rows = append(rows, rowsOf(TextRow, "  ", condensed(Spelled(r.call.Input)))...)
	}
	return append(rows, Said(r.call)...)
}

// Said returns what the caller says of a call besides the call itself, as lines of text. Each is labelled as its own words.
// There are none if it says nothing.
func Said(p *parley.Permission) (rows []Row) {
	if p.Session != "" {
		rows = append(rows, says("in its session", condensed(Spelled(p.Session)))...)
	}
	if p.Part != "" {
		rows = append(rows, says("calls its part", condensed(Spelled(p.Part)))...)
	}
	if p.Reason != "" {
		rows = append(rows, says("says why", condensed(Spelled(p.Reason)))...)
	}
	return rows
}

// rowOf returns a line of a block, the number k of it.
func rowOf(block Kind, k int, l Line) Row {
	text := l.Text()
	switch {
	case l.Mark == Note || l.Mark == Skip:
		return Row{NoteRow, "… " + text}
	case block == Command && k == 0:
		return Row{CommandRow, "$ " + text}
	case block == Command:
		return Row{CommandRow, "  " + text}
	case l.Mark == Added || block == File:
		return Row{AddedRow, "+" + text}
	case l.Mark == Removed:
		return Row{RemovedRow, "-" + text}
	}
	return Row{TextRow, " " + text}
}

// rows returns a key with its value. A long value stands below its key. A value without a key is a whole input.
func (v Value) rows() []Row {
	key := "input"
	if v.Key != "" {
		key = named(v.Key)
	}
	if v.IsLong() {
		return append([]Row{{KeyRow, key + ":"}}, rowsOf(TextRow, "  ", v.Text)...)
	}
	return []Row{{KeyRow, key + ": " + v.Text}}
}

// says returns what the caller says of a call as a quotation, with an indent before each further line.
func says(label, text string) []Row {
	label += ": "
	rows := rowsOf(SaysRow, strings.Repeat(" ", len(label)+1), text)
	rows[0].Text = label + "“" + rows[0].Text[len(label)+1:]
	rows[len(rows)-1].Text += "”"
	return rows
}

// Quoted returns words of somebody as a quotation behind a label, for a place that does not set them apart by itself.
func Quoted(label, text string) string {
	rows := says(label, text)
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = r.Text
	}
	return strings.Join(lines, "\n")
}

// named returns a path, or the name of a member, that begins a row. It is in quotes if it could be read as more than a name.
func named(name string) string {
	isPlain := func(r rune) bool { return !unicode.IsSpace(r) && !strings.ContainsRune(`:"“”`, r) }
	first, _ := utf8.DecodeRuneInString(name)
	if strings.IndexFunc(name, func(r rune) bool { return !isPlain(r) }) < 0 && (name == "" || unicode.IsLetter(first) || unicode.IsDigit(first) || strings.ContainsRune("/._~@", first)) {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\u{a}`, "\r", `\u{d}`, "\t", `\u{9}`).Replace(name) + `"`
}

// RowsOf returns the lines of a text that is no call.
func RowsOf(text string) []Row { return rowsOf(TextRow, "", condensed(Spelled(text))) }

// rowsOf returns the lines of a text, each behind a prefix.
func rowsOf(kind RowKind, prefix, text string) []Row {
	parts := strings.Split(text, "\n")
	rows := make([]Row, len(parts))
	for i, p := range parts {
		rows[i] = Row{kind, prefix + p}
	}
	return rows
}

// Bounds of blanks, which could push the rest of a call out of sight. Longer runs are told by their length.
const (
	maxBlankLines = 2
	maxBlanks     = 64 // in a line
)

// isBlank reports whether a line shows nothing.
func isBlank(line string) bool { return strings.TrimFunc(line, unicode.IsSpace) == "" }

// sparing returns lines in which one tells of each long run of blank ones of a mark.
func sparing(lines []Line) []Line {
	kept := lines[:0:0]
	for i := 0; i < len(lines); {
		n := 0
		for i+n < len(lines) && lines[i+n].Mark == lines[i].Mark && isBlank(lines[i+n].Text()) {
			n++
		}
		if n > maxBlankLines {
			kept = append(kept, Line{Note, []Span{{Text: blankLines(n, lines[i].Mark)}}})
			i += n
			continue
		}
		for k := range max(n, 1) {
			l := lines[i+k]
			for s := range l.Spans {
				l.Spans[s].Text = spared(l.Spans[s].Text)
			}
			kept = append(kept, l)
		}
		i += max(n, 1)
	}
	return kept
}

func blankLines(n int, mark Mark) string {
	said := fmt.Sprintf("%d blank lines", n)
	if mark == Added || mark == Removed {
		said += " are " + string(mark)
	}
	return said
}

// condensed returns a text with each long run of blank lines as one that tells how many there are.
func condensed(text string) string {
	if !strings.Contains(text, "\n") {
		return spared(text)
	}
	parts := strings.Split(text, "\n")
	lines := make([]Line, len(parts))
	for i, p := range parts {
		lines[i] = Line{Same, []Span{{Text: p}}}
	}
	lines = sparing(lines)
	parts = parts[:len(lines)]
	for i, l := range lines {
		if parts[i] = l.Text(); l.Mark == Note {
			parts[i] = "⋯ " + parts[i]
		}
	}
	return strings.Join(parts, "\n")
}

// spared returns a line with each long run of blanks as words that tell how many there are.
func spared(line string) string {
	if len(line) <= maxBlanks {
		return line
	}
	var b strings.Builder
	for line != "" {
		at := strings.IndexFunc(line, unicode.IsSpace)
		if at < 0 {
			break
		}
		b.WriteString(line[:at])
		rest := strings.TrimLeftFunc(line[at:], unicode.IsSpace)
		blanks := line[at : len(line)-len(rest)]
		if n := utf8.RuneCountInString(blanks); n > maxBlanks {
			blanks = fmt.Sprintf(" ⋯ %d blanks ⋯ ", n)
		}
		b.WriteString(blanks)
		line = rest
	}
	return b.String() + line
}

// Bounds bound a text that is shown where there is little room.
type Bounds struct {
	Lines      int // of at most Width characters each: a longer one counts as several
	Width      int
	Characters int
}

// Shorten returns the beginning of a text within bounds, and whether that is all of it. Long runs of blanks are told by
// their length.
func Shorten(text string, b Bounds) (short string, whole bool) {
	var kept []string
	lines, characters := 0, 0
	for part := range strings.SplitSeq(condensed(text), "\n") {
		n := utf8.RuneCountInString(part)
		takes := max(1, (n+b.Width-1)/b.Width)
		if lines+takes > b.Lines || characters+n > b.Characters {
			room := max(0, min(b.Characters-characters, (b.Lines-lines)*b.Width))
			kept = append(kept, clip(part, room))
			return strings.TrimRight(strings.Join(kept, "\n"), "\n"), false
		}
		lines, characters = lines+takes, characters+n+1
		kept = append(kept, part)
	}
	return strings.Join(kept, "\n"), true
}
