package parley_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms says which rooms each room may import from. Doors open one way.
var rooms = map[string][]string{
	".":            {},
	"capabilities": {"."},
	"events":       {".", "capabilities"},
	"mailbox":      {".", "capabilities", "events"},
	"persistence":  {".", "capabilities", "events"},
	"actors":       {".", "capabilities", "events", "mailbox", "persistence"},
	"gateway":      {".", "capabilities", "events", "mailbox", "persistence", "actors"},
	"cmd":          {".", "capabilities", "events", "mailbox", "persistence", "actors", "gateway"},
}

// pure lists what the packages of the rooms that decide may import from elsewhere: nothing that reads a clock, a disk,
// a network or randomness. A package in one of these rooms that is not listed imports nothing. Of doublestar only what
// matches text is pure: see notPure.
var pure = map[string][]string{
	"capabilities": {
		"bytes", "encoding/base64", "encoding/binary", "encoding/json", "errors", "fmt", "io", "maps", "math", "net/url", "slices",
		"strconv", "strings", "sync", "time", "unicode", "unicode/utf8",
		"github.com/nats-io/nkeys", "github.com/oklog/ulid/v2", "github.com/vmihailenco/msgpack/v5", "github.com/vmihailenco/msgpack/v5/msgpcode",
	},
	"events": {
		"bytes", "crypto/sha256", "encoding/binary", "encoding/json", "errors", "fmt",
		"github.com/oklog/ulid/v2", "github.com/vmihailenco/msgpack/v5", "github.com/vmihailenco/msgpack/v5/msgpcode",
	},
	"mailbox": {
		"bytes", "cmp", "container/heap", "crypto/sha256", "encoding/hex", "encoding/json", "errors", "fmt", "io", "iter", "maps", "math", "math/big", "regexp", "regexp/syntax", "slices", "sort", "strconv", "strings", "time",
		"unicode", "unicode/utf8",
		"github.com/santhosh-tekuri/jsonschema/v6", "github.com/santhosh-tekuri/jsonschema/v6/kind", "github.com/vmihailenco/msgpack/v5",
		"golang.org/x/text/language", "golang.org/x/text/message",
	},
	"mailbox/rule": {
		"bytes", "encoding/json", "fmt", "io", "path", "slices", "strconv", "strings", "unicode", "unicode/utf8",
		"github.com/bmatcuk/doublestar/v4", "mvdan.cc/sh/v3/syntax",
	},
}

// notPure are the functions that pure packages do not call: those of package time that read a clock, and those of
// doublestar that read a disk.
var notPure = []string{
	"doublestar.Glob", "doublestar.FilepathGlob", "doublestar.PathMatch",
	"time.Now(", "time.Since(", "time.Until(", "time.Sleep(", "time.After(", "time.NewTimer(", "time.Tick(",
}

func TestImportsRunOneWay(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		room := strings.Split(filepath.ToSlash(path), "/")[0]
		if strings.HasSuffix(room, ".go") {
			room = "."
		}
		doors, known := rooms[room]
		if !known {
			t.Errorf("%s: no room of the house", path)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			checkImport(t, path, room, doors, imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkImport(t *testing.T, path, room string, doors []string, imported string) {
	t.Helper()
	if imported == "parley" || strings.HasPrefix(imported, "parley/") {
		target := strings.Split(strings.TrimPrefix(strings.TrimPrefix(imported, "parley"), "/")+"/", "/")[0]
		if target == "" {
			target = "."
		}
		if target != room && !slices.Contains(doors, target) {
			t.Errorf("%s imports %s: that door opens the other way", path, imported)
		}
		return
	}
	if _, isPure := pure[room]; isPure && !slices.Contains(pure[packageOf(path)], imported) {
		t.Errorf("%s imports %s: %s is pure", path, imported, room)
	}
}

// packageOf gives the folder of a file.
func packageOf(file string) string { return filepath.ToSlash(filepath.Dir(file)) }

// TestPureRoomsReadNoClock walks the rooms that decide, with every package in them.
func TestPureRoomsReadNoClock(t *testing.T) {
	read := map[string]bool{}
	for room := range pure {
		err := filepath.WalkDir(room, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			read[packageOf(path)] = true
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, call := range notPure {
				if strings.Contains(string(src), call) {
					t.Errorf("%s calls %s", path, call)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for room := range pure {
		if !read[room] {
			t.Errorf("%s has no files", room)
		}
	}
	for pkg := range read {
		if _, listed := pure[pkg]; !listed {
			t.Errorf("%s is in a pure room, and what it may import is not listed", pkg)
		}
	}
}
