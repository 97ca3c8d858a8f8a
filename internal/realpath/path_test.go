package realpath_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/internal/realpath"
)

func TestPathsLeadWhereTheSystemOpens(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	for _, folder := range []string{"real/deep", "other"} {
		if err := os.MkdirAll(at(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"link": "real", "deep": at("real", "deep"), "gone": "real/new.go", "real/up": "../other", "round": "round", "chain": "link/deep",
	} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Skip(err)
		}
	}
	for path, want := range map[string]string{
		"real/a.go":         "real/a.go",
		"link/a.go":         "real/a.go",
		"link/none/a.go":    "real/none/a.go",
		"gone":              "real/new.go", // what a write would make
		"real/up/a.go":      "other/a.go",
		"chain/a.go":        "real/deep/a.go",
		"deep/../a.go":      "real/a.go", // as the system does, and not a.go
		"other/../real/b":   "real/b",
		"./real//./deep/./": "real/deep",
		"round/x":           "round/x",
	} {
		if got := realpath.Of(root + "/" + path); got != at(want) {
			t.Errorf("%s leads to %s, want %s", path, got, at(want))
		}
	}
	got := realpath.All(root + "/deep/../a.go")
	if want := []string{filepath.ToSlash(at("a.go")), filepath.ToSlash(at("real/a.go"))}; !slices.Equal(got, want) {
		t.Errorf("all names are %v, want %v", got, want)
	}
}

// TestCaseIsSeen makes the same file reachable in both cases, as systems do that fold them.
func TestCaseIsSeen(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"src", "plain"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	err := os.Symlink("src", filepath.Join(root, "SRC"))
	if folds := realpath.FoldsCase(filepath.Join(root, "plain", "not", "there")); err == nil && folds {
		t.Error("a folder with one name has two")
	}
	if !realpath.FoldsCase(filepath.Join(root, "src")) || !realpath.FoldsCase(filepath.Join(root, "src", "not-there", "a.go")) {
		t.Error("a folder with both names has one")
	}
}
