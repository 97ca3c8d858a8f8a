package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxInput bounds the inputs that are kept, in bytes.
const maxInput = 2 << 10

// target is one fuzz target.
type target struct{ folder, name string }

func main() {
	took := flag.Duration("for", time.Minute, "the `time` of each target")
	keep := flag.Int("keep", 0, "the most inputs of a target in testdata")
	flag.Parse()
	all, err := targets()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := 0
	for _, t := range all {
		if !strings.Contains(t.folder+" "+t.name, flag.Arg(0)) {
			continue
		}
		last, err := t.run(*took)
		if err == nil && *keep > 0 {
			err = t.keep(*keep)
		}
		fmt.Printf("%-24s %-20s %s\n", t.folder, t.name, last)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

var declared = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// targets returns all targets of the module.
func targets() (all []target, err error) {
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		b, err := os.ReadFile(name)
		for _, m := range declared.FindAllSubmatch(b, -1) {
			all = append(all, target{filepath.ToSlash(filepath.Dir(name)), string(m[1])})
		}
		return err
	})
	return all, err
}

// run runs the target, and returns its last report. An input that reaches new code is minimized with few runs: the default of
// a minute each would leave no time for other inputs.
func (t target) run(took time.Duration) (last string, err error) {
	c := exec.Command("go", "test", "./"+t.folder, "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", took.String(),
		"-fuzzminimizetime", "50x", "-parallel", "1", "-timeout", (took + 10*time.Minute).String())
	out, err := c.CombinedOutput()
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("fuzz: elapsed:")) {
			last = strings.TrimSpace(string(line))
		}
	}
	if late := bytes.Contains(out, []byte("context deadline exceeded")) && !bytes.Contains(out, []byte("Failing input")); err != nil && !late { // go test may end its own run too late
		return last, fmt.Errorf("%s in %s: %w\n%s", t.name, t.folder, err, out)
	}
	return last, nil
}

// keep copies inputs from the cache of go test until testdata has so many.
func (t target) keep(most int) error {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return err
	}
	from := filepath.Join(strings.TrimSpace(string(cache)), "fuzz", "parley", filepath.FromSlash(t.folder), t.name)
	to := filepath.Join(filepath.FromSlash(t.folder), "testdata", "fuzz", t.name)
	there, err := os.ReadDir(to)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	found, err := os.ReadDir(from)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var inputs [][]byte
	for _, f := range found {
		b, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			return err
		}
		if len(b) <= maxInput {
			inputs = append(inputs, b)
		}
	}
	slices.SortFunc(inputs, func(a, b []byte) int { return cmp.Or(len(a)-len(b), bytes.Compare(a, b)) })
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	room := max(0, min(most-len(there), len(inputs)))
	for i := range room { // of all sizes
		b := inputs[i*len(inputs)/room]
		if err := os.WriteFile(filepath.Join(to, fmt.Sprintf("kept-%02d", len(there)+i)), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
