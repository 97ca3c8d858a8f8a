package web

import (
	"strings"
	"testing"
)

func TestTerminalText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "a <b>\tc\n", "a &lt;b&gt;\tc\n"},
		{"colours", "\x1b[31mred\x1b[0m \x1b[1;92mok\x1b[m!", `<span class="f1">red</span> <span class="f10 bold">ok</span>!`},
		{"256 colours", "\x1b[38;5;9mx\x1b[48;5;232my", `<span class="f9">x</span><span class="f9 g0">y</span>`},
		{"true colour", "\x1b[38;2;250;5;5mx\x1b[39m\x1b[38:2::0:0:255;1mz", `<span class="f9">x</span><span class="f12 bold">z</span>`},
		{"cut colours", "\x1b[38mx\x1b[38;5my\x1b[38;2;1mz", "xyz"},
		{"a colour over lines", "\x1b[31ma\nb", "<span class=\"f1\">a</span>\n<span class=\"f1\">b</span>"},
		{"progress", "10%\r20%\r\x1b[K100%\r\ndone", "100%\ndone"},
		{"concealed", "\x1b[8mseen", "seen"},
		{"movement", "\x1b[2J\x1b[1;1Ha\x1b[?25lb\x1b7\x1b(Bc", "abc"},
		{"link", "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\a", "click"},
		{"title", "\x1b]0;evil\ax", "x"},
		{"unfinished link", "\x1b]8;;https://evil.example\nmore", "\\u{1b}]8;;https://evil.example\nmore"},
		{"long command", "\x1b]" + strings.Repeat("x", maxCommand) + "\a", "\\u{1b}]" + strings.Repeat("x", maxCommand)},
		{"long sequence", "\x1b[" + strings.Repeat("1;", maxControl) + "m", "\\u{1b}[" + strings.Repeat("1;", maxControl) + "m"},
		{"script", "\x1b[31m<script>alert(1)</script>\x1b[\"onload=x m", "<span class=\"f1\">&lt;script&gt;alert(1)&lt;/script&gt;nload=x m</span>"},
		{"hidden", "a\u202eb\u200bc\x08\x00\u009b31md", `a\u{202e}b\u{200b}c\u{8}\u{0}\u{9b}31md`},
		{"malformed", "a\xff\x1b", "a\uFFFD\\u{1b}"},
	} {
		if got := string(terminalText(c.in)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzTerminalText(f *testing.F) {
	f.Add("\x1b[38;5;9mx\r\x1b]8;;a\x1b\\<b>")
	f.Fuzz(func(t *testing.T, s string) {
		rest := string(terminalText(s))
		for rest != "" {
			before, after, more := strings.Cut(rest, "<")
			if strings.ContainsAny(before, "\x1b\r\a\x00") {
				t.Fatalf("control characters in %q", before)
			}
			if !more {
				break
			}
			tag, then, closed := strings.Cut(after, ">")
			if name := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(tag, `span class="`), `"`), "abcdefghijklmnopqrstuvwxyz0123456789 "); !closed || tag != "/span" && name != "" {
				t.Fatalf("a tag %q", tag)
			}
			rest = then
		}
	})
}
