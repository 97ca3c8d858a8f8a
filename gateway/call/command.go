package call

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of command lines that are parsed. Others are shown as they are: the parser takes long for nested ones.
const (
	maxCommand   = 16 << 10 // bytes
	maxOpen      = 64       // opening brackets and backquotes
	maxArithm    = 4        // "((", which the parser tries twice
	maxScripts   = 3        // command lines within command lines
	maxStatement = 200
)

// parsed is a command line in parts.
type parsed struct {
	lines    []Line
	file     *syntax.File // nil if the line is not understood
	commands [][]string   // the literal words of each command, also of nested ones; "" for a word that is not literal
	targets  []string     // of redirections
	piped    []string     // programs that read from a pipe
}

// parse reads a command line. Its lines are the whole text, parted before each |, &&, || and behind each ;.
func parse(line string) *parsed {
	p := &parsed{}
	p.file = fileOf(line)
	var cuts []int
	if p.file != nil {
		for i, s := range p.file.Stmts {
			if i > 0 {
				cuts = append(cuts, int(s.Pos().Offset()))
			}
			cuts = cutsOf(cuts, s, 0)
		}
	}
	from := 0
	for _, at := range append(cuts, len(line)) {
		if at < from || at > len(line) {
			continue // a text that the parser places oddly stays in one part
		}
		if text := strings.TrimSpace(line[from:at]); text != "" {
			p.lines = append(p.lines, linesOf(Same, text)...)
		}
		from = at
	}
	if p.file != nil {
		p.collect(p.file, 0)
	}
	return p
}

// fileOf parses a command line; nil if it is not understood.
func fileOf(line string) *syntax.File {
	open := strings.Count(line, "(") + strings.Count(line, "{") + strings.Count(line, "[") + strings.Count(line, "`")
	if len(line) > maxCommand || open > maxOpen || strings.Count(line, "((") > maxArithm {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) > maxStatement {
		return nil
	}
	return file
}

// cutsOf appends the places of the operators of a statement, from left to right.
func cutsOf(cuts []int, s *syntax.Stmt, deep int) []int {
	b, ok := s.Cmd.(*syntax.BinaryCmd)
	if !ok || deep > maxStatement {
		return cuts
	}
	cuts = cutsOf(cuts, b.X, deep+1)
	return cutsOf(append(cuts, int(b.OpPos.Offset())), b.Y, deep+1)
}

// collect records the commands, targets and pipes of a file, and of the literal scripts of shells in it.
func (p *parsed) collect(file *syntax.File, deep int) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				if c, ok := n.Y.Cmd.(*syntax.CallExpr); ok {
					p.piped = append(p.piped, program(wordsOf(c)))
				}
			}
		case *syntax.Redirect:
			if n.Word != nil && n.Hdoc == nil && n.Op != syntax.DplIn && n.Op != syntax.DplOut {
				p.targets = append(p.targets, wordOf(n.Word))
			}
		case *syntax.CallExpr:
			words := wordsOf(n)
			p.commands = append(p.commands, words)
			if script := scriptOf(unwrapped(words)); script != "" && deep < maxScripts {
				if inner := fileOf(script); inner != nil {
					p.collect(inner, deep+1)
				}
			}
		}
		return true
	})
}

// wordsOf returns the words of a command; "" for one that is not literal.
func wordsOf(c *syntax.CallExpr) []string {
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		words[i] = wordOf(w)
	}
	return words
}

// wordOf returns the text of a literal word, without quotes; "" for any other.
func wordOf(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return ""
				}
				b.WriteString(lit.Value)
			}
		default:
			return ""
		}
	}
	return b.String()
}

// unwrapped returns the words from the program on that wrappers such as sudo and env run.
func unwrapped(words []string) []string {
	for len(words) > 1 && isWrapper(path.Base(words[0])) {
		words = words[1:]
		for len(words) > 1 && (strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=") || strings.Trim(words[0], "0123456789smhd.") == "") {
			if len(words) > 2 && len(words[0]) == 2 && strings.Contains("ugpCDRTUI", words[0][1:]) {
				words = words[1:] // the value of the option
			}
			words = words[1:]
		}
	}
	return words
}

func isWrapper(name string) bool {
	switch name {
	case "sudo", "doas", "env", "nohup", "time", "nice", "xargs", "command", "exec", "timeout", "setsid", "stdbuf":
		return true
	}
	return false
}

// program returns the name of the program that words run; "" if it is not known.
func program(words []string) string {
	if words = unwrapped(words); len(words) == 0 || words[0] == "" {
		return ""
	}
	return path.Base(words[0])
}

// scriptOf returns the command line that a shell is given as an argument.
func scriptOf(words []string) string {
	if len(words) > 2 && isShell(words[0]) && (words[1] == "-c" || words[1] == "-lc") {
		return words[2]
	}
	return ""
}

func isShell(name string) bool {
	switch path.Base(name) {
	case "sh", "bash", "zsh", "dash", "ksh", "fish":
		return true
	}
	return false
}
