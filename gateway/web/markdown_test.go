package web

import (
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"parley/gateway/sanitize"
)

const linked = ` rel="nofollow noreferrer noopener" target="_blank">`

func TestMarkdownRendering(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a line", "Deploy 2 < 3 & go?", "Deploy 2 &lt; 3 &amp; go?"},
		{"lines", "one\ntwo", "one\ntwo"},
		{"paragraphs", "one\n\ntwo", "<p>one</p>\n<p>two</p>"},
		{"a hard break", "one\\\ntwo", "one<br/>two"},
		{"emphasis", "*a* **b** `c < d`", "<em>a</em> <strong>b</strong> <code>c &lt; d</code>"},
		{"a list", "- a\n- b", "<ul><li>a</li><li>b</li></ul>"},
		{"a list from 3", "3. a\n4. b", `<ol start="3"><li>a</li><li>b</li></ol>`},
		{"headings below the page's", "# a\n\n##### b", "<h3>a</h3><h6>b</h6>"},
		{"code", "```sh\nrm *x*\n\nls\n```", "<pre><code>rm *x*\n\nls\n</code></pre>"},
		{"a quote", "> a\n> b", "<blockquote><p>a\nb</p></blockquote>"},
		{"a table", "|a|b|\n|-|-|\n|1|2|", "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>"},
		{"a link", "[x](https://a.example/p?q=1&r=2)", `<a href="https://a.example/p?q=1&amp;r=2"` + linked + `x</a> <bdi>(a.example)</bdi>`},
		{"a link with a port", "[x](http://A.example:8080)", `<a href="http://a.example:8080"` + linked + `x</a> <bdi>(a.example:8080)</bdi>`},
		{"an address alone", "see https://a.example/", "see https://a.example/"},
	} {
		if got := string(markdown(c.in)); got != c.want {
			t.Errorf("%s: %q\n got %s\nwant %s", c.name, c.in, got, c.want)
		}
	}
}

func TestHostileMarkdownIsEscaped(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a script", "<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
		{"a handler", `<b onclick="x">a</b>`, "&lt;b onclick=&#34;x&#34;&gt;a&lt;/b&gt;"},
		{"a comment", "a <!-- b --> c", "a &lt;!-- b --&gt; c"},
		{"a tag by entities", "&lt;script&gt;&#60;b&#62;", "&lt;script&gt;&lt;b&gt;"},
		{"a tag in code", "`<script>`", "<code>&lt;script&gt;</code>"},
		{"javascript", "[x](javascript:alert(1))", "x"},
		{"in capitals", "[x](JaVaScRiPt:alert(1))", "x"},
		{"by an entity", "[x](javascript&colon;alert(1))", "x"},
		{"by a number", "[x](&#106;avascript:alert(1))", "x"},
		{"with a tab in it", "[x](<java\tscript:alert(1)>)", "x"},
		{"with a tab by a number", "[x](java&#9;script:alert(1))", "x"},
		{"after a control character", "[x](\x01javascript:alert(1))", "x"},
		{"escaped", `[x](javascript\:alert(1))`, "x"},
		{"vbscript", "[x](vbscript:x)", "x"},
		{"data", "[x](data:text/html;base64,PHNjcmlwdD4=)", "x"},
		{"a file", "[x](file:///etc/passwd)", "x"},
		{"a way within the page", "[x](/forms/1)", "x"},
		{"of no scheme", "[x](//evil.example)", "x"},
		{"of no host", "[x](https:evil.example)", "x"},
		{"of an empty host", "[x](https:///evil.example)", "x"},
		{"with a name", "[x](https://bank.example@evil.example)", "x"},
		{"with a name and a password", "[x](https://a:b@evil.example)", "x"},
		{"with a backslash", `[x](https://bank.example\\@evil.example)`, "x"},
		{"a number for a host", "[x](http://0x7f.1/)", "x"},
		{"a great number for a host", "[x](http://2130706433/)", "x"},
		{"an autolink", "<javascript:alert(1)>", "&lt;javascript:alert(1)&gt;"},
		{"an autolink to the web", "<https://a.example>", "&lt;https://a.example&gt;"},
		{"a picture", "![p](https://a.example/x.png)", "p"},
		{"a picture of a link", "[![p](https://b.example)](https://a.example)", `<a href="https://a.example"` + linked + `p</a> <bdi>(a.example)</bdi>`},
		{"a link in a picture", "![a [p](https://b.example)](https://a.example)", `a <a href="https://b.example"` + linked + `p</a> <bdi>(b.example)</bdi>`},
		{"a link in a link", "[a [b](https://b.example)](https://a.example)", `[a <a href="https://b.example"` + linked + `b</a> <bdi>(b.example)</bdi>](https://a.example)`},
		{"a reference", "[a]\n\n[a]: javascript:x", "<p>[a]</p>\n<p>[a]: javascript:x</p>"},
		{"a host in the text", "[bank.example](https://evil.example)", `<a href="https://evil.example"` + linked + `bank.example</a> <bdi>(evil.example)</bdi>`},
		{"a host that looks like another", "[x](https://аpple.com)", `<a href="https://xn--pple-43d.com"` + linked + `x</a> <bdi>(xn--pple-43d.com)</bdi>`},
		{"an attribute", `[x](https://a.example/"onclick="y)`, `<a href="https://a.example/%22onclick=%22y"` + linked + `x</a> <bdi>(a.example)</bdi>`},
		{"an attribute by a title", `[x](https://a.example "\"onclick=y")`, `<a href="https://a.example"` + linked + `x</a> <bdi>(a.example)</bdi>`},
		{"an attribute of code", "```a\"onclick=\"y\nz\n```", "<pre><code>z\n</code></pre>"},
		{"text reordered", "a\u202eb", `a\u{202e}b`},
		{"text reordered by an entity", "a&#x202e;b&rlm;c", `a\u{202e}b\u{200f}c`},
		{"no width", "a\u200bb", `a\u{200b}b`},
		{"control", "a\x1b[31mb\x00", `a\u{1b}[31mb\u{0}`},
		{"a bell in code", "`a\x07`", `<code>a\u{7}</code>`},
	} {
		if got := string(markdown(c.in)); got != c.want {
			t.Errorf("%s: %q\n got %s\nwant %s", c.name, c.in, got, c.want)
		}
	}
}

// wants fails of what is more than markdownPolicy says. It reads HTML as a browser does.
func wants(t *testing.T, in string) {
	t.Helper()
	out := string(markdown(in))
	tags := strings.Fields("html head body p br hr em strong code pre ul ol li blockquote bdi h3 h4 h5 h6 table thead tbody tr th td a")
	tree, err := html.Parse(strings.NewReader(out))
	if err != nil {
		t.Fatalf("%q: %v", in, err)
	}
	for n := range tree.Descendants() {
		if n.Type == html.CommentNode || n.Type == html.ElementNode && !slices.Contains(tags, n.Data) {
			t.Fatalf("%q has <%s>: %s", in, n.Data, out)
		}
		for _, a := range n.Attr {
			switch n.Data + " " + a.Key {
			case "a rel", "a target", "ol start":
			case "a href":
				u, err := url.Parse(a.Val)
				if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
					t.Fatalf("%q leads to %q", in, a.Val)
				}
				host := n.NextSibling
				for host != nil && host.Type == html.TextNode && strings.TrimSpace(host.Data) == "" {
					host = host.NextSibling
				}
				if host == nil || host.Data != "bdi" || host.FirstChild.Data != "("+u.Host+")" {
					t.Fatalf("%q does not say that it leads to %q: %s", in, u.Host, out)
				}
			default:
				t.Fatalf("%q has %s=%q on <%s>: %s", in, a.Key, a.Val, n.Data, out)
			}
		}
	}
	if sanitize.Lines(out) != out {
		t.Fatalf("%q hides something: %q", in, out)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{
		"# a\n- b\n  1. c\n> d\n```x\ne\n```", "|a|b|\n|-|-|\n|[x](http://a.example)|2|", "*[**a**](https://б.example:80/?q#f)* `c`",
		"<a href=javascript:x onclick=y>![z](data:a)", "[x](http://&#x202e;a\\@b)", "[a\n](http://[::1]:80 'b')\\\n&NewLine;&Tab;&nbsp;",
	} {
		f.Add(seed)
	}
	f.Fuzz(wants)
}

// quickly is how long a rendering may take: some ten times what the worst takes, as the machine does other things too.
// What is entangled beyond bounds takes minutes. The race detector makes all ten times as long.
func quickly() time.Duration {
	const limit = 500 * time.Millisecond
	if b, ok := debug.ReadBuildInfo(); ok && slices.Contains(b.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return 10 * limit
	}
	return limit
}

func TestNestedMarkdownIsFast(t *testing.T) {
	limit := quickly()
	for _, unit := range []string{
		">", "> ", "[", "![", "]", "[](", "[a](", "[a](http://a)", "[]()", "*", "**a ", "*a_b ", "_a", "a**b*c", "`", "`a``", "\\", "<", "&", "&#9;", "- ", "1. ", "+ ", "#", "# a\n",
		"- a\n", "> a\n", ">\n", "|", "|-", "a|b\n-|-\n", "|-|\n", "\n", "\t", "~~~\n", "```", "* * ", "(", "[a]: b\n", "\u202e", "a\n\n", "- \n  ",
	} {
		in := strings.Repeat(unit, maxMarkdown/len(unit))
		began := time.Now()
		markdown(in)
		if took := time.Since(began); took > limit {
			t.Errorf("%q took %v", unit, took)
		}
		wants(t, in)
	}
	var stairs strings.Builder
	for i := 0; stairs.Len() < maxMarkdown-2*i-4; i++ {
		stairs.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	began := time.Now()
	markdown(stairs.String())
	if took := time.Since(began); took > limit {
		t.Errorf("stairs took %v", took)
	}
}
