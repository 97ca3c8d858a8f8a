package rule

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley"
)

// bareRepository is a repository of git in plain files. Its config has git run a program.
func bareRepository(marker string) map[string]string {
	return map[string]string{
		"HEAD":         "ref: refs/heads/main\n",
		"config":       "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"touch " + marker + " #\"\n",
		"objects/keep": "",
		"refs/keep":    "",
	}
}

func writeCall(folder, file string) *parley.Permission {
	input, _ := json.Marshal(map[string]string{"file_path": filepath.Join(folder, file), "content": "x"})
	return &parley.Permission{Tool: "Write", Input: string(input), Folder: folder}
}

// TestFileRulesMakeNoRepository has an agent make a repository in its folder by the widest rule for files, and run git by a
// rule for git status. The attack works without the rules' exception, by the git of this machine.
func TestFileRulesMakeNoRepository(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git: ", err)
	}
	for name, mayWrite := range map[string]func(rules []Standing, c *parley.Permission) bool{
		"every file":           func([]Standing, *parley.Permission) bool { return true },
		"what the rules allow": allows,
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "shop")
			marker := filepath.Join(t.TempDir(), "ran")
			rules := allOf(writeCall(folder, "notes/today.txt"))
			status := &parley.Permission{Tool: "Bash", Input: `{"command":"git status"}`, Folder: folder}
			rules = append(rules, allOf(status)...)
			if !allows(rules, writeCall(folder, "any/other.md")) || !allows(rules, status) {
				t.Fatal("the rules allow neither")
			}
			for file, content := range bareRepository(marker) {
				path := filepath.Join(folder, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if !mayWrite(rules, writeCall(folder, file)) {
					continue
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			git := exec.CommandContext(t.Context(), "git", "status")
			git.Dir = folder
			git.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder))
			out, _ := git.CombinedOutput() // it fails where there is no repository
			_, err := os.Stat(marker)
			if ran := err == nil; ran != (name == "every file") {
				t.Errorf("git has run the program: %v\n%s", ran, out)
			}
		})
	}
}

// TestRepositoryFilesAreNotOffered checks which files rules for writing leave out.
func TestRepositoryFilesAreNotOffered(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"HEAD", "head", "sub/HEAD", "sub/deep/Head", "config", "CONFIG", "con\ufb01g", "config.worktree", "commondir", "packed-refs", "HEAD\u3164", "\uff28EAD\u115f",
		"objects/keep", "objects/info/alternates", "refs/heads/main", "Refs/heads/main", "hooks/pre-push", "hoo\u212as/pre-push", "a/hooks/post-index-change",
		".git/config", ".git/hooks/pre-push", "sub/.GIT/config",
	} {
		for _, tool := range []string{"Write", "Edit"} {
			c := writeCall(testFolder, file)
			c.Tool = tool
			if tool == "Edit" {
				c.Input = strings.Replace(c.Input, `"content"`, `"new_string"`, 1)
			}
			if offers := Read(c).Offers(); len(offers) > 0 {
				t.Errorf("%s %q: rules are offered: %s", tool, file, Words(&offers[0]))
			}
			if allows(allOf(writeCall(testFolder, "main.go")), c) {
				t.Errorf("%s %q is allowed by a rule for all files", tool, file)
			}
		}
	}
	for _, file := range []string{
		"header.go", "HEAD.md", "config.yml", "config/app.yml", "config/database", "src/hooks/useCart.ts", "objects/cube.js", "refs/paper.bib", "myconfig", "docs/git.md",
	} {
		if !allows(allOf(writeCall(testFolder, "main.go")), writeCall(testFolder, file)) {
			t.Errorf("%q is not allowed by a rule for all files", file)
		}
	}
	read := func(file string) *parley.Permission {
		input, _ := json.Marshal(map[string]string{"file_path": filepath.Join(testFolder, file)})
		return &parley.Permission{Tool: "Read", Input: string(input), Folder: testFolder}
	}
	if !allows(allOf(read("main.go")), read("config")) {
		t.Error("config may not be read by a rule for all files")
	}
}

// TestDenialsOfFilesCoverRepositories checks that a rule that denies leaves nothing out.
func TestDenialsOfFilesCoverRepositories(t *testing.T) {
	t.Parallel()
	for _, s := range allOf(writeCall(testFolder, "main.go")) {
		s.Allow = false
		if s.Covers.Glob != "**" {
			continue
		}
		if d := Read(writeCall(testFolder, "HEAD")).Decide([]Standing{s}); d.Allow || len(d.Rules) != 1 {
			t.Errorf("HEAD is not denied by %s", Words(s.Covers))
		}
	}
}
