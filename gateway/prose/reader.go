package prose

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// MaxNested bounds the blocks and spans inside one another.
const MaxNested = 24

// maxMarks bounds the characters of a text that may begin or end a span.
const maxMarks = 2000

// Reader reads no HTML, no links without a text and no reference links. A long address with many short references
// would make a page of any size.
var Reader = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(
				util.Prioritized(parser.NewThematicBreakParser(), 200),
				util.Prioritized(parser.NewListParser(), 300),
				util.Prioritized(parser.NewListItemParser(), 400),
				util.Prioritized(parser.NewCodeBlockParser(), 500),
				util.Prioritized(parser.NewATXHeadingParser(), 600),
				util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
				util.Prioritized(parser.NewBlockquoteParser(), 800),
				util.Prioritized(parser.NewParagraphParser(), 1000),
			),
			parser.WithInlineParsers(
				util.Prioritized(parser.NewCodeSpanParser(), 100),
				util.Prioritized(parser.NewLinkParser(), 200),
				util.Prioritized(parser.NewEmphasisParser(), 500),
			),
		)),
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
		goldmark.WithRendererOptions(html.WithXHTML()),
	)
})

// IsEntangled reports whether a text may take long to read. The reader may look at each mark again for each other mark.
func IsEntangled(s string) bool {
	marks := 0
	for line := range strings.Lines(s) {
		nested := 0
		opening := true // of blocks, which begin only at the start of a line
		for _, r := range line {
			if strings.ContainsRune("[]*_`!|<(\\", r) {
				marks++
			}
			opening = opening && strings.ContainsRune(">-+*.) \t0123456789", r)
			if opening && strings.ContainsRune(">-+*.)", r) {
				nested++
			}
		}
		// A line of dashes is a rule or part of a table. It opens no block.
		if nested > MaxNested && strings.Trim(line, "-*| \t\r\n") != "" || marks > maxMarks {
			return true
		}
	}
	return false
}
