package call

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"parley/gateway/call/risk"
)

// maxCuts bounds the parts of a statement.
const maxCuts = 200

// parse reads a command line of a call in a folder that is run in another or the same. Its lines are the whole text, parted before each |, &&, || and behind
// each ;, with what is risky marked.
func parse(line, folder, start string) ([]Line, risk.Findings) {
	var cuts []int
	file := risk.Parse(line)
	if file != nil {
		for i, s := range file.Stmts {
			if i > 0 {
				cuts = append(cuts, int(s.Pos().Offset()))
			}
			cuts = cutsOf(cuts, s, 0)
		}
	}
	found := risk.OfLine(line, file, folder, start)
	var lines []Line
	from := 0
	for _, at := range append(cuts, len(line)) {
		if at < from || at > len(line) {
			continue // a text that the parser places oddly stays in one part
		}
		lines = append(lines, heeded(line, from, at, found)...)
		from = at
	}
	return lines, found
}

// heeded returns the lines of a part of a command line, without the blanks around it. The words of findings with a mark are
// spans of their own.
func heeded(line string, from, to int, found risk.Findings) (lines []Line) {
	text := strings.TrimSpace(line[from:to])
	if text == "" {
		return nil
	}
	from += strings.Index(line[from:to], text)
	for part := range strings.SplitSeq(text, "\n") {
		lines = append(lines, Line{Same, spansOf(part, from, found)})
		from += len(part) + 1
	}
	return lines
}

// spansOf returns the spans of a text that begins at a place of a command line.
func spansOf(text string, from int, found risk.Findings) (spans []Span) {
	levels := make([]risk.Level, len(text))
	for _, f := range found {
		for i := max(f.From-from, 0); i < min(f.To-from, len(text)) && f.Level > risk.None; i++ {
			levels[i] = max(levels[i], f.Level)
		}
	}
	for i := 0; i < len(text); {
		n := i + 1
		for n < len(text) && levels[n] == levels[i] {
			n++
		}
		spans = append(spans, Span{Text: text[i:n], Risk: levels[i]})
		i = n
	}
	if spans == nil {
		spans = []Span{{}}
	}
	return spans
}

// cutsOf appends the places of the operators of a statement, from left to right.
func cutsOf(cuts []int, s *syntax.Stmt, deep int) []int {
	b, ok := s.Cmd.(*syntax.BinaryCmd)
	if !ok || deep > maxCuts {
		return cuts
	}
	cuts = cutsOf(cuts, b.X, deep+1)
	return cutsOf(append(cuts, int(b.OpPos.Offset())), b.Y, deep+1)
}

// isShell reports whether a program is a shell that is given command lines.
func isShell(name string) bool {
	switch path.Base(name) {
	case "sh", "bash", "zsh", "dash", "ksh", "fish":
		return true
	}
	return false
}
