package rule

import (
	"strings"
	"testing"
)

func TestAmountIsAPlainNumberOrNone(t *testing.T) {
	for input, want := range map[string]string{
		`{"amount":0}`: "0", `{"amount":12}`: "12", `{"amount":12.50}`: "12.5", `{"amount":0.000001}`: "0.000001", `{"amount": 7 }`: "7",
		`{"amount":999999999999.999999}`: "999999999999.999999", `{"\u0061mount":3}`: "3",

		`{}`: "", `[]`: "", `7`: "", `"amount"`: "", `{"amount":null}`: "", `{"amount":true}`: "", `{"amount":"12"}`: "", `{"amount":[1]}`: "", `{"amount":{"amount":1}}`: "",
		`{"pay":{"amount":1}}`: "", `{"amount":-1}`: "", `{"amount":-0}`: "", `{"amount":-0.0}`: "", `{"amount":1e2}`: "", `{"amount":1e309}`: "", `{"amount":1E-9}`: "",
		`{"amount":0.0000001}`: "", `{"amount":1000000000000}`: "", `{"amount":1,"Amount":2}`: "", `{"amount":1,"AMOUNT":2}`: "", `{"Amount":2}`: "",
		`{"amount":NaN}`: "", `{"amount":Infinity}`: "", `{"amount":` + strings.Repeat("9", 400) + `}`: "", `{"amount":01}`: "", `{"amount":1.}`: "", `{"amount":.5}`: "", `{"amount":+1}`: "", `{"amount":1_0}`: "",
	} {
		n, ok := Amount(input, "amount")
		if ok != (want != "") || ok && AmountText(n) != want {
			t.Errorf("%.80s: %s, %v, want %q", input, AmountText(n), ok, want)
		}
	}
}

// TestLinesCoverTheirCommandsAlone makes coverages of command lines, and lists lines that they may not cover.
func TestLinesCoverTheirCommandsAlone(t *testing.T) {
	for line, others := range map[string][]string{
		"make test":             {"make", "make test all", "make -n test", "make test -j8", "make  test; make deploy", "make test > x", "make test &", "make 'test all'", "$(make test)"},
		"git commit -m 'a b'":   {"git commit -m a b", "git commit -m 'a c'", "git commit", "git commit -m 'a b' --amend"},
		"make test && go vet .": {"go vet ./...", "make test && make deploy", "go vet . && rm x"},
	} {
		c, err := Line(testFolder, line, false)
		if err != nil {
			t.Fatal(err)
		}
		rules := []Standing{{Covers: &c, Allow: true}}
		if !allows(rules, commandCall(line)) {
			t.Errorf("%q is not covered by its own rule", line)
		}
		for _, other := range others {
			if allows(rules, commandCall(other)) {
				t.Errorf("the rule of %q covers %q", line, other)
			}
		}
		call := commandCall(line)
		if call.Folder += "2"; allows(rules, call) {
			t.Errorf("the rule of %q covers it in another folder", line)
		}
	}
	if c, err := Line(testFolder, "git commit -m 'a b' ''", false); err != nil || Words(&c) != `git commit -m "a b" "", without options, in `+testFolder {
		t.Errorf("%s, %v", Words(&c), err)
	}
}

// TestGlobsStayInTheFolder names files of which no coverage is made.
func TestGlobsStayInTheFolder(t *testing.T) {
	for _, glob := range []string{"", "/etc/**", "..", "../x", "a/../../x", ".env", "src/.git/**", "src/", "./src", "[", "a\nb", strings.Repeat("a", 5000)} {
		if c, err := Files(testFolder, glob); err == nil {
			t.Errorf("%q: %s", glob, Words(&c))
		}
	}
	c, err := Files(testFolder, "src/**")
	if err != nil {
		t.Fatal(err)
	}
	rules := []Standing{{Covers: &c, Allow: true}}
	for file, want := range map[string]bool{"src/a.go": true, "src/b/c.go": true, "a.go": false, "src/.env": false, "src/config": false, "src/../a.go": false, "/etc/passwd": false, "src/.git/hooks/x": false} {
		if got := allows(rules, editCall(file)); got != want {
			t.Errorf("an edit of %s is covered: %v", file, got)
		}
	}
}

// TestToolsThatDoAnythingAreNamedByWhatTheyDo refuses coverages of all that a shell or an editor does.
func TestToolsThatDoAnythingAreNamedByWhatTheyDo(t *testing.T) {
	for _, tool := range []string{
		"Bash", "shell", "exec_command", "Write", "Edit", "Read", EditTool, ReadTool, "sh", "PowerShell", "BASH", "Bash ", "terminal", "execute_command", "unified_exec",
		"Monitor", "mcp__x__shell", "write_file", "mcp__fs__write_file", "apply_patch", "Grep", "LS", "*", "", "runCommand",
	} {
		if _, err := Tool(testFolder, tool); err == nil {
			t.Errorf("all calls of %s are covered", tool)
		}
	}
	for _, tool := range []string{"pay", "mcp__bank__transfer", "send_mail", "WebSearch", "refresh", "Profile"} {
		if _, err := Tool(testFolder, tool); err != nil {
			t.Errorf("%s: %v", tool, err)
		}
	}
}
