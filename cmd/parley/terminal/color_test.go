package terminal_test

import (
	"testing"

	"parley/cmd/parley/terminal"
)

func TestOutputKeepsOnlyColors(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct{ color, plain string }{
		"a\tb":                            {"a\tb", "a\tb"},
		"\x1b[1;31mred\x1b[0m":            {"\x1b[1;31mred\x1b[0m\x1b[0m", "red"},
		"\x1b[38;5;8mgrey":                {"\x1b[38;5;8mgrey\x1b[0m", "grey"},
		"\x1b[48;2;8;8;8mdark":            {"\x1b[48;2;8;8;8mdark\x1b[0m", "dark"},
		"\x1b[8mhidden":                   {`\u{1b}[8mhidden`, `\u{1b}[8mhidden`},
		"\x1b[1;08mhidden":                {`\u{1b}[1;08mhidden`, `\u{1b}[1;08mhidden`},
		"\x1b[2Jgone":                     {`\u{1b}[2Jgone`, `\u{1b}[2Jgone`},
		"\x1b]0;title\a":                  {`\u{1b}]0;title\u{7}`, `\u{1b}]0;title\u{7}`},
		"\x1b[3\x1b[31m1m":                {"\\u{1b}[3\x1b[31m1m\x1b[0m", `\u{1b}[31m`},
		"half a sequence: \x1b[31":        {`half a sequence: \u{1b}[31`, `half a sequence: \u{1b}[31`},
		"back\x1b[10Dwards\rover\u202eit": {`back\u{1b}[10Dwards\u{d}over\u{202e}it`, `back\u{1b}[10Dwards\u{d}over\u{202e}it`},
	} {
		if got := (terminal.Screen{Width: 80, Color: true}).Output(in); got != want.color {
			t.Errorf("%q is %q on a terminal, want %q", in, got, want.color)
		}
		if got := (terminal.Screen{}).Output(in); got != want.plain {
			t.Errorf("%q is %q in a file, want %q", in, got, want.plain)
		}
	}
}
