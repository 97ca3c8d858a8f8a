package risk

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of command lines that are read. Others are High: the parser takes long for nested ones.
const (
	maxLine      = 16 << 10 // bytes
	maxOpen      = 64       // opening brackets and backquotes
	maxArithm    = 4        // "((", which the parser tries twice
	maxScripts   = 3        // command lines within command lines
	maxStatement = 200
	maxCalls     = 400 // commands of a line, with those in scripts
	maxWithin    = 12  // words of a command that may be commands
)

// Parse parses a command line; nil if it is not understood.
func Parse(line string) *syntax.File {
	open := strings.Count(line, "(") + strings.Count(line, "{") + strings.Count(line, "[") + strings.Count(line, "`")
	if len(line) > maxLine || open > maxOpen || strings.Count(line, "((") > maxArithm {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) > maxStatement {
		return nil
	}
	return file
}

// OfLine returns the findings of a command line of a call in a folder, an absolute path; "" for one that is not known. It is
// run from start, which may be relative to that. File is the parsed line, as Parse returned it.
func OfLine(line string, file *syntax.File, folder, start string) Findings {
	a := &analysis{place: place{folder, place{folder, folder}.whole(start)}, prod: hasProduction(line) || hasProduction(folder)}
	a.file(line, file)
	return a.sorted()
}

// analysis reads a command line from left to right.
type analysis struct {
	list
	place
	prod      bool     // something is named as production
	calls     int      // so far
	deep      int      // scripts around
	within    *word    // of a script: the word of the outer line that has it; nil for the outer line
	downloads []string // files that the line has downloaded

	touching bool // what it touches is wanted
	touched  []Touch
	beyond   bool // it may touch more
}

func (a *analysis) found(level Level, mark, text string, at ...word) {
	f := Finding{Level: level, Mark: mark, Text: text}
	if a.within != nil {
		at = []word{*a.within}
	}
	if len(at) > 0 {
		f.From, f.To = at[0].from, at[len(at)-1].to
	}
	a.add(f)
}

func (a *analysis) unread(why string, at ...word) {
	a.beyond = true
	a.found(High, "Can't be read", why, at...)
}

// file reads a parsed line; nil is one that cannot be read.
func (a *analysis) file(line string, file *syntax.File) {
	if file == nil {
		a.unread("The command line is not understood: read it with care.", word{from: 0, to: len(line)})
		return
	}
	a.statements(file.Stmts, source{})
}

// script reads a command line that a word is.
func (a *analysis) script(text string, at word, in source) {
	if a.deep++; a.deep > maxScripts {
		a.unread("Command lines are within command lines.", at)
	} else {
		outer := a.within
		if outer == nil {
			a.within = &at
		}
		if file := Parse(text); file == nil {
			a.unread("A command line in it is not understood: "+short(text), at)
		} else {
			a.statements(file.Stmts, in)
		}
		a.within = outer
	}
	a.deep--
}

// source is where the input of a command comes from.
type source struct {
	is    bool // it comes from a pipe or a file, and is not that of the terminal
	net   bool // some of it was downloaded
	lists bool // it is a list of files of the folder, as find prints it
}

func (a *analysis) statements(all []*syntax.Stmt, in source) (out source) {
	for _, s := range all {
		one := a.statement(s, in)
		out.is, out.net = true, out.net || one.net
	}
	return out
}

// statement reads a statement, and tells of its output.
func (a *analysis) statement(s *syntax.Stmt, in source) (out source) {
	for _, r := range s.Redirs {
		in = a.redirect(r, in)
	}
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		a.patches(c, s.Redirs)
		out = a.call(c, in)
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			left := a.statement(c.X, in)
			left.is = true
			out = a.statement(c.Y, left)
			out.net = out.net || left.net
			break
		}
		one, other := a.statement(c.X, in), a.statement(c.Y, in)
		out.net = one.net || other.net
	case *syntax.DeclClause:
		a.assigns(c.Args)
		out = a.inner(c, in)
	case *syntax.Subshell:
		before := a.now
		out = a.inner(c, in)
		a.now = before
	default:
		out = a.inner(c, in)
	}
	for _, r := range s.Redirs {
		if isOutput(r.Op) && r.Word != nil {
			to := a.word(r.Word)
			a.names(a.place, to.text, writes, a.from(to), a.to(to))
			a.touch(to, true, false)
			if out.net {
				a.downloads = append(a.downloads, to.text)
			}
		}
	}
	return out
}

func (a *analysis) from(w word) int {
	if a.within != nil {
		return a.within.from
	}
	return w.from
}

func (a *analysis) to(w word) int {
	if a.within != nil {
		return a.within.to
	}
	return w.to
}

// inner reads the statements in a node.
func (a *analysis) inner(n syntax.Node, in source) (out source) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if s, ok := n.(*syntax.Stmt); ok {
			one := a.statement(s, in)
			out.net = out.net || one.net
			return false
		}
		return true
	})
	return out
}

func isOutput(op syntax.RedirOperator) bool {
	switch op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut:
		return true
	}
	return false
}

// redirect reads where a command's input comes from.
func (a *analysis) redirect(r *syntax.Redirect, in source) source {
	if r.Word != nil {
		in.net = a.inner(r.Word, source{}).net || in.net
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		in.is = true
		if r.Hdoc != nil {
			in.net = a.inner(r.Hdoc, source{}).net || in.net
		}
	case syntax.WordHdoc:
		in.is = true
	case syntax.RdrIn:
		in.is = true
		from := a.word(r.Word)
		a.names(a.place, from.text, reads, a.from(from), a.to(from))
		in.net = in.net || slices.Contains(a.downloads, from.text)
	}
	return in
}

// word is a word of a command.
type word struct {
	text     string // without quotes; parts that are known only as it runs are unknown
	from, to int    // in the line
	net      bool   // it has the output of a command that downloads
	made     bool   // it has the output of a command
}

// isLiteral reports whether all of the word is known.
func (w word) isLiteral() bool { return !strings.Contains(w.text, unknown) }

// word returns a word without quotes.
func (a *analysis) word(w *syntax.Word) word {
	out := word{from: int(w.Pos().Offset()), to: int(w.End().Offset())}
	var b strings.Builder
	for _, part := range w.Parts {
		a.part(&b, &out, part, false)
	}
	out.text = b.String()
	return out
}

func (a *analysis) part(b *strings.Builder, out *word, part syntax.WordPart, quoted bool) {
	switch part := part.(type) {
	case *syntax.Lit:
		text := part.Value
		if !quoted && strings.Contains(text, "{") && (strings.Contains(text, ",") || strings.Contains(text, "..")) {
			b.WriteString(unknown) // several words
			return
		}
		unescape(b, text, quoted)
	case *syntax.SglQuoted:
		if part.Dollar && strings.Contains(part.Value, `\`) {
			b.WriteString(unknown)
			return
		}
		b.WriteString(part.Value)
	case *syntax.DblQuoted:
		for _, inner := range part.Parts {
			a.part(b, out, inner, true)
		}
	case *syntax.ParamExp:
		plain := part.Exp == nil && part.Repl == nil && part.Slice == nil && part.Index == nil && !part.Excl && !part.Length && part.Param != nil
		switch {
		case plain && part.Param.Value == "HOME":
			b.WriteString("~")
		case plain && part.Param.Value == "PWD" && a.now != "":
			b.WriteString(a.now)
		default:
			b.WriteString(unknown)
		}
	case *syntax.CmdSubst, *syntax.ProcSubst:
		out.made = true
		out.net = a.inner(part, source{}).net || out.net
		b.WriteString(unknown)
	case *syntax.ArithmExp:
		a.inner(part, source{})
		b.WriteString(unknown)
	default:
		b.WriteString(unknown)
	}
}

// unescape writes a literal without the backslashes that a shell takes away.
func unescape(b *strings.Builder, text string, quoted bool) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			next := text[i+1]
			if next == '\n' {
				i++
				continue
			}
			if !quoted || strings.IndexByte("$`\"\\", next) >= 0 {
				b.WriteByte(next)
				i++
				continue
			}
		}
		b.WriteByte(text[i])
	}
}

// call reads a simple command.
func (a *analysis) call(c *syntax.CallExpr, in source) (out source) {
	a.assigns(c.Assigns)
	words := make([]word, 0, len(c.Args))
	for _, w := range c.Args {
		words = append(words, a.word(w))
	}
	for _, w := range words {
		out.net = out.net || w.net
	}
	if len(words) == 0 {
		return out
	}
	if a.calls++; a.calls > maxCalls {
		a.unread("It has too many commands.")
		return out
	}
	net, lists := a.command(words, in)
	return source{true, out.net || net, lists}
}

// assigns reads variables that are set.
func (a *analysis) assigns(all []*syntax.Assign) {
	for _, s := range all {
		if s.Value != nil {
			value := a.word(s.Value)
			if s.Name != nil {
				a.variable(s.Name.Value, value)
			}
		}
		if s.Array != nil {
			a.inner(s.Array, source{})
		}
	}
}

// variable adds what a variable means that programs look at.
func (a *analysis) variable(name string, at word) {
	switch name {
	case "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "PROMPT_COMMAND", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "PERL5OPT", "PYTHONSTARTUP", "RUBYOPT":
		a.found(High, "Runs other code", name+" has programs run other code.", at)
	case "PATH", "LD_LIBRARY_PATH", "NODE_OPTIONS", "PAGER", "GIT_PAGER", "EDITOR", "GIT_EDITOR", "VISUAL", "JAVA_TOOL_OPTIONS", "PYTHONPATH", "GIT_SEQUENCE_EDITOR":
		a.found(Notable, "Runs other code", name+" can have programs run other code.", at)
	case "PARLEY_HOME", "PARLEY_AGENT", "PARLEY_TOKEN":
		a.found(Notable, "Acts as another", name+" says for whom Parley's commands act.", at)
	}
	if strings.HasPrefix(name, "GIT_CONFIG") {
		a.found(Notable, "Runs other code", name+" can have git run other code.", at)
	}
}

// base returns the name of a program.
func base(w word) string {
	if !w.isLiteral() {
		return ""
	}
	return strings.TrimSuffix(path.Base(w.text), ".exe")
}

// hasProduction reports whether a text has a name of what is in production.
func hasProduction(text string) bool {
	text = strings.ToLower(text)
	for _, name := range []string{"production", "prod", "prd"} {
		for rest := text; ; {
			at := strings.Index(rest, name)
			if at < 0 {
				break
			}
			before, after := at == 0 || !isLetter(rest[at-1]), at+len(name) == len(rest) || !isLetter(rest[at+len(name)])
			if before && after {
				return true
			}
			rest = rest[at+len(name):]
		}
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }
