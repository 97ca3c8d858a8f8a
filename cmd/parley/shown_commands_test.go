package main

import (
	"bytes"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommandsOnPagesExist reads the commands that the page tells people to type. Each has to be a command with such flags.
func TestCommandsOnPagesExist(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../gateway/web/assets/templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`<code>parley ([^<{]+)</code>`)
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			found++
			words, _, _ := strings.Cut(html.UnescapeString(m[1]), " -- ") // what follows is the command of a program
			var out, errs bytes.Buffer
			p := &program{
				environment: environment{stdout: &out, stderr: &errs, lookup: func(string) (string, bool) { return "", false }},
				args:        append(strings.Fields(words), "--help"),
			}
			if code := p.run(t.Context()); code != exitDone {
				t.Errorf("%s shows parley %s: %s", filepath.Base(page), m[1], errs.String())
			}
		}
	}
	if found == 0 {
		t.Error("no page shows a command")
	}
}
