package parley_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatsAreProved checks that the tests exist that docs/security.md and docs/testing.md name.
func TestThreatsAreProved(t *testing.T) {
	list, err := exec.Command("git", "ls-files", "*_test.go").Output()
	if err != nil {
		t.Skip("the files of the repository are unknown: ", err)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, path := range strings.Fields(string(list)) {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // removed, and not committed yet
		}
		for _, m := range declared.FindAllSubmatch(b, -1) {
			if name := string(m[1]); there[name] && strings.HasPrefix(name, "Fuzz") {
				t.Errorf("two targets are called %s: a document cannot name one", name)
			}
			there[string(m[1])] = true
		}
	}
	scripts, err := filepath.Glob("cmd/parley/testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range scripts {
		there["TestScripts/"+strings.TrimSuffix(filepath.Base(path), ".txtar")] = true
	}
	named := map[string]bool{}
	for _, page := range []string{"docs/security.md", "docs/testing.md"} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz)[\\w/]+)`").FindAllSubmatch(b, -1) {
			named[string(m[1])] = true
			if !there[string(m[1])] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
	if len(named) < 50 {
		t.Errorf("only %d tests are named", len(named))
	}
	for name := range there { // docs/testing.md lists all targets
		if strings.HasPrefix(name, "Fuzz") && !named[name] {
			t.Errorf("no document names %s", name)
		}
	}
}
