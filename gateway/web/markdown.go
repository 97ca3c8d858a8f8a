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
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/idna"

	"parley/gateway/prose"
	"parley/gateway/sanitize"
)

// The text with which an agent explains a form is Markdown without HTML: a tag is shown as it was typed. The reader sees
// every character of the text, and the host of every link.

// maxMarkdown bounds a text that is drawn, in bytes: a longer one is shown as it was typed.
const maxMarkdown = 16 << 10

// markdown renders text of other agents as HTML. It shows a text that is too long or too entangled as it was typed.
func markdown(s string) template.HTML {
	s = sanitize.Lines(s)
	if len(s) > maxMarkdown || prose.IsEntangled(s) {
		return asTyped(s)
	}
	source := []byte(s)
	tree := prose.Reader().Parser().Parse(text.NewReader(source))
	if !tame(tree) {
		return asTyped(s)
	}
	var drawn bytes.Buffer
	if err := prose.Reader().Renderer().Render(&drawn, source, tree); err != nil {
		return asTyped(s)
	}
	// An entity may have restored a character that sanitize.Lines removed.
	clean := sanitize.Lines(markdownPolicy().Sanitize(drawn.String()))
	return template.HTML(compact(clean))
}

func asTyped(s string) template.HTML {
	return template.HTML(template.HTMLEscapeString(s))
}

// markdownPolicy lists the elements and attributes that are allowed. It holds even if the reader lets others through.
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
	return err == nil && deepest <= prose.MaxNested
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
