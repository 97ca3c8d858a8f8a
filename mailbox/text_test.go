package mailbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/events"
)

func TestParseText(t *testing.T) {
	words := func(s string) TextPart { return TextPart{Words: s} }
	ref := func(edge, path string) TextPart { return TextPart{Edge: edge, Path: path} }
	for text, want := range map[string][]TextPart{
		"":                     {words("")},
		"hello":                {words("hello")},
		"@fae":                 {ref("fae", "fae")},
		"hi @fae!":             {words("hi "), ref("fae", "fae"), words("!")},
		"@a @b":                {ref("a", "a"), words(" "), ref("b", "b")},
		"@a and @a":            {ref("a", "a"), words(" and "), ref("a", "a")},
		"(@a)":                 {words("("), ref("a", "a"), words(")")},
		"me@example.com":       {words("me@example.com")},
		"ü@example.com":        {words("ü@example.com")},
		"7@x _@x":              {words("7@x _@x")},
		"@a@b":                 {ref("a", "a"), words("@b")},
		"@@a":                  {words("@@a")},
		`\@a`:                  {words("@a")},
		`\@@a`:                 {words("@@a")},
		`\\@a`:                 {words(`\@a`)},
		`a\b\`:                 {words(`a\b\`)},
		"@":                    {words("@")},
		"@ a":                  {words("@ a")},
		"@.a @-a @/a":          {words("@.a @-a @/a")},
		"@edge:path":           {ref("edge", "path")},
		"@edge:a/b/c":          {ref("edge", "a/b/c")},
		"@edge:a.b-c_1":        {ref("edge", "a.b-c_1")},
		"@edge: a":             {ref("edge", "edge"), words(": a")},
		"@edge::a":             {ref("edge", "edge"), words("::a")},
		"see @a/b/c.":          {words("see "), ref("c", "a/b/c"), words(".")},
		"@a/b:c":               {ref("b", "a/b"), words(":c")},
		"@a/":                  {ref("a", "a"), words("/")},
		"@a/@b":                {ref("b", "a/@b")},
		"ask @fae.":            {words("ask "), ref("fae", "fae"), words(".")},
		"@fae...":              {ref("fae", "fae"), words("...")},
		"@v1.2":                {ref("v1.2", "v1.2")},
		"@a-":                  {ref("a", "a"), words("-")},
		"@a, @b; @c":           {ref("a", "a"), words(", "), ref("b", "b"), words("; "), ref("c", "c")},
		"@SELF @HOST":          {ref("SELF", "SELF"), words(" "), ref("HOST", "HOST")},
		"@self":                {ref("self", "self")},
		"@me:@self":            {ref("me", "@self")},
		"@it:@mail/0/@value":   {ref("it", "@mail/0/@value")},
		"@Grüße @名前.":          {ref("Grüße", "Grüße"), words(" "), ref("名前", "名前"), words(".")},
		"@🙂":                   {words("@🙂")},
		"line\n@a\nline":       {words("line\n"), ref("a", "a"), words("\nline")},
		"\xff@a\xff":           {words("\xff"), ref("a", "a"), words("\xff")},
		"@a:b @a:b":            {ref("a", "b"), words(" "), ref("a", "b")},
		"mail\u00a0@a\u2003@b": {words("mail\u00a0"), ref("a", "a"), words("\u2003"), ref("b", "b")},
	} {
		if got, err := ParseText(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func TestEdgeNamesOneValue(t *testing.T) {
	var many strings.Builder
	for n := range maxEdges {
		fmt.Fprintf(&many, "@e%d ", n)
	}
	if parts, err := ParseText(many.String()); err != nil || len(parts) != 2*maxEdges {
		t.Errorf("%d edges: %d parts, %v", maxEdges, len(parts), err)
	}
	if parts, err := ParseText(many.String() + "@e0"); err != nil || len(parts) != 2*maxEdges+1 {
		t.Errorf("%d edges, and one again: %d parts, %v", maxEdges, len(parts), err)
	}
	for what, text := range map[string]string{"two values": "@a and @a:b", "two paths": "@x/a and @y/a", "65 edges": many.String() + "@more"} {
		if parts, err := ParseText(text); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%s: got %+v, %v", what, parts, err)
		}
	}
}

// FuzzParseText checks that the parts of a text, one after the other, are the text, except for escapes.
func FuzzParseText(f *testing.F) {
	for _, text := range []string{"hi @fae, \\@home me@x.org @e:@mail/0/@value.", "@a@b:c", "\\\\@", "@\xff", "@é/ü:x", "@a:a@a:a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parts, err := ParseText(text)
		if err != nil {
			return
		}
		rest := text
		var plain strings.Builder
		for _, m := range parts {
			if m.Edge == "" {
				plain.WriteString(m.Words)
				rest = trimWords(t, rest, m.Words)
				continue
			}
			long, okLong := strings.CutPrefix(rest, "@"+m.Edge+":"+m.Path)
			short, okShort := strings.CutPrefix(rest, "@"+m.Path)
			switch {
			case okLong:
				rest = long
			case okShort:
				rest = short
			default:
				t.Fatalf("%q: %+v is not at %q", text, m, rest)
			}
		}
		if rest != "" {
			t.Fatalf("%q: %q is lost", text, rest)
		}
		var spans []events.Span
		for _, m := range parts {
			if m.Edge == "" {
				spans = append(spans, events.Span{Words: m.Words})
			}
		}
		if got := ShowText(spans); got != plain.String() {
			t.Fatalf("%q is shown as %q, want %q", text, got, plain.String())
		}
	})
}

// trimWords removes leading words from a text, in which each "@" may be escaped.
func trimWords(t *testing.T, text, words string) string {
	t.Helper()
	for i := range len(words) {
		if words[i] == '@' {
			text = strings.TrimPrefix(text, `\`)
		}
		if text == "" || text[0] != words[i] {
			t.Fatalf("the words %q are not at %q", words, text)
		}
		text = text[1:]
	}
	return text
}

func TestRepeatedEdgeIsNotCounted(t *testing.T) {
	s := ""
	for n := range maxEdges {
		s += fmt.Sprintf("@e%d ", n)
	}
	if _, err := ParseText(s + "@e0"); err != nil {
		t.Error(err)
	}
}
