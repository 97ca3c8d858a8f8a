package text

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	words := func(s string) Part { return Part{Words: s} }
	ref := func(edge, path string) Part { return Part{Words: "@" + path, Edge: edge, Path: path} }
	under := func(edge, path string) Part {
		return Part{Words: "@" + edge + ":" + path, Edge: edge, Path: path}
	}
	said := func(s string) Part { return Part{Words: s, Quoted: true} }
	for text, want := range map[string][]Part{
		"":                     {words("")},
		"hello":                {words("hello")},
		"@fae":                 {ref("fae", "fae")},
		"hi @fae!":             {words("hi "), ref("fae", "fae"), words("!")},
		"@a @b":                {ref("a", "a"), words(" "), ref("b", "b")},
		"@a and @a":            {ref("a", "a"), words(" and "), ref("a", "a")},
		"(@a)":                 {words("("), ref("a", "a"), words(")")},
		"**@a**":               {words("**"), ref("a", "a"), words("**")},
		"me@example.com":       {words("me@example.com")},
		"ü@example.com":        {words("ü@example.com")},
		"7@x _@x":              {words("7@x _@x")},
		"npm:@a/b /@a =@a .@a": {words("npm:@a/b /@a =@a .@a")},
		"git@a:b https://@a":   {words("git@a:b https://@a")},
		"@a@b.org, @c":         {said("@a@b.org"), words(", "), ref("c", "c")}, // a user of another system
		"@a@ b":                {ref("a", "a"), words("@ b")},
		"@@a":                  {words("@@a")},
		`\@a`:                  {words("@a")},
		`\@@a`:                 {words("@@a")},
		`\\@a`:                 {words(`\@a`)},
		`a\b\`:                 {words(`a\b\`)},
		"@":                    {words("@")},
		"@ a":                  {words("@ a")},
		"@.a @-a @/a":          {words("@.a @-a @/a")},
		"@edge:path":           {under("edge", "path")},
		"@edge:a/b/c":          {under("edge", "a/b/c")},
		"@edge:a.b-c_1":        {under("edge", "a.b-c_1")},
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
		"@me:@self":            {under("me", "@self")},
		"@it:@mail/0/@value":   {under("it", "@mail/0/@value")},
		"@Grüße @名前.":          {ref("Grüße", "Grüße"), words(" "), ref("名前", "名前"), words(".")},
		"@cafe\u0301 @\u0301a": {ref("cafe\u0301", "cafe\u0301"), words(" @\u0301a")},
		"@🙂":                   {words("@🙂")},
		"see:\n\n    @a\n\n@b": {words("see:\n\n    "), said("@a"), words("\n\n"), ref("b", "b")},
		"line\n@a\nline":       {words("line\n"), ref("a", "a"), words("\nline")},
		"\xff@a\xff":           {words("\xff@a\xff")},
		"@a:b @a:b":            {under("a", "b"), words(" "), under("a", "b")},
		"mail\u00a0@a\u2003@b": {words("mail\u00a0"), ref("a", "a"), words("\u2003"), ref("b", "b")},

		"in `@a` it":                  {words("in `"), said("@a"), words("` it")},
		"`@a @b:c` @d":                {words("`"), said("@a"), words(" "), said("@b:c"), words("` "), ref("d", "d")},
		"``a ` @a`` @b":               {words("``a ` "), said("@a"), words("`` "), ref("b", "b")},
		"a ` and @a":                  {words("a ` and "), ref("a", "a")},
		"`\\@a`":                      {words("`\\@a`")},
		"```go\n@a\n```\n@b":          {words("```go\n"), said("@a"), words("\n```\n"), ref("b", "b")},
		"~~~\n@a\n\n```\n@b\n~~~\n@c": {words("~~~\n"), said("@a"), words("\n\n```\n"), said("@b"), words("\n~~~\n"), ref("c", "c")},
		"```\n@a":                     {words("```\n"), said("@a")},
		"he said \"ask @a\" to @b":    {words("he said \"ask "), said("@a"), words("\" to "), ref("b", "b")},
		"“@a” «@b» ‘@c’":              {words("“"), said("@a"), words("” «"), said("@b"), words("» ‘"), said("@c"), words("’")},
		"don't ask @a, it isn't":      {words("don't ask "), ref("a", "a"), words(", it isn't")},
		"'@a' and 'it's @b' @c":       {words("'"), said("@a"), words("' and 'it's "), said("@b"), words("' "), ref("c", "c")},
		"a 5\" screen for @a":         {words("a 5\" screen for "), ref("a", "a")},
		"> ask @a\nno, @b":            {words("> ask "), said("@a"), words("\nno, "), ref("b", "b")},
		"a \"b\n\nask @a\" c":         {words("a \"b\n\nask "), ref("a", "a"), words("\" c")},
		`say \"ask @a\" @b`:           {words(`say \"ask `), said("@a"), words(`\" `), ref("b", "b")},
		"\\`@a\\` @b":                 {words("\\`@a\\` "), ref("b", "b")},
	} {
		if got := Parse(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

// TestQuotationsTakeNoTime parses texts whose marks nothing closes.
func TestQuotationsTakeNoTime(t *testing.T) {
	for _, part := range []string{" 'a", " \"a", " “a", "` ``` `` ", "@a'"} {
		Parse(strings.Repeat(part, 64<<10/len(part)))
	}
	var marks strings.Builder
	for n := 1; marks.Len() < 64<<10; n++ {
		marks.WriteString(strings.Repeat("`", n) + "@")
	}
	Parse(marks.String())
}

// FuzzParse checks that the parts of a text, one after the other, are the text, except for escapes.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"hi @fae, \\@home me@x.org @e:@mail/0/@value.", "@a@b:c", "\\\\@", "@\xff", "@é/ü:x", "@a:a@a:a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parts := Parse(text)
		rest := text
		for _, m := range parts {
			if m.Edge == "" {
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
