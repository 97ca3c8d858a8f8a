package call_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/gateway/call"
)

// TestCommandsTouchWhatTheyName reads which files the words of a command line have it change, and which it may.
func TestCommandsTouchWhatTheyName(t *testing.T) {
	for _, c := range []struct{ line, files, trees, maybe string }{
		{line: "ls src && cat src/a.go | grep x src"},
		{line: "echo src/a.go"},
		{line: "git status; git diff src; git add src; git commit -m src"},
		{line: "echo x > src/a.go", files: "/w/src/a.go"},
		{line: "echo x >> 'src/a b.go' 2>/dev/null", files: "/w/src/a b.go"},
		{line: "cat a | tee src/a.go", files: "/w/src/a.go"},
		{line: "cd src && echo x > a.go", files: "/w/src/a.go"},
		{line: "(cd src; touch a); touch b", files: "/w/src/a /w/b"},
		{line: "echo x > ../other/a", files: "/other/a"},
		{line: "echo x > ~/a", files: "~/a"},
		{line: "cd src && apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n*** End Patch\nEOF", files: "/w/src/a.go /w/src/b.go"},
		{line: "apply_patch '*** Begin Patch\n*** Delete File: /x/a.go\n*** End Patch'", files: "/x/a.go"},
		{line: "rm -rf src", trees: "/w/src"},
		{line: "rm src/*.go", trees: "/w/src/*.go"},
		{line: "rm src/[ab].go", maybe: "/w/src"},
		{line: "rm src/$name", maybe: "/w/src"},
		{line: "rm $name", maybe: "/w"},
		{line: "sudo rm -r src", trees: "/w/src", maybe: "/w/rm /w/src"},
		{line: "mv src/a.go src/b.go", files: "/w/src/b.go", trees: "/w/src/a.go /w/src/b.go/a.go"},
		{line: "cp x/a.go src/", files: "/w/src /w/src/a.go"},
		{line: "cp -t src x/a.go", files: "/w/src /w/src/a.go"},
		{line: "cp -r x src", files: "/w/src", trees: "/w/src/x", maybe: "/w/src"},
		{line: "sed -i s/a/b/ src/a.go", files: "/w/s/a/b /w/src/a.go"},
		{line: "sed s/a/b/ src/a.go"},
		{line: "chmod 600 src/a.go", files: "/w/src/a.go"},
		{line: "dd if=a of=src/a", files: "/w/src/a"},
		{line: "curl -o src/a https://example.com", files: "/w/src/a"},
		{line: "git checkout -- src/a.go", trees: "/w/src/a.go"},
		{line: "git -C src restore a.go", trees: "/w/src/a.go"},
		{line: "git checkout main", maybe: "/w/main /w"},
		{line: "git reset --hard", maybe: "/w"},
		{line: "find src -name '*.go' -delete", maybe: "/w/src"},
		{line: "ls | xargs rm", maybe: "/w"},
		{line: "gofmt -w src/a.go", maybe: "/w/src/a.go"},
		{line: "make CC=src/cc OUT=src", maybe: "/w/CC=src/cc /w/OUT=src"},
		{line: "tool --out=src/a", maybe: "/w/src/a"},
		{line: "bash -c 'echo x > src/a'", files: "/w/src/a", maybe: "/w/echo x > src/a"},
		{line: "eval \"rm src/a\"", trees: "/w/src/a"},
		{line: "$tool src/a", maybe: "/w"},
		{line: "if (", maybe: "/w"},
	} {
		input, err := json.Marshal(map[string]string{"command": c.line})
		if err != nil {
			t.Fatal(err)
		}
		got := call.Touches("Bash", string(input), "/w")
		for name, is := range map[string][2]string{
			"writes": {strings.Join(got.Files, " "), c.files}, "changes": {strings.Join(got.Trees, " "), c.trees}, "may change": {strings.Join(got.Maybe, " "), c.maybe},
		} {
			if is[0] != is[1] {
				t.Errorf("%s %s %q, want %q", c.line, name, is[0], is[1])
			}
		}
	}
}

// TestTouchesAreOfCommandsAlone reads no command line where a tool has none, and that of Codex in words.
func TestTouchesAreOfCommandsAlone(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"touch a"}`, "/w/a"},
		{"Bash", `{"command":["bash","-lc","touch a"],"workdir":"/w/s"}`, "/w/s/a"},
		{"shell", `{"command":["touch","a b"]}`, "/w/a b"},
		{"apply_patch", `{"command":"touch a"}`, ""},
		{"mcp__x__run", `{"command":"touch a"}`, ""},
		{"Edit", `{"file_path":"a"}`, ""},
		{"Bash", `{"command":"touch a","command":"ls"}`, ""},
		{"Bash", `garbage`, ""},
	} {
		if got := call.Touches(c.tool, c.input, "/w"); strings.Join(got.Files, " ") != c.want {
			t.Errorf("%s of %s writes %q", c.tool, c.input, got.Files)
		}
	}
	for _, input := range []string{`{"command":"touch a","command":"ls"}`, `garbage`} {
		if got := call.Touches("Bash", input, "/w"); !slices.Equal(got.Maybe, []string{"/w"}) {
			t.Errorf("%s, which is not understood, may write %q", input, got.Maybe)
		}
	}
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, "touch file-%d; ", i)
	}
	input, _ := json.Marshal(map[string]string{"command": many.String()[:many.Len()-2]})
	if got := call.Touches("Bash", string(input), "/w"); len(got.Files) > 64 || !slices.Contains(got.Maybe, "/w") {
		t.Errorf("a line of very many files writes %d, and may write %q", len(got.Files), got.Maybe)
	}
}
