package web

import (
	"bytes"
	"html/template"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

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

// What agents write to explain a form is Markdown. None of it is HTML: a tag stands as it was typed. Whoever reads it
// sees every character that there is, and of every link where it leads.

const (
	maxMarkdown = 16 << 10 // bytes; what is longer stands as it was typed
	maxNested   = 24       // blocks and spans within each other
	maxMarks    = 2000     // characters that may begin or end something within a line
)

// markdown renders text from others. What is too long or too entangled for it stands as it was typed.
func markdown(s string) template.HTML {
	s = sanitize.Lines(s)
	if len(s) > maxMarkdown || entangled(s) {
		return asTyped(s)
	}
	source := []byte(s)
	tree := markdownReader.Parser().Parse(text.NewReader(source))
	if !tame(tree) {
		return asTyped(s)
	}
	var drawn bytes.Buffer
	if err := markdownReader.Renderer().Render(&drawn, source, tree); err != nil {
		return asTyped(s)
	}
	// An entity may have brought back what sanitize.Lines took away.
	clean := sanitize.Lines(markdownPolicy.Sanitize(drawn.String()))
	return template.HTML(compact(clean))
}

func asTyped(s string) template.HTML {
	return template.HTML(template.HTMLEscapeString(s))
}

// markdownReader knows neither HTML, nor links without a text of their own, nor links defined elsewhere: a long
// address used by many short references would make a page of any size.
var markdownReader = goldmark.New(
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

// markdownPolicy is the second lock: nothing but this gets through, whatever the first one missed.
var markdownPolicy = func() *bluemonday.Policy {
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
}()

// tame makes a tree what a page shows: pictures are their words, links say their host, headings stand below those of
// the page. It reports whether the tree is shallow enough to draw.
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

// unwrap puts what a node has in its place.
func unwrap(n ast.Node) {
	parent := n.Parent()
	for c := n.FirstChild(); c != nil; c = n.FirstChild() {
		parent.InsertBefore(parent, n, c)
	}
	parent.RemoveChild(parent, n)
}

// destination is where a link leads, written so that no two readers of it disagree, and its host as the network knows
// it. Only the web is a destination, and nobody signs in by a link.
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

// numeric reports whether browsers take a name for an address: they read more spellings of one than people do.
func numeric(name string) bool {
	name = strings.TrimSuffix(name, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
}

// entangled reports whether reading a text might take long: each mark may be looked at again for each other.
func entangled(s string) bool {
	marks := 0
	for line := range strings.Lines(s) {
		nested := 0
		opening := true // of blocks, which only stand at the start of a line
		for _, r := range line {
			if strings.ContainsRune("[]*_`!|<(\\", r) {
				marks++
			}
			opening = opening && strings.ContainsRune(">-+*.) \t0123456789", r)
			if opening && strings.ContainsRune(">-+*.)", r) {
				nested++
			}
		}
		// A line of dashes is a rule, or a table's: it opens nothing.
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

// compact leaves only such line breaks as are to be seen, for the page keeps them. A paragraph that is alone is a
// line like any other.
func compact(s string) string {
	s = strings.TrimSpace(blockEdge.ReplaceAllString(s, "$1"))
	if m := oneBlock.FindStringSubmatch(s); m != nil && !strings.Contains(m[1], "<p>") {
		return m[1]
	}
	return strings.ReplaceAll(s, "</p><p>", "</p>\n<p>")
}
