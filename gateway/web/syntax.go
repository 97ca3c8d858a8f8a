package web

import (
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"

	"parley/gateway/call"
	"parley/gateway/call/risk"
)

// The colours of code are classes: a page may have no style of its own. The grammars are the files in assets/lexers, of
// which each is read when a file of its kind is first shown. That of Go is below.

// Bounds of what is coloured. A longer text is shown without colours.
const (
	maxColoured     = 64 << 10               // bytes of a block
	maxColouredLine = 2_000                  // bytes of a line
	maxColouring    = 100 * time.Millisecond // of one version of a block: a grammar may take long for a text that was made for that
)

// piece is a part of a line that is drawn in one way.
type piece struct {
	Text    string
	Changed bool
	Class   string // of its colour; "" for none
}

// grammars are the files of grammars, by the end of a file's name.
var grammars = map[string]string{
	".sh": "bash", ".bash": "bash", ".c": "c", ".h": "c", ".css": "css", ".java": "java", ".js": "javascript", ".mjs": "javascript", ".jsx": "javascript",
	".json": "json", ".kt": "kotlin", ".php": "php", ".py": "python", ".rb": "ruby", ".rs": "rust", ".sql": "sql", ".swift": "swift", ".toml": "toml",
	".ts": "typescript", ".tsx": "typescript", ".yaml": "yaml", ".yml": "yaml", ".tf": "terraform", ".hcl": "terraform", ".go": "go",
}

// lexers are the grammars that were read, by name; nil for one that cannot be.
var lexers sync.Map

// lexerOf returns the lexer for a file, or nil for none.
func lexerOf(file string) chroma.Lexer {
	name, known := grammars[path.Ext(file)]
	if !known {
		return nil
	}
	read, known := lexers.Load(name)
	if !known {
		read, _ = lexers.LoadOrStore(name, readGrammar(name))
	}
	lexer, _ := read.(chroma.Lexer)
	return lexer
}

// readGrammar reads a grammar. It returns nil for one that is damaged: code is then shown without colours.
func readGrammar(name string) chroma.Lexer {
	if name == "go" {
		return chroma.Coalesce(goLexer())
	}
	files, err := fs.Sub(embedded, "assets/lexers")
	if err != nil {
		return nil
	}
	lexer, err := chroma.NewXMLLexer(files, name+".xml")
	if err != nil {
		return nil
	}
	return chroma.Coalesce(lexer)
}

// classOf returns the class of a kind of token: of the five that the page has colours for.
func classOf(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Comment):
		return "rm"
	case t.InCategory(chroma.Keyword):
		return "k"
	case t.InSubCategory(chroma.LiteralString):
		return "st"
	case t.InSubCategory(chroma.LiteralNumber):
		return "nm"
	case t == chroma.NameFunction, t == chroma.NameBuiltin, t == chroma.NameClass, t == chroma.NameTag:
		return "fn"
	}
	return ""
}

// coloured returns the lines of a block in pieces. The text of a line is that of its pieces, whatever the grammar makes of it.
func coloured(b call.Block) [][]piece {
	all := make([][]piece, len(b.Lines))
	for i, l := range b.Lines {
		for _, s := range l.Spans {
			all[i] = append(all[i], piece{Text: s.Text, Changed: s.Changed, Class: map[risk.Level]string{risk.High: "hot", risk.Notable: "heed"}[s.Risk]})
		}
	}
	lexer := lexerOf(b.Path)
	if lexer == nil || sizeOf(b.Lines) > maxColoured {
		return all
	}
	for _, side := range []call.Mark{call.Removed, call.Added} {
		var lines []int
		for i, l := range b.Lines {
			if l.Mark == side || l.Mark == call.Same {
				lines = append(lines, i)
			}
		}
		colour(lexer, b.Lines, lines, all)
	}
	return all
}

// colour sets the colours of some lines of a block, which follow each other in one version of its file.
func colour(lexer chroma.Lexer, lines []call.Line, which []int, all [][]piece) {
	var text strings.Builder
	for _, i := range which {
		t := lines[i].Text()
		if len(t) > maxColouredLine {
			return
		}
		text.WriteString(t + "\n")
	}
	next, err := lexer.Tokenise(nil, text.String())
	if err != nil {
		return
	}
	var tokens []chroma.Token
	for end, t := time.Now().Add(maxColouring), next(); t != chroma.EOF; t = next() {
		if tokens = append(tokens, t); time.Now().After(end) {
			return
		}
	}
	rows := chroma.SplitTokensIntoLines(tokens)
	for at, i := range which[:min(len(which), len(rows))] {
		if own := split(lines[i], rows[at]); own != nil {
			all[i] = own
		}
	}
}

// split returns a line in pieces, each within one span of the line and one token. It returns nil if the tokens are of another
// text.
func split(l call.Line, tokens []chroma.Token) []piece {
	rest := l.Text()
	var own []piece
	spans := append([]call.Span(nil), l.Spans...)
	for _, t := range tokens {
		value := strings.TrimSuffix(t.Value, "\n")
		if !strings.HasPrefix(rest, value) {
			return nil
		}
		rest = rest[len(value):]
		for value != "" {
			for spans[0].Text == "" {
				spans = spans[1:]
			}
			n := min(len(value), len(spans[0].Text))
			own = append(own, piece{Text: value[:n], Changed: spans[0].Changed, Class: classOf(t.Type)})
			value, spans[0].Text = value[n:], spans[0].Text[n:]
		}
	}
	if rest != "" {
		return nil
	}
	return own
}

// goLexer returns the grammar of Go.
var goLexer = sync.OnceValue(func() chroma.Lexer {
	return chroma.MustNewLexer(&chroma.Config{Name: "Go"}, func() chroma.Rules {
		return chroma.Rules{"root": {
			{Pattern: `\s+`, Type: chroma.TextWhitespace},
			{Pattern: `//[^\n]*`, Type: chroma.CommentSingle},
			{Pattern: `/\*(.|\n)*?\*/`, Type: chroma.CommentMultiline},
			{Pattern: "`[^`]*`", Type: chroma.LiteralString},
			{Pattern: `"(\\\\|\\"|[^"\n])*"`, Type: chroma.LiteralString},
			{Pattern: `'(\\.|[^'\\\n])+'`, Type: chroma.LiteralStringChar},
			{Pattern: `(break|case|chan|const|continue|default|defer|else|fallthrough|for|func|go|goto|if|import|interface|map|package|range|return|select|struct|switch|type|var|true|false|nil|iota)\b`, Type: chroma.Keyword},
			{Pattern: `0[xXbBoO][0-9a-fA-F_]+|\d[\d_]*(\.\d*)?([eE][+-]?\d+)?i?`, Type: chroma.LiteralNumber},
			{Pattern: `[\p{L}_][\p{L}\p{N}_]*(?=\()`, Type: chroma.NameFunction},
			{Pattern: `[\p{L}_][\p{L}\p{N}_]*`, Type: chroma.Name},
			{Pattern: `.`, Type: chroma.Text},
		}}
	})
})
