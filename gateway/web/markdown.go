package web

import (
	"bytes"
	"html/template"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/idna"

	"parley/gateway/sanitize"
)

// The text with which an agent explains a form is Markdown without HTML: a tag is shown as it was typed. The reader sees
// every character of the text, and the host of every link.

const (
	maxMarkdown = 16 << 10 // bytes; a longer text is shown as it was typed
	maxNested   = 24       // blocks and spans inside one another
	maxMarks    = 2000     // characters of a line that may begin or end a span
)

// markdown renders text of other agents as HTML. It shows a text that is too long or too entangled as it was typed.
func markdown(s string) template.HTML {
	s = sanitize.Lines(s)
	if len(s) > maxMarkdown || entangled(s) {
		return asTyped(s)
	}
	source := []byte(s)
	tree := markdownReader().Parser().Parse(text.NewReader(source))
	if !tame(tree) {
		return asTyped(s)
	}
	var drawn bytes.Buffer
	if err := markdownReader().Renderer().Render(&drawn, source, tree); err != nil {
		return asTyped(s)
	}
	// An entity may have restored a character that sanitize.Lines removed.
	clean := sanitize.Lines(markdownPolicy().Sanitize(drawn.String()))
	return template.HTML(compact(clean))
}

func asTyped(s string) template.HTML {
	return template.HTML(template.HTMLEscapeString(s))
}

// markdownReader reads no HTML, no links without a text and no reference links. A long address with many short references
// would make a page of any size.
var markdownReader = sync.OnceValue(func() goldmark.Markdown {
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

// markdownPolicy lists the elements and attributes that are allowed. It holds even if markdownReader lets others through.
var markdownPolicy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "em", "strong", "code", "pre", "ul", "ol", "li", "blockquote", "bdi",
		"h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https")
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true) // and noopener with it
	return p
})

// tame changes a tree for a page. It replaces pictures with their text, adds the host to links, and lowers headings below
// those of the page. It reports whether the tree is shallow enough to draw.
func tame(tree ast.Node) bool {
	var found []ast.Node
	depth, deepest := 0, 0
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		depth++
		deepest = max(deepest, depth)
		switch n := n.(type) {
		case *ast.Heading:
			n.Level = min(n.Level+2, 6)
		case *ast.Link, *ast.Image:
			found = append(found, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range found {
		link, isLink := n.(*ast.Link)
		if !isLink {
			unwrap(n)
			continue
		}
		there, host, ok := destination(string(link.Destination))
		if !ok {
			unwrap(n)
			continue
		}
		link.Destination, link.Title = []byte(there), nil
		shown := ast.NewString([]byte(" <bdi>(" + template.HTMLEscapeString(host) + ")</bdi>"))
		shown.SetCode(true) // it is HTML already
		link.Parent().InsertAfter(link.Parent(), link, shown)
	}
	return err == nil && deepest <= maxNested
}

// unwrap replaces a node with its children.
func unwrap(n ast.Node) {
	parent := n.Parent()
	for c := n.FirstChild(); c != nil; c = n.FirstChild() {
		parent.InsertBefore(parent, n, c)
	}
	parent.RemoveChild(parent, n)
}

// destination returns the address of a link in a form that all readers read alike, and its host in ASCII. It refuses
// addresses that are not of the web, and those with a user name.
func destination(written string) (there, host string, ok bool) {
	u, err := url.Parse(string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations([]byte(written))))))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" {
		return "", "", false
	}
	name := u.Hostname()
	if net.ParseIP(name) == nil {
		if name, err = idna.Lookup.ToASCII(name); err != nil || name == "" || numeric(name) {
			return "", "", false
		}
	}
	switch port := u.Port(); {
	case port != "":
		u.Host = net.JoinHostPort(name, port)
	case strings.Contains(name, ":"):
		u.Host = "[" + name + "]"
	default:
		u.Host = name
	}
	return u.String(), u.Host, true
}

// numeric reports whether browsers read a name as an IP address. They know more spellings of one than people do.
func numeric(name string) bool {
	name = strings.TrimSuffix(name, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
}

// entangled reports whether a text may take long to read. The reader may look at each mark again for each other mark.
func entangled(s string) bool {
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
		if nested > maxNested && strings.Trim(line, "-*| \t\r\n") != "" || marks > maxMarks {
			return true
		}
	}
	return false
}

var (
	blockEdge = regexp.MustCompile(`(</?(?:p|ul|li|blockquote|h[3-6]|pre|table|thead|tbody|tr|th|td)>|</?ol(?: start="\d+")?>|<[bh]r/>)\n+`)
	oneBlock  = regexp.MustCompile(`^<p>([^\n]*(?:\n[^\n]+)*)</p>$`)
)

// compact removes line breaks between blocks, because the page shows them. It unwraps a single paragraph.
func compact(s string) string {
	s = strings.TrimSpace(blockEdge.ReplaceAllString(s, "$1"))
	if m := oneBlock.FindStringSubmatch(s); m != nil && !strings.Contains(m[1], "<p>") {
		return m[1]
	}
	return strings.ReplaceAll(s, "</p><p>", "</p>\n<p>")
}
