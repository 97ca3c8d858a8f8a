package web

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxRead bounds the bytes of a text of which a row shows the words: more do not fit into a line.
const maxRead = 8 * maxLine

// words returns the beginning of a Markdown text as one line without its marks, for a row. Only what the open
// message shows as a mark goes: a star or an underscore that begins or ends no span is part of the text.
func words(s string) string {
	if len(s) > maxRead {
		s = strings.ToValidUTF8(s[:maxRead], "")
	}
	if !strings.ContainsAny(s, "*_`#[>|~\\&-+.)") || entangled(s) { // it has no marks, or may take long to read
		return s
	}
	source := []byte(s)
	var b strings.Builder
	part := func() { // separates what stands in blocks of its own
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
	}
	lines := func(n ast.Node) {
		for i := range n.Lines().Len() {
			at := n.Lines().At(i)
			b.Write(at.Value(source))
		}
	}
	err := ast.Walk(markdownReader().Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		if n.Type() == ast.TypeBlock {
			part()
		}
		switch n := n.(type) {
		case *ast.ListItem:
			b.WriteString(itemMark(n))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			lines(n)
		case *extension.TableCell:
			if n.PreviousSibling() != nil {
				b.WriteString("· ")
			}
		case *ast.Text:
			if _, isCode := n.Parent().(*ast.CodeSpan); isCode {
				b.Write(n.Segment.Value(source))
			} else {
				b.Write(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(n.Segment.Value(source)))))
			}
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		}
		return ast.WalkContinue, nil
	})
	if said := strings.Join(strings.Fields(b.String()), " "); err == nil && said != "" {
		return said
	}
	return s // of marks alone, such as a rule
}

// itemMark returns what stands before an item of a list.
func itemMark(n *ast.ListItem) string {
	list, ok := n.Parent().(*ast.List)
	if !ok || !list.IsOrdered() {
		return "• "
	}
	at := list.Start
	for before := n.PreviousSibling(); before != nil; before = before.PreviousSibling() {
		at++
	}
	return strconv.Itoa(at) + ". "
}
