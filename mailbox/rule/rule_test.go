package rule

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/events"
)

const testFolder = "/home/fae/shop"

// commandCall returns the call of a command line in testFolder.
func commandCall(line string) *parley.Permission {
	input, _ := json.Marshal(map[string]string{"command": line})
	return &parley.Permission{Tool: "Bash", Input: string(input), Folder: testFolder}
}

// editCall returns the edit of a file in testFolder.
func editCall(file string) *parley.Permission {
	input, _ := json.Marshal(map[string]string{"file_path": file, "old_string": "a", "new_string": "b"})
	return &parley.Permission{Tool: "Edit", Input: string(input), Folder: testFolder}
}

// allOf returns every rule that can be made of a call.
func allOf(c *parley.Permission) []Standing {
	r := Read(c)
	exact := r.Exact()
	rules := []Standing{{Covers: &exact, Allow: true}}
	for _, o := range r.Offers() {
		rules = append(rules, Standing{Covers: &o, Allow: true})
	}
	return rules
}

func allows(rules []Standing, c *parley.Permission) bool {
	d := Read(c).Decide(rules)
	return d.Allow && len(d.Rules) > 0
}

// TestRulesCoverNoOtherCall makes all rules of a call, and lists calls that none of them may cover.
func TestRulesCoverNoOtherCall(t *testing.T) {
	for line, others := range map[string][]string{
		"docker run hello-world": {
			"docker run --privileged -v /:/host alpine chroot /host", "docker run alpine", "docker run hello-world sh", "docker ps",
		},
		"go run ./cmd/demo": {"go run ./cmd/other", "go run /tmp/x.go", "go run ./cmd/demo --flag", "go version"},
		"npm exec prettier": {"npm exec other", "npm exec prettier --write .", "npm ls"},
		"git push":          {"git push --force", "git push --exec /tmp/x origin", "git push origin", "git push --receive-pack=/tmp/x"},
		"git push origin":   {"git push --force origin", "git push origin --force", "git push other", "git push origin +main", "git push origin :main", "git push --exec /path origin main"},
		"git push origin main": {
			"git push origin main --force", "git push -f origin main", "git push origin main --exec /path", "git push origin --exec=/path main", "git push origin main:other",
			"git push origin +main", "git push origin :main", "git push /tmp/other main", "git push ext::sh main", "git -c core.sshCommand=x push origin main", "git push origin main && rm -rf x",
			"git push origin main; rm x", "git push origin main | sh", "git push origin main > x", "git push origin main &", "git push origin ../x", "git push origin $(x)",
			"git push origin main --no-verify", "git push origin --mirror", "git push origin --delete main", "git push upstream main",
		},
		"git status": {
			"git config core.fsmonitor /tmp/x", "git -c core.fsmonitor=/tmp/x status", "git -C /tmp status", "git status; rm x", "git status /etc", "git status ../other", "git status .git",
			"git --git-dir=/tmp/x status", "git --exec-path=/tmp status",
		},
		"git diff":          {"git diff --ext-diff", "git diff --output=x", "git diff --no-index /etc/passwd x", "git diff --textconv", "git diff HEAD /etc/passwd", "git difftool"},
		"git log --oneline": {"git log --output=x", "git log -p --ext-diff", "git log --show-signature", "git -c core.pager=x log", "git --paginate log", "git log -n x", "git log -O/tmp/x"},
		"git branch":        {"git branch -D main", "git branch new", "git branch -a new", "git branch --edit-description"},
		"git grep x":        {"git grep -Ovi x"},
		"kubectl get pods": {
			"kubectl get secrets -A", "kubectl get secrets", "kubectl get pods -A", "kubectl get pods,secrets", "kubectl get pods --kubeconfig=/tmp/x", "kubectl get pods secret/x",
			"kubectl get pods -o jsonpath-file=/etc/x", "kubectl delete pods x",
		},
		"gh pr list":         {"gh pr merge --admin", "gh pr merge", "gh pr list --web", "gh api /user", "gh pr list -R other/repo"},
		"ls src":             {"ls /etc", "ls ../x", "ls ~", "ls -la .git", "ls $HOME", "ls `x`", "ls src/../..", "ls /home/fae/shop2", "ls /home/fae/shop/../x", "/bin/ls src", "./ls"},
		"cat src/main.go":    {"cat /etc/passwd", "cat .env", "cat src/.env", "cat ~/.ssh/id_rsa", "cat src/main.go > x", "cat < x", "cat -A x", "cat src/main.go & rm x"},
		"grep -n x src/a.go": {"grep -r x", "grep -f /etc/passwd src/a.go", "grep x /etc/passwd", "grep --include=x y z", "grep -P x y"},
		"rg x":               {"rg --pre cat x", "rg --pre=/tmp/x x", "rg x /etc", "rg --hidden x", "rg -uuu x", "rg -f /etc/passwd", "rg -z x", "rg --files /etc"},
		"find . -name x":     {"find . -name y", "find . -delete", "find . -name x -exec rm {} +"},
		"bash script.sh":     {"bash other.sh", "bash -c x"},
		"xargs rm":           {"xargs rm x"},
		"env ls":             {"env rm", "ls"},
		"sudo ls":            {"sudo rm", "ls"},
		"make":               {"make install", "make -f x"},
		"go test ./...":      {"go test -exec /tmp/x ./...", "go test -toolexec x ./...", "go test ./... -run X", "go vet ./..."},
		"npm ls":             {"npm run x", "npm install", "npm ls --prefix /tmp"},
		"go version":         {"go version /tmp/x", "go env -w GOFLAGS=-toolexec=x", "go build"},
		"go env GOROOT":      {"go env -w GOFLAGS=-toolexec=x", "go env -u X"},
		"head -5 a.txt":      {"head -5 /etc/passwd", "head -n x a.txt", "head --help"},
	} {
		rules := allOf(commandCall(line))
		if !allows(rules, commandCall(line)) {
			t.Errorf("no rule of %q covers it", line)
		}
		for _, other := range others {
			if allows(rules, commandCall(other)) {
				t.Errorf("a rule of %q covers %q", line, other)
			}
		}
	}
}

func TestOffersOfCommands(t *testing.T) {
	for line, want := range map[string]string{
		"git push origin main":                  "git push to origin, any branches or tags, without options, in /home/fae/shop",
		"git push origin":                       "git push to origin, any branches or tags, without options, in /home/fae/shop",
		"git fetch upstream":                    "git fetch from upstream, any branches or tags, without options, in /home/fae/shop",
		"git status -sb":                        "git status, any files that are not hidden, with options for display, in /home/fae/shop",
		"git --no-pager log -5":                 "git --no-pager log, any revisions or files that are not hidden, with options for display, in /home/fae/shop",
		"git --no-pager describe":               "git --no-pager describe, any branches or tags, with options for display, in /home/fae/shop",
		"kubectl get pods":                      "kubectl get pods, any names, without options, in /home/fae/shop",
		"gh pr list --limit 5":                  "gh pr list, with options for display, in /home/fae/shop",
		"pwd":                                   "pwd, without options, in /home/fae/shop",
		`grep -n "func (a)" src/a.go | head -5`: "grep, any text in files that are not hidden, with options for display; head, any files that are not hidden, with options for display, in /home/fae/shop",
		"cat a && cat b":                        "cat, any files that are not hidden, with options for display, in /home/fae/shop",
		"cat /home/fae/shop/a.txt":              "cat, any files that are not hidden, with options for display, in /home/fae/shop",
		"git push":                              "",
		"git push --force origin":               "",
		"git push -u origin main":               "",
		"docker run hello-world":                "",
		"go run ./cmd/demo":                     "",
		"npm exec prettier":                     "",
		"kubectl get secrets":                   "",
		"make":                                  "",
		"cat a && make":                         "",
		"cat .env":                              "",
		"cat /etc/passwd":                       "",
	} {
		var got []string
		for _, o := range Read(commandCall(line)).Offers() {
			got = append(got, Words(&o))
		}
		if strings.Join(got, " | ") != want {
			t.Errorf("%q offers %q, want %q", line, got, want)
		}
	}
}

func TestParseLine(t *testing.T) {
	for line, want := range map[string]string{
		"ls":                          "ls",
		"  ls \t -la ":                "ls,-la",
		"git log HEAD~1 main..x":      "git,log,HEAD~1,main..x",
		"a && b || c; d | e":          "a b c d e",
		`grep 'a $b "c"' "d e"`:       `grep,a $b "c",d e`,
		`cat "ä.txt"`:                 "cat,ä.txt",
		`cat ''`:                      "cat,",
		"cat x;":                      "cat,x",
		"":                            "-",
		"   ":                         "-",
		"ls\u00a0-la":                 "-", // only space and tab separate words
		"ls\u2028rm x":                "-",
		"ls\vrm":                      "-",
		"ls\frm":                      "-",
		"ls\rrm":                      "-",
		"ls\nrm":                      "-",
		"ls\x00":                      "-",
		"cat ä.txt":                   "-",
		"g\u0456t status":             "-", // a Cyrillic letter
		"git status # and more":       "-",
		"git log > file":              "-",
		"git log < file":              "-",
		"git log 2>&1":                "-",
		"git log |& cat":              "-",
		"git log &":                   "-",
		"! git log":                   "-",
		"time git log":                "-",
		"(git log)":                   "-",
		"{ git log; }":                "-",
		"if a; then b; fi":            "-",
		"f() { a; }":                  "-",
		"A=b ls":                      "-",
		"A=b":                         "-",
		"export A=b":                  "-",
		"echo $(rm x)":                "-",
		"echo `rm x`":                 "-",
		"echo $HOME":                  "-",
		`echo "$HOME"`:                "-",
		`echo "a!b"`:                  "-",
		`echo $'a'`:                   "-",
		`echo $"a"`:                   "-",
		"rm *":                        "-",
		"rm a?":                       "-",
		"rm [ab]":                     "-",
		"rm {a,b}":                    "-",
		"rm ~":                        "-",
		"rm ~/x":                      "-",
		"ls =cat":                     "-",
		`ls \; rm`:                    "-",
		`ls a\ b`:                     "-",
		`g"i"t status`:                "-",
		"cat <<x\ny\nx":               "-",
		"cat <(ls)":                   "-",
		"[[ a ]]":                     "-",
		"((a))":                       "-",
		"git log &&":                  "-",
		"echo 'a":                     "-",
		strings.Repeat("a ", maxLine): "-",
	} {
		commands, ok := parseLine(line)
		got := "-"
		if ok {
			var all []string
			for _, words := range commands {
				all = append(all, strings.Join(words, ","))
			}
			got = strings.Join(all, " ")
		}
		if got != want {
			t.Errorf("%q is parsed as %q, want %q", line, got, want)
		}
	}
}

func TestExactRule(t *testing.T) {
	for _, test := range []struct {
		tool, a, b string
		same       bool
	}{
		{"Bash", `{"command":"make"}`, `{"command":"make","description":"Build it"}`, true},
		{"Bash", `{"command":"make","description":"x","title":"y"}`, `{"title":"z","command":"make"}`, true},
		{"Bash", `{"command":"make"}`, `{"command":"make","description":["x"]}`, false},
		{"Bash", `{"command":"make","timeout":5}`, `{"command":"make"}`, false},
		{"Bash", `{"command":"make","timeout":5,"description":"x"}`, `{"command":"make","timeout":5}`, true},
		{"Bash", `{"command":"make"}`, `{"command":"make","run_in_background":true}`, false},
		{"Bash", `{"command":"make"}`, `{"command":"make","dangerouslyDisableSandbox":true}`, false},
		{"Bash", `{"command":"make"}`, `{"command":"make "}`, false},
		{"Bash", `{"command":"a\ud800"}`, `{"command":"a\ud801"}`, false},
		{"Bash", `{"command":["make"],"description":"x"}`, `{"command":["make"],"description":"y"}`, false},
		{"create", `{"command":"x","description":"a"}`, `{"command":"x","description":"b"}`, false},
		{"create", `{"path":"x"}`, `{"path":"y"}`, false},
		{"create", `"x"`, `"x"`, true},
	} {
		exact := Read(&parley.Permission{Tool: test.tool, Input: test.a, Folder: testFolder}).Exact()
		rules := []Standing{{Covers: &exact, Allow: true}}
		if got := allows(rules, &parley.Permission{Tool: test.tool, Input: test.b, Folder: testFolder}); got != test.same {
			t.Errorf("%s: %s and %s are the same call: %t", test.tool, test.a, test.b, got)
		}
		if allows(rules, &parley.Permission{Tool: test.tool, Input: test.a, Folder: "/elsewhere"}) {
			t.Errorf("%s is the same call in another folder", test.a)
		}
	}
}

func TestWiderRulesRequireSameFolderAndOptions(t *testing.T) {
	rules := allOf(commandCall("git log"))
	for _, c := range []*parley.Permission{
		{Tool: "Bash", Input: `{"command":"git log -5"}`, Folder: "/home/fae"},
		{Tool: "Bash", Input: `{"command":"git log -5"}`},
		{Tool: "Bash", Input: `{"command":"git log -5","workdir":"/tmp"}`, Folder: testFolder},
		{Tool: "Bash", Input: `{"command":"git log -5","run_in_background":true}`, Folder: testFolder},
		{Tool: "Bash", Input: `{"command":"git log -5","dangerouslyDisableSandbox":true}`, Folder: testFolder},
		{Tool: "Bash", Input: `{"command":"git log -5","timeout":"x"}`, Folder: testFolder},
		{Tool: "Bash", Input: `{"Command":"git log -5"}`, Folder: testFolder},
		{Tool: "db", Input: `{"command":"git log -5"}`, Folder: testFolder},
	} {
		if allows(rules, c) {
			t.Errorf("a rule covers %+v", c)
		}
	}
	if !allows(rules, &parley.Permission{Tool: "Bash", Input: `{"command":"git log -5","timeout":5000,"description":"x"}`, Folder: testFolder}) {
		t.Error("a timeout and a description change the decision")
	}
	if len(Read(&parley.Permission{Tool: "db", Input: `{"command":"git log"}`, Folder: testFolder}).Offers()) > 0 {
		t.Error("a wider rule is offered for an unknown tool")
	}
	if len(Read(&parley.Permission{Tool: "Bash", Input: `{"command":"cat x"}`}).Offers()) > 0 {
		t.Error("a rule about files is offered without a folder")
	}
}

func TestEveryCommandOfLineMustBeCovered(t *testing.T) {
	rules := append(allOf(commandCall("git status")), allOf(commandCall("git diff"))...)
	for line, want := range map[string]bool{
		"git status && git diff --stat": true, "git status; git diff | git status": true, "git status && make": false, "make && git status": false,
		"git status || git push": false, "git status && (git diff)": false, "git status & git diff": false,
	} {
		if got := allows(rules, commandCall(line)); got != want {
			t.Errorf("%q is allowed: %t", line, got)
		}
	}
	d := Read(commandCall("git status && git diff")).Decide(rules)
	if len(d.Rules) != 2 {
		t.Errorf("rules %v decide", d.Rules)
	}
}

func TestDenialsPrecedeAllowances(t *testing.T) {
	rules := allOf(commandCall("git log -5"))
	never := Read(commandCall("git log")).Offers()[0]
	rules = append(rules, Standing{Covers: &never})
	for _, line := range []string{"git log -5", "git log", "git log | make", "make && git log --oneline"} {
		if d := Read(commandCall(line)).Decide(rules); d.Allow || len(d.Rules) != 1 {
			t.Errorf("%q is not denied: %+v", line, d)
		}
	}
	if d := Read(commandCall("make")).Decide(rules); len(d.Rules) > 0 {
		t.Errorf("rules decide make: %+v", d)
	}
}

func TestOffersOfFiles(t *testing.T) {
	for file, want := range map[string][]string{
		testFolder + "/src/a.go": {"src/a.go", "src/**/*.go", "src/**", "**/*.go", "**"},
		"src/a.go":               {"src/a.go", "src/**/*.go", "src/**", "**/*.go", "**"},
		"Makefile":               {"Makefile", "**"},
		"app/[id]/page.tsx":      {"app/[id]/page.tsx", `app/\[id\]/**/*.tsx`, `app/\[id\]/**`, "**/*.tsx", "**"},
		".envrc":                 {".envrc"},
		".git/hooks/x":           nil,
		"/etc/passwd":            nil,
		"../x":                   nil,
		testFolder + "/../x":     nil,
		testFolder + "2/x":       nil,
		testFolder:               nil,
		"a\u200b.go":             nil,
		"git~1/config":           nil,
		`src\a.go`:               nil,
		"a.go:stream":            nil,
	} {
		var got []string
		for _, o := range Read(editCall(file)).Offers() {
			got = append(got, o.File+o.Glob)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q offers %q, want %q", file, got, want)
		}
	}
}

func TestRulesForFiles(t *testing.T) {
	const in, out = true, false
	for _, test := range []struct {
		of     string // the file that the rule was made of
		offer  int
		file   string
		covers bool
	}{
		{"src/a.go", 0, "src/a.go", in}, {"src/a.go", 0, testFolder + "/src/a.go", in}, {"src/a.go", 0, "src/b.go", out}, {"src/a.go", 0, "src/a.go/x", out},
		{"src/a.go", 1, "src/b.go", in}, {"src/a.go", 1, "src/x/y/b.go", in}, {"src/a.go", 1, "src/b.txt", out}, {"src/a.go", 1, "b.go", out}, {"src/a.go", 1, "src/.x/b.go", out},
		{"src/a.go", 2, "src/b.txt", in}, {"src/a.go", 2, "src/.env", out}, {"src/a.go", 2, "src2/b", out}, {"src/a.go", 2, "src/../b", out}, {"src/a.go", 2, "src/x/../../b", out},
		{"src/a.go", 4, "b.txt", in}, {"src/a.go", 4, ".git/config", out}, {"src/a.go", 4, ".git/hooks/pre-commit", out}, {"src/a.go", 4, "x/.git/config", out}, {"src/a.go", 4, ".envrc", out},
		{"src/a.go", 4, ".claude/settings.json", out}, {"src/a.go", 4, "/etc/passwd", out}, {"src/a.go", 4, "/home/fae/x", out}, {"src/a.go", 4, "\u200c.git/config", out},
		{"src/a.go", 4, "git~1/config", out}, {"src/a.go", 4, ".git/config::$DATA", out}, {"src/a.go", 4, "x/", out}, {"src/a.go", 4, "", out},
		{"app/[id]/a.ts", 2, "app/[id]/b.ts", in}, {"app/[id]/a.ts", 2, "app/i/b.ts", out},
		{".envrc", 0, ".envrc", in}, {".envrc", 0, "src/.envrc", out},
	} {
		o := Read(editCall(test.of)).Offers()[test.offer]
		if got := allows([]Standing{{Covers: &o, Allow: true}}, editCall(test.file)); got != test.covers {
			t.Errorf("the rule %q covers %q: %t", Words(&o), test.file, got)
		}
	}
	o := Read(editCall("a.go")).Offers()[0]
	rules := []Standing{{Covers: &o, Allow: true}}
	for _, input := range []string{
		`{"file_path":"a.go","command":"x"}`, `{"path":"a.go"}`, `{"file_path":["a.go"]}`, `{"notebook_path":"a.go"}`, `"a.go"`,
	} {
		if allows(rules, &parley.Permission{Tool: "Edit", Input: input, Folder: testFolder}) {
			t.Errorf("a rule for a file covers %s", input)
		}
	}
	if allows(rules, &parley.Permission{Tool: "Edit", Input: `{"file_path":"a.go"}`, Folder: "/elsewhere"}) {
		t.Error("a rule for a file covers one in another folder")
	}
}

func TestEditsOfTheAgentClientProtocol(t *testing.T) {
	call := func(input string) *parley.Permission {
		return &parley.Permission{Tool: EditTool, Input: input, Folder: testFolder}
	}
	const diff = `{"title":"Edit a","content":[{"type":"diff","path":"/home/fae/shop/a.go","newText":"x"}]`
	o := Read(call(diff + "}")).Offers()
	if len(o) == 0 || Words(&o[0]) != "any input for the file a.go, in /home/fae/shop" {
		t.Fatalf("offers %+v", o)
	}
	rules := []Standing{{Covers: &o[0], Allow: true}}
	for input, want := range map[string]bool{
		diff + `,"rawInput":{"file_path":"/home/fae/shop/a.go","new_string":"y"}}`: true,
		diff + `,"rawInput":{"file_path":"/etc/passwd"}}`:                          false,
		diff + `,"description":"to fix"}`:                                          true,
		diff + `,"rawInput":{"command":"rm"}}`:                                     false,
		diff + `,"more":1}`:                                                        false,
		`{"content":[{"type":"diff","path":"/home/fae/shop/a.go"},{"type":"diff","path":"/home/fae/shop/b.go"}]}`: false,
		`{"content":[{"type":"diff","path":"/home/fae/shop/a.go"},{"type":"content"}]}`:                           false,
		`{"content":[]}`: false, `{}`: false,
	} {
		if got := allows(rules, call(input)); got != want {
			t.Errorf("%s is allowed: %t", input, got)
		}
	}
}

func TestReadingsOfTheAgentClientProtocol(t *testing.T) {
	call := func(input string) *parley.Permission {
		return &parley.Permission{Tool: ReadTool, Input: input, Folder: testFolder}
	}
	const reading = `{"title":"Read a","rawInput":{"file_path":"/home/fae/shop/a.go","offset":1}}`
	o := Read(call(reading)).Offers()
	if len(o) == 0 || Words(&o[0]) != "any input for the file a.go, in /home/fae/shop" {
		t.Fatalf("offers %+v", o)
	}
	rules := []Standing{{Covers: &o[0], Allow: true}}
	for input, want := range map[string]bool{
		reading:           true,
		`{"path":"a.go"}`: true,
		`{"title":"Read it","rawInput":{"absolute_path":"/home/fae/shop/a.go"}}`:        true,
		`{"title":"Read it","locations":[{"path":"/home/fae/shop/a.go"}]}`:              true,
		`{"locations":[{"path":"/home/fae/shop/a.go"},{"path":"/home/fae/shop/b.go"}]}`: false,
		`{"locations":[{"path":"a.go"}],"rawInput":{"path":"a.go"}}`:                    false,
		`{"locations":[{"path":"a.go"}],"path":"a.go"}`:                                 false,
		`{"locations":[]}`: false, `{}`: false, `{"rawInput":null}`: false,
		`{"title":"a.go","rawInput":{"path":"/etc/passwd"}}`:                    false,
		`{"title":"a.go","rawInput":{"path":"a.go","file_path":"/etc/passwd"}}`: false,
		`{"title":"a.go","rawInput":{"path":"../shop/a.go"}}`:                   false,
		`{"title":"a.go","rawInput":{"path":"a.go","command":"rm"}}`:            false,
		`{"title":"a.go","rawInput":{"path":"a.go"},"content":[]}`:              false,
		`{"title":"a.go","path":"a.go"}`:                                        false,
	} {
		if got := allows(rules, call(input)); got != want {
			t.Errorf("%s is allowed: %t", input, got)
		}
	}
	if allows(rules, &parley.Permission{Tool: "edit", Input: `{"path":"a.go"}`, Folder: testFolder}) {
		t.Error("a rule for reading covers an edit")
	}
}

func TestDuplicateKeysAreRefused(t *testing.T) {
	for input, fine := range map[string]bool{
		`{"command":"ls","command":"rm"}`: false, `{"a":{"b":1,"b":2}}`: false, `[{"a":1},{"a":1,"\u0061":2}]`: false, `{"a":[{"b":1,"b":1}]}`: false,
		`{"a":{"a":{"a":1}}}`: true, `{"a":"a","b":["a","a"]}`: true, `[1,2,{"a":null}]`: true, `"x"`: true, `null`: true, `1`: true, `{}`: true, `{"a":1,"b":{"a":2},"c":3}`: true,
		``: false, `{`: false, `{} {}`: false, strings.Repeat("[", 65) + strings.Repeat("]", 65): false, strings.Repeat("[", 64) + strings.Repeat("]", 64): true,
	} {
		if err := CheckInput(input); (err == nil) != fine {
			t.Errorf("%s: %v", input, err)
		}
	}
	for folder, fine := range map[string]bool{"": true, "/": true, "/a/b": true, "a": false, "/a/": false, "/a/../b": false, "/a\x00": false, "/a\xff": false, "/" + strings.Repeat("a", maxFolder): false} {
		if err := CheckFolder(folder); (err == nil) != fine {
			t.Errorf("%q: %v", folder, err)
		}
	}
}

func TestWordsOfUnusualRules(t *testing.T) {
	if got := VeryCall("/a\u202eb"); got != `exactly this call, in "/a\u202eb"` {
		t.Error(got)
	}
	if len(Read(&parley.Permission{Tool: "Bash", Input: `{"command":"ls"}`, Folder: "/a\u202eb"}).Offers()) > 0 {
		t.Error("a rule is offered for a folder with invisible characters")
	}
	if got := Words(&events.Coverage{Kind: "later"}); !strings.Contains(got, "does not know") {
		t.Error(got)
	}
	if allows([]Standing{{Covers: &events.Coverage{Kind: "later"}, Allow: true}}, &parley.Permission{Tool: "x", Input: "1"}) {
		t.Error("a rule of an unknown kind covers a call")
	}
}
