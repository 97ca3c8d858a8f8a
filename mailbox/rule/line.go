package rule

import (
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// maxLine bounds the command lines that are parsed, in bytes.
const maxLine = 4 << 10

// parseLine returns the simple commands of a command line, each as its words. It reports whether the whole line is
// understood: it has only literal words, |, &&, || and ;, and Bash and a POSIX shell parse it alike.
func parseLine(line string) (commands [][]string, ok bool) {
	if len(line) > maxLine || strings.ContainsFunc(line, isOdd) || !isPlain(line) {
		return nil, false
	}
	commands, ok = parseAs(syntax.LangBash, line)
	if !ok {
		return nil, false
	}
	posix, ok := parseAs(syntax.LangPOSIX, line)
	return commands, ok && slices.EqualFunc(commands, posix, slices.Equal)
}

// isOdd reports whether a line with a character is not understood. The only blanks are space and tab.
func isOdd(r rune) bool {
	return r != ' ' && r != '\t' && (!unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar)
}

// isPlain reports whether a line has, outside of quotes, only the characters of plain words and of operators. It keeps
// nested syntax from the parser, which would take long.
func isPlain(line string) bool {
	var quote rune
	for _, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r > unicode.MaxASCII || !isAlnum(byte(r)) && !strings.ContainsRune("_@%+=:,./~^-|&; \t", r):
			return false
		}
	}
	return quote == 0
}

func parseAs(lang syntax.LangVariant, line string) ([][]string, bool) {
	parser := syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true))
	file, err := parser.Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) == 0 || len(file.Last) > 0 {
		return nil, false
	}
	var commands [][]string
	for _, s := range file.Stmts {
		if !appendCommands(&commands, s) {
			return nil, false
		}
	}
	return commands, true
}

// appendCommands appends the simple commands of a statement. It reports whether the statement has nothing else.
func appendCommands(commands *[][]string, s *syntax.Stmt) bool {
	if s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Redirs) > 0 || len(s.Comments) > 0 {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		joins := c.Op == syntax.AndStmt || c.Op == syntax.OrStmt || c.Op == syntax.Pipe
		return joins && appendCommands(commands, c.X) && appendCommands(commands, c.Y)
	case *syntax.CallExpr:
		if len(c.Assigns) > 0 || len(c.Args) == 0 {
			return false
		}
		words := make([]string, len(c.Args))
		for i, w := range c.Args {
			text, ok := literal(w)
			if !ok {
				return false
			}
			words[i] = text
		}
		*commands = append(*commands, words)
		return true
	}
	return false
}

// literal returns the text of a word that every shell takes literally. The word is quoted as a whole or not at all.
func literal(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		return p.Value, isBare(p.Value)
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	case *syntax.DblQuoted:
		switch {
		case p.Dollar || len(p.Parts) > 1:
			return "", false
		case len(p.Parts) == 0:
			return "", true
		}
		lit, ok := p.Parts[0].(*syntax.Lit)
		return litValue(lit), ok && !strings.ContainsAny(lit.Value, "\\!$`")
	}
	return "", false
}

func litValue(l *syntax.Lit) string {
	if l == nil {
		return ""
	}
	return l.Value
}

// isBare reports whether every shell takes an unquoted word literally.
func isBare(word string) bool {
	for i := range len(word) {
		c := word[i]
		switch {
		case isAlnum(c), strings.IndexByte("_@%+:,./-", c) >= 0:
		case c == '=' && i > 0:
		case (c == '~' || c == '^') && i > 0 && (isAlnum(word[i-1]) || word[i-1] == '~' || word[i-1] == '^'):
		default:
			return false
		}
	}
	return word != ""
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
