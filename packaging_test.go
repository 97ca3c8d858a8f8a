package parley_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReleasesAreOfTheirCommit has what makes programs leave the tree as it is committed: others call themselves dirty.
func TestReleasesAreOfTheirCommit(t *testing.T) {
	t.Parallel()
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	if _, err := git("rev-parse", "--git-dir"); err != nil {
		t.Skip("this is no repository")
	}
	if _, err := git("check-ignore", "-q", filepath.Join("dist", "config.yaml")); err != nil {
		t.Errorf("git does not ignore dist, where goreleaser writes before it builds: %v", err)
	}
	left, err := git("ls-files", "--cached", "--ignored", "--exclude-from", filepath.Join("packaging", "Containerfile.dockerignore"))
	if err != nil || left != "" {
		t.Errorf("the container is built without these files of the commit: %.200s, %v", left, err)
	}
}
