package web

import "testing"

// TestRowsShowWordsWithoutMarks takes the marks out of a text, and nothing that is none where the text is read as Markdown.
func TestRowsShowWordsWithoutMarks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"The build is green":                                         "The build is green",
		"The **staging** database has `41` migrations":               "The staging database has 41 migrations",
		"# Report 5\n\nAll *good*.\n\n- one\n- two":                  "Report 5 All good. • one • two",
		"see [the plan](https://example.com/plan) and ![a](b.png)":   "see the plan and a",
		"1. Copy\n2. Switch `DATABASE_URL`\n":                        "1. Copy 2. Switch DATABASE_URL",
		"> quoted\n> twice":                                          "quoted twice",
		"```go\nfunc main() {}\n```":                                 "func main() {}",
		"| step | risk |\n|---|---|\n| copy | none |":                "step · risk copy · none",
		"2 * 3 * 4 and __init__.py and snake_case_name and a\\*b\\*": "2 * 3 * 4 and init.py and snake_case_name and a*b*",
		"use `**kwargs`, not `a_b_`":                                 "use **kwargs, not a_b_",
		"AT&amp;T &lt;b&gt; <b>bold</b>":                             "AT&T <b> <b>bold</b>",
		"---":                                                        "---",
		"":                                                           "",
	} {
		if got := words(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
