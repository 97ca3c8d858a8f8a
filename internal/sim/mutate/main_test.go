package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPatchesApplyAndBuild applies each patch to copies of its files, and builds their packages.
func TestPatchesApplyAndBuild(t *testing.T) {
	t.Chdir("../../..")
	patches, err := filepath.Glob(filepath.Join(mutations, "*.patch"))
	if err != nil || len(patches) == 0 {
		t.Fatalf("there are no patches: %v", err)
	}
	for _, patch := range patches {
		t.Run(strings.TrimSuffix(filepath.Base(patch), ".patch"), func(t *testing.T) {
			text, err := os.ReadFile(patch)
			if err != nil {
				t.Fatal(err)
			}
			overlay, args, err := apply(string(text), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(args[0]); err != nil {
				t.Errorf("its test has no package: %v", err)
			}
			build := exec.Command("go", append([]string{"build", "-overlay", overlay}, packagesOf(string(text))...)...)
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("it does not build: %v\n%s", err, out)
			}
		})
	}
}

// packagesOf returns the packages of the files that a patch changes.
func packagesOf(text string) (all []string) {
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/"); ok {
			all = append(all, "./"+filepath.Dir(name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestApplyRefusesAStalePatch applies a patch whose lines are not in the file.
func TestApplyRefusesAStalePatch(t *testing.T) {
	t.Chdir("../../..")
	text := "test: ./mailbox\n\n--- a/go.mod\n+++ b/go.mod\n@@ -1,1 +1,1 @@\n-module another\n+module parley\n"
	if _, _, err := apply(text, t.TempDir()); err == nil || !strings.Contains(err.Error(), "does not apply") {
		t.Errorf("it is applied: %v", err)
	}
}
