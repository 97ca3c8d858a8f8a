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

// pure lists what the rooms that decide may import from elsewhere: nothing that reads a clock, a disk, a
// network or randomness.
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
}

// clocks are the functions of package time that pure rooms do not call.
var clocks = []string{"time.Now(", "time.Since(", "time.Until(", "time.Sleep(", "time.After(", "time.NewTimer(", "time.Tick("}

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
	if allowed, isPure := pure[room]; isPure && !slices.Contains(allowed, imported) {
		t.Errorf("%s imports %s: %s is pure", path, imported, room)
	}
}

func TestPureRoomsReadNoClock(t *testing.T) {
	for room := range pure {
		files, err := filepath.Glob(filepath.Join(room, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", room, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range clocks {
				if strings.Contains(string(src), call) {
					t.Errorf("%s calls %s)", file, call)
				}
			}
		}
	}
}
