package rule

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"parley"
)

// FuzzLines makes all rules of one command line and applies them to another. The rules cover the first line. If they cover
// the other one, checkCovered checks that it runs the same programs, with listed options only, and with no address and no
// path outside the folder.
func FuzzLines(f *testing.F) {
	for _, line := range []string{
		"git push origin main", "git status -sb && git diff --stat", "git log -n 5 | head -3", "grep -A 3 'x y' src/a.go", "ls -la src", "kubectl get pods web-1",
		"cat a; wc -l b", "docker run hello-world", "git push origin main --force", "git log --output=x", "ls\u00a0-la", "cat a\nrm b", "cat $(rm x)", "a 'b' \"c\"",
	} {
		f.Add(line, line+" --exec x")
		f.Add(line, line+"; rm x")
		f.Add(line, line+" ../x")
	}
	f.Fuzz(func(t *testing.T, made, other string) {
		if !utf8.ValidString(made) || !utf8.ValidString(other) {
			return // no input is invalid UTF-8, and JSON would make different texts equal
		}
		rules := allOf(commandCall(made))
		if !slices.ContainsFunc(rules[:1], func(s Standing) bool { return allows([]Standing{s}, commandCall(made)) }) {
			t.Fatalf("the rule for %q does not cover it", made)
		}
		offered := map[string]bool{}
		for _, s := range rules[1:] {
			if !allows([]Standing{s}, commandCall(made)) {
				t.Fatalf("%q is offered %q, which does not cover it", made, Words(s.Covers))
			}
			if words := Words(s.Covers); offered[words] {
				t.Fatalf("%q is offered %q twice", made, words)
			} else {
				offered[words] = true
			}
		}
		if made != other && allows(rules, commandCall(other)) {
			checkCovered(t, made, other)
		}
	})
}

// plainLine matches a line, without its quoted parts, that a wider rule may cover. inQuotes matches a quoted part.
var (
	plainLine = regexp.MustCompile(`^[\w@%+=:,./ \t;|&^~-]*$`)
	inQuotes  = regexp.MustCompile("'[^']*'|\"[^\"$`\\\\!]*\"")
)

// checkCovered checks that a line may be covered by a rule of another one.
func checkCovered(t *testing.T, made, other string) {
	t.Helper()
	bare := inQuotes.ReplaceAllString(other, "Q")
	if !plainLine.MatchString(bare) || strings.Contains(strings.ReplaceAll(bare, "&&", ""), "&") {
		t.Fatalf("a rule of %q covers %q, which is not plain", made, other)
	}
	programs := strings.FieldsFunc(made, func(r rune) bool { return strings.ContainsRune(" \t;|&'\"", r) })
	listed := map[string]bool{}
	for _, c := range commands() {
		for _, o := range c.options {
			listed[o] = true
		}
	}
	commands, ok := parseLine(other)
	if !ok {
		t.Fatalf("a rule of %q covers %q, which cannot be parsed", made, other)
	}
	for _, words := range commands {
		if !slices.Contains(programs, words[0]) {
			t.Fatalf("a rule of %q covers %q, which runs another program", made, other)
		}
		for _, w := range words[1:] {
			text := words[0] == "grep" || words[0] == "rg"
			switch {
			case strings.HasPrefix(w, "--") && w != "--no-pager" && !listed[w] && !listed[strings.TrimRight(w, "0123456789")+"N"]:
				t.Fatalf("a rule of %q covers %q, with the option %q", made, other, w)
			case !strings.HasPrefix(w, "-") && !text && (slices.Contains(strings.Split(w, "/"), "..") || strings.Contains(w, ":") || strings.HasPrefix(w, "+")):
				t.Fatalf("a rule of %q covers %q, with the operand %q", made, other, w)
			case !strings.HasPrefix(w, "-") && !text && strings.HasPrefix(w, "/") && w != testFolder && !strings.HasPrefix(w, testFolder+"/"):
				t.Fatalf("a rule of %q covers %q, with the path %q", made, other, w)
			}
		}
	}
}

// FuzzInputs reads any input of any tool. Reading does not panic, and all offered rules cover the input.
func FuzzInputs(f *testing.F) {
	for _, tool := range []string{"Bash", "Edit", "Read", EditTool, ReadTool, "other"} {
		for _, input := range []string{
			`{"command":"git push origin main","description":"x"}`, `{"file_path":"src/a.go","content":"x"}`, `{"content":[{"type":"diff","path":"a"}],"rawInput":{"path":"a"}}`, `{"title":"x","locations":[{"path":"a"}]}`, `[]`, `{"command":{}}`,
		} {
			f.Add(tool, input, testFolder)
		}
	}
	f.Fuzz(func(t *testing.T, tool, input, folder string) {
		if CheckInput(input) != nil || CheckFolder(folder) != nil {
			return
		}
		c := &parley.Permission{Tool: tool, Input: input, Folder: folder}
		for _, s := range allOf(c) {
			if !allows([]Standing{s}, c) {
				t.Fatalf("%+v is offered %q, which does not cover it", c, Words(s.Covers))
			}
			if _, err := json.Marshal(s.Covers); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range Read(c).files {
			for _, s := range allOf(c)[1:] {
				if rel, ok := within(s.Covers.Folder, file); !ok || s.Covers.Glob != "" && strings.Contains("/"+rel, "/.") {
					t.Fatalf("%q covers %q", Words(s.Covers), file)
				}
			}
		}
	})
}
