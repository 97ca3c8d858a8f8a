package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const mutations = "internal/sim/testdata/mutations"

func main() {
	word := ""
	if len(os.Args) > 1 {
		word = os.Args[1]
	}
	patches, err := filepath.Glob(filepath.Join(mutations, "*"+word+"*.patch"))
	if err != nil || len(patches) == 0 {
		fmt.Fprintf(os.Stderr, "no patch in %s has %q in its name\n", mutations, word)
		os.Exit(2)
	}
	status := 0
	for _, patch := range patches {
		began := time.Now()
		found, err := run(patch)
		if err != nil {
			found, status = "NOT FOUND: "+err.Error(), 1
		}
		fmt.Printf("%-34s %6.1fs  %s\n", strings.TrimSuffix(filepath.Base(patch), ".patch"), time.Since(began).Seconds(), found)
	}
	os.Exit(status)
}

// run builds and runs the test of a patch. It returns the line with which the test fails.
func run(patch string) (found string, err error) {
	text, err := os.ReadFile(patch)
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	overlay, args, err := apply(string(text), folder)
	if err != nil {
		return "", err
	}
	test := exec.Command("go", append([]string{"test", "-overlay", overlay}, args...)...)
	test.Env = append(os.Environ(), "RAPID_NOFAILFILE=true") // the failure is of the broken rule
	out, err := test.CombinedOutput()
	switch {
	case err == nil:
		return "", errors.New("the test passes")
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return "", fmt.Errorf("it does not build: %s", out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, ".go:") || strings.Contains(line, "panic:") || strings.Contains(line, "fatal error:") {
			return strings.TrimSpace(line), nil
		}
	}
	return "", fmt.Errorf("the test does not say why it fails: %s", out)
}

// apply applies a patch to copies of the files, in a folder. It returns the overlay with them, and the arguments of the
// test.
func apply(text, folder string) (overlay string, args []string, err error) {
	replace := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if words, ok := strings.CutPrefix(line, "test:"); ok {
			args = strings.Fields(words)
		}
		name, ok := strings.CutPrefix(line, "+++ b/")
		if !ok {
			continue
		}
		body, err := os.ReadFile(name)
		if err != nil {
			return "", nil, err
		}
		broken := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(broken), 0o700), os.WriteFile(broken, body, 0o600)); err != nil {
			return "", nil, err
		}
		whole, err := filepath.Abs(name)
		if err != nil {
			return "", nil, err
		}
		replace[whole] = broken
	}
	if len(args) == 0 || len(replace) == 0 {
		return "", nil, errors.New("the patch names no test, or no file")
	}
	git := exec.Command("git", "apply", "-")
	git.Dir, git.Stdin = folder, strings.NewReader(text)
	if out, err := git.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("it does not apply: %s", out)
	}
	body, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, args, os.WriteFile(overlay, body, 0o600)
}
