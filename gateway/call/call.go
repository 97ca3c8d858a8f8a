package call

import (
	"fmt"
	"path"
	"strings"

	"parley"
	"parley/gateway/call/risk"
)

// Bounds of what is read and shown.
const (
	maxInput   = 1 << 20 // bytes; a longer input is shown as text
	maxNesting = 64      // of an input; a deeper one is shown as text
	maxLines   = 10_000  // in all blocks
	maxValues  = 500
	maxPhrase  = 120 // characters
)

// Reading is a call as it is shown.
type Reading struct {
	Verb    string // run, edit, write, read or use, or of a resource list or request: behind "wants to"
	Object  string // of the verb: a command line, a path or a tool
	Line    string // the call in one line: "Edit checkout.go +9 −4"
	Blocks  []Block
	Risks   risk.Findings
	LeftOut int  // lines and values that the blocks do not show
	Spelled bool // some of it is spelled out, as Spelled does

	call *parley.Permission
}

// Kind is the kind of a block.
type Kind string

// The kinds of blocks.
const (
	Command Kind = "command" // a command line, in parts
	Diff    Kind = "diff"    // a changed text
	File    Kind = "file"    // a written text
	Values  Kind = "values"  // keys with their values
)

// Block is a part of a call.
type Block struct {
	Kind           Kind
	Path           string   // of a diff or a file
	Notes          []string // on how a command is run, and how an edit is made
	Says           string   // what the caller says of a command, in its own words; "" for nothing
	Added, Removed int      // lines
	Lines          []Line
	Values         []Value
}

// Mark tells what a line is.
type Mark string

// The marks of lines.
const (
	Same    Mark = "same"    // unchanged, or of a file or a command
	Added   Mark = "added"   // by a change
	Removed Mark = "removed" // by a change
	Skip    Mark = "skip"    // unchanged lines are left out here
	Note    Mark = "note"    // about the lines
)

// Line is a line of a block. Its text is that of its spans.
type Line struct {
	Mark  Mark
	Spans []Span
}

// Text returns the text of a line.
func (l Line) Text() string {
	var b strings.Builder
	for _, s := range l.Spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Span is a part of a line.
type Span struct {
	Text    string
	Changed bool // against the line that it replaces or that replaces it

	Risk risk.Level // of the words of a command
}

// Value is a key of an input with its value. The text of a list or an object is JSON.
type Value struct{ Key, Text string }

// IsLong reports whether a value is better shown below its key, and folded.
func (v Value) IsLong() bool { return len(v.Text) > maxPhrase || strings.Contains(v.Text, "\n") }

// Size returns the number of lines of a block.
func (b Block) Size() int {
	n := len(b.Lines)
	for _, v := range b.Values {
		n += 1 + strings.Count(v.Text, "\n")
	}
	return n
}

// Read reads the call of a permission. An input of another client may be any text.
func Read(c *parley.Permission) Reading {
	r := &reader{call: c, left: maxLines, risks: risk.OfCall(c.Folder)}
	switch members, ok := membersOf(c.Input); {
	case !ok:
		r.risks.Unread("The input is not understood: read it with care.")
		r.add(Block{Kind: Values, Values: []Value{{Text: pretty([]byte(c.Input))}}})
	case c.Use != nil:
		r.readUse(members)
	default:
		r.read(members)
	}
	return r.reading()
}

// reader collects the blocks of a call.
type reader struct {
	call    *parley.Permission
	blocks  []Block
	risks   *risk.Call
	left    int // lines that may still be shown
	leftOut int
	spelled bool

	verb, object string // of the use of a resource
}

// add appends a block, and leaves out what is over the bounds. Long runs of blanks are told by their length.
func (r *reader) add(b Block) {
	b.Lines = sparing(b.Lines)
	of := Spelled
	if b.Kind == Command {
		of = spelledExactly
	}
	for i, l := range b.Lines {
		text := l.Text() // a word may be in several spans
		if told := r.spell(text, of); told != text {
			whole := Span{Text: told}
			for _, s := range l.Spans {
				whole.Risk = max(whole.Risk, s.Risk)
			}
			b.Lines[i].Spans = []Span{whole}
		}
	}
	for i, n := range b.Notes {
		b.Notes[i] = condensed(r.spell(n, Spelled))
	}
	r.spelled = r.spelled || breaks(b.Path)
	b.Path, b.Says = r.spell(b.Path, spelledExactly), condensed(r.spell(b.Says, Spelled))
	for i, v := range b.Values {
		of := Spelled
		if isFileKey(v.Key) || risk.IsAddress(v.Text) {
			of = spelledExactly
		}
		r.spelled = r.spelled || breaks(v.Key) || isFileKey(v.Key) && breaks(v.Text)
		b.Values[i] = Value{r.spell(v.Key, spelledExactly), condensed(r.spell(v.Text, of))}
	}
	if over := len(b.Lines) - r.left; over > 0 {
		b.Lines, r.leftOut = b.Lines[:r.left], r.leftOut+over
	}
	r.left -= len(b.Lines)
	if over := len(b.Values) - maxValues; over > 0 {
		b.Values, r.leftOut = b.Values[:maxValues], r.leftOut+over
	}
	r.blocks = append(r.blocks, b)
}

// breaks reports whether a name has blanks that its row spells out, since they would end the row, or move what is behind them.
func breaks(name string) bool { return strings.ContainsAny(name, "\n\r\t") }

// spell returns a text as it is spelled out, and notes whether that is another.
func (r *reader) spell(text string, of func(string) string) string {
	told := of(text)
	r.spelled = r.spelled || told != text
	return told
}

// reading returns what was read, in words.
func (r *reader) reading() Reading {
	out := Reading{Blocks: r.blocks, Risks: r.findings(), LeftOut: r.leftOut, Spelled: r.spelled, call: r.call}
	if r.verb != "" {
		out.Verb, out.Object, out.Line = r.verb, r.object, strings.ToUpper(r.verb[:1])+r.verb[1:]+" "+r.object
		return clipped(out)
	}
	out.Verb, out.Object = "use", r.tool()
	for _, b := range r.blocks {
		if b.Kind != Values {
			return r.described(out, b)
		}
	}
	out.Line = "Use " + out.Object
	var pairs []string
	for _, b := range r.blocks {
		for _, v := range b.Values {
			if isFileKey(v.Key) && len(b.Values) <= 3 && r.call.Tool == "Read" {
				out.Verb, out.Object, out.Line = "read", named(r.path(v.Text)), "Read "+named(path.Base(v.Text))
				return clipped(out)
			}
			if text := strings.TrimPrefix(named(v.Key)+": "+oneLine(v.Text), ": "); len(pairs) < 8 && text != "{}" {
				pairs = append(pairs, text)
			}
		}
	}
	if len(pairs) > 0 {
		out.Line += " " + strings.Join(pairs, ", ")
	}
	return clipped(out)
}

// findings returns what is risky, as it is shown.
func (r *reader) findings() risk.Findings {
	all := r.risks.Findings()
	for i, f := range all {
		all[i].Text = clip(Spelled(f.Text), 2*maxPhrase)
	}
	return all
}

// described describes a call by its first block that is no list of values.
func (r *reader) described(out Reading, first Block) Reading {
	if first.Kind == Command {
		var lines []string
		for _, l := range first.Lines {
			lines = append(lines, l.Text())
			if len(lines) == 8 {
				break
			}
		}
		out.Verb, out.Object = "run", oneLine(strings.Join(lines, " "))
		out.Line = "Run " + out.Object
		return clipped(out)
	}
	added, removed, files := 0, 0, map[string]bool{}
	for _, b := range r.blocks {
		if b.Kind == Diff || b.Kind == File {
			added, removed, files[b.Path] = added+b.Added, removed+b.Removed, true
		}
	}
	verb, name := "Edit", named(path.Base(first.Path))
	if out.Verb = "edit"; first.Kind == File {
		verb, out.Verb = "Write", "write"
	}
	out.Object = named(r.path(first.Path))
	if n := len(files) - 1; n > 0 {
		out.Object = fmt.Sprintf("%s and %d more", out.Object, n)
		name = fmt.Sprintf("%s and %d more", name, n)
	}
	out.Line = fmt.Sprintf("%s %s +%d", verb, name, added)
	if first.Kind == Diff {
		out.Line += fmt.Sprintf(" −%d", removed)
	}
	return clipped(out)
}

// clipped returns a reading with its phrases on one line and within bounds.
func clipped(r Reading) Reading {
	r.Object, r.Line = clip(Spelled(oneLine(r.Object)), maxPhrase), clip(Spelled(oneLine(r.Line)), maxPhrase)
	return r
}

// oneLine returns the beginning of a text with each run of blanks as one space.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text[:min(len(text), 8*maxPhrase)]), " ")
}

// clip returns a text of at most n characters, with an ellipsis for more.
func clip(text string, n int) string {
	at := 0
	for i := range text {
		if at++; at > n {
			return text[:i] + "…"
		}
	}
	return text
}

// tool returns the name of the tool in words. An MCP tool is named with its server.
func (r *reader) tool() string {
	if rest, ok := strings.CutPrefix(r.call.Tool, "mcp__"); ok {
		if server, name, ok := strings.Cut(rest, "__"); ok && server != "" && name != "" {
			return server + " · " + name
		}
	}
	return r.call.Tool
}

// path returns a path as it is said in the folder of the call.
func (r *reader) path(name string) string {
	if rel, ok := strings.CutPrefix(name, r.call.Folder+"/"); ok && r.call.Folder != "" && rel != "" {
		return rel
	}
	return name
}
