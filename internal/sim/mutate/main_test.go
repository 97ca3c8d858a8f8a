package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPatchesApplyAndBuild applies each patch to copies of its files, and builds their packages. Patches of different
// files are built at once.
func TestPatchesApplyAndBuild(t *testing.T) {
	t.Chdir("../../..")
	patches, err := filepath.Glob(filepath.Join(mutations, "*.patch"))
	if err != nil || len(patches) == 0 {
		t.Fatalf("there are no patches: %v", err)
	}
	var groups []*group
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		overlay, args, err := apply(string(text), folder)
		if err != nil {
			t.Errorf("%s: %v", patch, err)
			continue
		}
		if _, err := os.Stat(args[0]); err != nil {
			t.Errorf("%s: its test has no package: %v", patch, err)
		}
		body, err := os.ReadFile(overlay)
		if err != nil {
			t.Fatal(err)
		}
		var files replaced
		if err := json.Unmarshal(body, &files); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(groups, func(g *group) bool { return g.takes(files) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{files: replaced{Replace: map[string]string{}}})
		}
		groups[at].add(patch, string(text), files)
	}
	for _, g := range groups {
		g.build(t)
	}
}

// replaced is an overlay: files that stand for those of the tree.
type replaced struct{ Replace map[string]string }

// group has patches of different files.
type group struct {
	patches, packages []string
	files             replaced
}

// takes reports whether the group changes none of the files.
func (g *group) takes(files replaced) bool {
	for name := range files.Replace {
		if _, changed := g.files.Replace[name]; changed {
			return false
		}
	}
	return true
}

func (g *group) add(patch, text string, files replaced) {
	g.patches = append(g.patches, filepath.Base(patch))
	g.packages = append(g.packages, packagesOf(text)...)
	maps.Copy(g.files.Replace, files.Replace)
}

// build builds the packages that the group changes.
func (g *group) build(t *testing.T) {
	t.Helper()
	body, err := json.Marshal(g.files)
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlay, body, 0o600); err != nil {
		t.Fatal(err)
	}
	slices.Sort(g.packages)
	build := exec.Command("go", append([]string{"build", "-overlay", overlay}, slices.Compact(g.packages)...)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("one of %s does not build: %v\n%s", strings.Join(g.patches, ", "), err, out)
	}
}

// packagesOf returns the packages of the files that a patch changes.
func packagesOf(text string) (all []string) {
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); ok {
			all = append(all, "./"+filepath.Dir(name))
		}
	}
	return all
}

// TestApplyRefusesAStalePatch applies a patch whose lines are not in the file.
func TestApplyRefusesAStalePatch(t *testing.T) {
	t.Chdir("../../..")
	text := "test: ./mailbox\n\n--- a/go.mod\n+++ b/go.mod\n@@ -1,1 +1,1 @@\n-module another\n+module parley\n"
	if _, _, err := apply(text, t.TempDir()); err == nil || !strings.Contains(err.Error(), "does not apply") {
		t.Errorf("it is applied: %v", err)
	}
}
