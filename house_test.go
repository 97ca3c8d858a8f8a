package parley_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imports lists what each package may import of the module. Imports run one way. A package that is not listed fails.
var imports = map[string][]string{
	"internal/fault":        {},
	".":                     {"capabilities", "events", "internal/fault"},
	"internal/disk":         {"internal/fault"},
	"internal/regular":      {},
	"internal/realpath":     {},
	"internal/strike":       {},
	"internal/pack":         {},
	"internal/passkeytest":  {".", "events", "mailbox/passkey"},
	"internal/websocket":    {},
	"capabilities":          {"internal/fault", "internal/pack"},
	"events":                {"capabilities", "internal/pack"},
	"mailbox":               {".", "capabilities", "events", "mailbox/due", "mailbox/form", "mailbox/index", "mailbox/lease", "mailbox/origin", "mailbox/passkey", "mailbox/quota", "mailbox/right", "mailbox/rule", "mailbox/table", "mailbox/text", "mailbox/vote"},
	"mailbox/text":          {"events"},
	"mailbox/due":           {"capabilities"},
	"mailbox/form":          {".", "capabilities", "events"},
	"mailbox/form/formtest": {"events", "mailbox/form"},
	"mailbox/index":         {"capabilities"},
	"mailbox/lease":         {".", "capabilities"},
	"mailbox/origin":        {"events"},
	"mailbox/passkey":       {".", "capabilities", "events"},
	"mailbox/proof":         {".", "capabilities", "events", "mailbox", "mailbox/passkey"},
	"mailbox/quota":         {"."},
	"mailbox/right":         {".", "capabilities", "events"},
	"mailbox/table":         {},
	"mailbox/rule":          {".", "capabilities", "events"},
	"mailbox/vote":          {"capabilities", "events"},
	"mailbox/mailboxtest":   {".", "capabilities", "events", "mailbox", "mailbox/form", "mailbox/quota"},

	"persistence":               {".", "capabilities", "events", "persistence/archive", "persistence/group", "internal/disk", "internal/fair", "internal/natsauth", "internal/regular"},
	"persistence/archive":       {"capabilities", "events", "internal/regular"},
	"persistence/group":         {"capabilities", "events", "internal/regular"},
	"persistence/projection":    {"capabilities", "events"},
	"persistence/archive/store": {".", "persistence/archive", "internal/regular"},
	"persistence/disktest":      {},
	"persistence/journaltest":   {".", "capabilities", "events", "persistence"},

	"actors":                     {".", "actors/view", "capabilities", "events", "mailbox", "mailbox/due", "mailbox/form", "mailbox/passkey", "mailbox/proof", "mailbox/quota", "mailbox/right", "mailbox/rule", "mailbox/table", "mailbox/text", "persistence", "persistence/archive", "persistence/archive/store", "persistence/projection", "actors/keys", "actors/resource", "actors/runtime", "actors/runtime/acp", "actors/runtime/exec", "actors/outbox", "actors/peers", "actors/trace", "actors/transport", "internal/fair", "internal/realpath", "internal/natsauth", "internal/strike"},
	"actors/connlimit":           {},
	"actors/keys":                {".", "capabilities", "persistence", "internal/disk", "internal/regular"},
	"actors/peers":               {".", "capabilities", "events", "mailbox", "actors/peers/window", "actors/transport"},
	"actors/resource":            {".", "capabilities", "events", "mailbox"},
	"actors/outbox":              {"events", "mailbox"},
	"actors/peers/window":        {"capabilities"},
	"actors/trace":               {".", "capabilities", "events"},
	"actors/view":                {".", "capabilities", "events"},
	"actors/runtime":             {".", "capabilities", "events"},
	"actors/runtime/acp":         {".", "capabilities", "events", "mailbox/rule", "actors/runtime", "internal/elicitation"},
	"actors/runtime/exec":        {".", "capabilities", "events", "mailbox/form", "actors/runtime"},
	"actors/runtime/proctest":    {"internal/eventually"},
	"actors/runtime/runtimetest": {".", "actors/runtime", "actors/runtime/proctest", "internal/eventually"},
	"actors/transport":           {".", "capabilities", "events", "actors/connlimit", "internal/natsauth"},

	"examples/ask":    {"gateway/client"},
	"examples/answer": {".", "gateway/client"},
	"bench":           {"capabilities", "events", "gateway/api", "gateway/client"},

	"internal/elicitation": {"capabilities", "events", "mailbox/form"},
	"internal/eventually":  {},
	"internal/fair":        {},
	"internal/freeport":    {},
	"internal/natsauth":    {"."},
	"internal/sim/mutate":  {},
	"internal/fuzz":        {},
	"internal/sim":         {".", "actors/outbox", "actors/peers/window", "capabilities", "events", "mailbox", "mailbox/form", "mailbox/quota"},

	"gateway":                       {".", "actors", "actors/connlimit", "actors/runtime", "actors/view", "capabilities", "events", "persistence", "gateway/a2a", "gateway/agui", "gateway/api", "gateway/api/openapi", "gateway/backend", "gateway/bridge", "gateway/bridge/mail", "gateway/bridge/ntfy", "gateway/bridge/push", "gateway/bridge/slack", "gateway/bridge/webhook", "gateway/coding", "gateway/httpd", "gateway/sanitize", "gateway/mcp", "gateway/micro", "gateway/web", "gateway/ws", "internal/natsauth", "internal/regular"},
	"gateway/api":                   {".", "actors/view", "capabilities", "events"},
	"gateway/api/openapi":           {".", "actors/view", "capabilities", "events", "gateway/api"},
	"gateway/backend":               {".", "capabilities", "events", "mailbox", "mailbox/form", "mailbox/lease", "internal/realpath", "persistence", "persistence/archive/store", "actors", "actors/view", "gateway/api", "gateway/call", "gateway/call/risk", "gateway/coding", "gateway/passkeys", "gateway/people", "gateway/writing", "internal/fair", "mailbox/passkey"},
	"gateway/coding":                {".", "capabilities", "events", "mailbox", "actors", "actors/runtime", "actors/view", "gateway/api", "gateway/people", "gateway/sanitize", "internal/realpath", "internal/regular", "mailbox/lease"},
	"gateway/passkeys":              {".", "capabilities", "events", "mailbox/passkey"},
	"gateway/people":                {".", "actors/view", "capabilities"},
	"gateway/queue":                 {".", "actors/view", "capabilities", "gateway/call", "gateway/call/risk"},
	"gateway/bridge":                {".", "actors/view", "capabilities", "events", "gateway/api", "gateway/call", "gateway/sanitize", "internal/regular"},
	"gateway/bridge/mail":           {".", "gateway/bridge"},
	"gateway/bridge/ntfy":           {".", "gateway/bridge"},
	"gateway/bridge/push":           {".", "gateway/bridge", "gateway/call", "internal/regular"},
	"gateway/bridge/slack":          {".", "events", "mailbox/form", "gateway/api", "gateway/bridge"},
	"gateway/call":                  {".", "capabilities", "gateway/call/risk"},
	"gateway/writing":               {"gateway/api", "gateway/call", "internal/realpath", "mailbox/lease"},
	"gateway/call/risk":             {"mailbox/lease"},
	"gateway/call/calltest":         {},
	"gateway/bridge/bridgetest":     {"gateway/call/calltest", "gateway/sanitize", "internal/eventually"},
	"gateway/bridge/webhook":        {".", "capabilities", "gateway/bridge"},
	"gateway/client":                {".", "actors/view", "capabilities", "events", "gateway/api", "gateway/mux", "internal/pack", "internal/websocket"},
	"gateway/compat":                {".", "actors/view", "capabilities", "events", "mailbox", "mailbox/form", "gateway/api", "internal/fair"},
	"gateway/a2a":                   {".", "actors/view", "capabilities", "events", "gateway/api", "gateway/bridge", "gateway/exchange", "gateway/sanitize", "internal/regular"},
	"gateway/agui":                  {".", "actors/view", "gateway/api", "gateway/exchange", "gateway/httpd", "gateway/sanitize"},
	"gateway/exchange":              {".", "actors/view", "capabilities", "events", "mailbox/form", "gateway/api", "gateway/sanitize"},
	"gateway/exchange/exchangetest": {".", "actors/view", "capabilities", "events", "gateway/api"},
	"gateway/httpd":                 {".", "actors/connlimit", "gateway/api", "gateway/client"},
	"gateway/qr":                    {"."},
	"gateway/sanitize":              {},
	"gateway/web":                   {".", "actors/view", "capabilities", "events", "gateway/api", "gateway/call", "gateway/call/calltest", "gateway/call/risk", "gateway/httpd", "gateway/people", "gateway/qr", "gateway/queue", "gateway/sanitize", "internal/fair", "mailbox", "mailbox/form"},
	"gateway/mux":                   {".", "capabilities", "events", "gateway/api", "internal/pack"},
	"gateway/edgetest":              {".", "gateway/api"},
	"gateway/mcp":                   {".", "capabilities", "events", "mailbox/form", "actors/view", "gateway/api", "gateway/sanitize"},
	"gateway/micro":                 {".", "gateway/api", "gateway/httpd", "gateway/sanitize", "internal/natsauth"},
	"gateway/ws":                    {".", "actors/view", "capabilities", "gateway/api", "gateway/compat", "gateway/httpd", "gateway/mux", "internal/pack", "internal/websocket"},

	"cmd/parley": {
		".", "capabilities", "events", "mailbox", "mailbox/form", "mailbox/passkey", "mailbox/proof", "mailbox/quota", "mailbox/rule", "persistence", "actors", "actors/keys", "actors/trace", "actors/view",
		"gateway", "gateway/api", "gateway/backend", "gateway/bridge", "gateway/bridge/slack", "gateway/bridge/webhook", "gateway/client", "gateway/mcp", "gateway/people", "gateway/qr",
		"cmd/parley/bench", "cmd/parley/demo", "cmd/parley/editor", "cmd/parley/hook", "cmd/parley/interview", "cmd/parley/proc",
		"cmd/parley/service", "cmd/parley/setup", "cmd/parley/shell", "cmd/parley/show", "cmd/parley/terminal", "cmd/parley/watch", "internal/disk", "internal/natsauth", "internal/regular",
	},
	"cmd/parley/bench": {".", "capabilities", "events", "actors", "actors/view", "gateway", "gateway/api", "gateway/client", "cmd/parley/terminal", "internal/disk"},
	"cmd/parley/demo":  {".", "gateway", "gateway/api", "gateway/client", "cmd/parley/shell"},
	"cmd/parley/editor": {
		".", "actors/view", "capabilities", "events", "mailbox", "mailbox/form", "gateway/api", "gateway/client", "gateway/mcp", "gateway/sanitize",
		"cmd/parley/show", "cmd/parley/terminal",
	},
	"cmd/parley/hook":      {".", "capabilities", "events", "mailbox", "mailbox/form", "mailbox/lease", "mailbox/rule", "actors/view", "gateway/api", "gateway/client", "gateway/sanitize", "gateway/writing", "cmd/parley/terminal", "internal/elicitation", "internal/realpath", "internal/regular"},
	"cmd/parley/interview": {"capabilities", "events", "mailbox/form", "gateway/api", "cmd/parley/terminal"},
	"cmd/parley/modeltest": {},
	"cmd/parley/proc":      {},
	"cmd/parley/setup":     {".", "persistence", "cmd/parley/hook", "cmd/parley/proc", "cmd/parley/shell", "cmd/parley/terminal", "internal/regular"},
	"cmd/parley/service":   {"."},
	"cmd/parley/shell":     {"."},
	"cmd/parley/show":      {"actors/view", "capabilities", "events", "gateway/call", "gateway/call/calltest", "gateway/call/risk", "gateway/people", "gateway/queue", "mailbox", "cmd/parley/terminal"},
	"cmd/parley/terminal":  {".", "gateway/sanitize"},
	"cmd/parley/watch":     {".", "actors/view", "capabilities", "events", "gateway/api", "gateway/call/risk", "gateway/client", "gateway/people", "gateway/queue", "mailbox", "mailbox/form", "cmd/parley/show", "cmd/parley/terminal"},
}

// pure lists what the domain packages may import from outside the module: nothing that reads a clock, a disk, a
// network or randomness. Of doublestar only the functions that match text are pure: see impure.
var pure = map[string][]string{
	"internal/pack": {"encoding/binary", "math", "github.com/vmihailenco/msgpack/v5/msgpcode"},
	"capabilities": {
		"bytes", "encoding/base32", "encoding/base64", "encoding/binary", "encoding/json", "errors", "fmt", "io", "maps", "math", "net/url", "path", "slices",
		"strconv", "strings", "sync", "time", "unicode", "unicode/utf8", "unique",
		"github.com/nats-io/nkeys", "github.com/oklog/ulid/v2", "github.com/vmihailenco/msgpack/v5", "github.com/vmihailenco/msgpack/v5/msgpcode",
		"golang.org/x/text/unicode/norm",
	},
	"events": {
		"bytes", "crypto/sha256", "encoding/binary", "encoding/json", "errors", "fmt", "time",
		"github.com/oklog/ulid/v2", "github.com/vmihailenco/msgpack/v5", "github.com/vmihailenco/msgpack/v5/msgpcode",
	},
	"mailbox": {
		"bytes", "cmp", "crypto/sha256", "encoding/base64", "encoding/hex", "encoding/json", "errors", "fmt", "iter", "maps", "math", "net/netip", "net/url", "slices", "strconv", "strings", "time",
		"unicode", "unicode/utf8",
		"github.com/oklog/ulid/v2", "github.com/vmihailenco/msgpack/v5",
	},
	"mailbox/due":    {"container/heap"},
	"mailbox/proof":  {"bytes", "cmp", "crypto/ed25519", "encoding/base64", "encoding/json", "fmt", "io", "slices", "strings"},
	"mailbox/origin": {"bytes", "encoding/json", "slices", "strings"},
	"mailbox/quota":  {"encoding/json", "fmt", "math", "strconv", "strings"},
	"mailbox/right":  {"bytes", "slices"},
	"mailbox/form": {
		"bytes", "cmp", "encoding/json", "errors", "fmt", "io", "maps", "math", "math/big", "net/url", "regexp", "regexp/syntax", "slices", "strconv", "strings",
		"time", "unicode/utf8",
		"github.com/santhosh-tekuri/jsonschema/v6", "github.com/santhosh-tekuri/jsonschema/v6/kind",
	},
	"mailbox/index": {
		"cmp", "crypto/sha256", "encoding/binary", "fmt", "iter", "maps", "math", "slices",
	},
	"mailbox/vote": {"slices"},
	"mailbox/passkey": {
		"bytes", "crypto", "crypto/ecdsa", "crypto/ed25519", "crypto/elliptic", "crypto/rsa", "crypto/sha256", "crypto/x509", "encoding/base64", "encoding/binary", "encoding/json",
		"net/url", "strings",
	},
	"mailbox/lease": {"encoding/json", "path", "slices", "strings", "unicode/utf8"},
	"mailbox/text":  {"slices", "strings", "unicode", "unicode/utf8"},
	"mailbox/table": {
		"cmp", "crypto/sha256", "encoding/binary", "encoding/hex", "errors", "iter", "maps", "slices", "sort", "strings",
	},
	"mailbox/mailboxtest": {
		"cmp", "crypto/sha256", "errors", "fmt", "hash/fnv", "io", "maps", "reflect", "slices", "strconv", "strings", "time",
		"github.com/cockroachdb/datadriven", "github.com/oklog/ulid/v2", "pgregory.net/rapid",
	},
	"gateway/call": {
		"bytes", "encoding/json", "fmt", "path", "slices", "strings", "unicode", "unicode/utf8",
		"golang.org/x/text/unicode/norm", "github.com/rogpeppe/go-internal/diff", "mvdan.cc/sh/v3/syntax",
	},
	"gateway/call/risk":   {"cmp", "net/url", "path", "slices", "strings", "unicode", "golang.org/x/net/idna", "mvdan.cc/sh/v3/syntax"},
	"gateway/people":      {"cmp", "fmt", "path", "slices", "strings"},
	"gateway/queue":       {"cmp", "encoding/json", "path", "slices", "strconv", "strings", "sync", "time", "mvdan.cc/sh/v3/syntax"},
	"actors/outbox":       {"slices", "sync/atomic"},
	"actors/peers/window": {},
	"mailbox/rule": {
		"bytes", "crypto/sha256", "encoding/hex", "encoding/json", "fmt", "io", "path", "slices", "strconv", "strings", "unicode", "unicode/utf8",
		"github.com/bmatcuk/doublestar/v4", "golang.org/x/text/cases", "mvdan.cc/sh/v3/syntax",
	},
}

// impure are the functions that domain packages do not call: those of package time that read a clock, and those of
// doublestar that read a disk.
var impure = []string{
	"doublestar.Glob", "doublestar.FilepathGlob", "doublestar.PathMatch",
	"time.Now(", "time.Since(", "time.Until(", "time.Sleep(", "time.After(", "time.NewTimer(", "time.Tick(",
}

const maxMethods = 48 // of a type

// large lists the types with more than maxMethods methods, and the most that each may have. A number goes down, not up.
// The methods of the handles stand for operations; those of the others belong to one state, in a file for each noun.
var large = map[string]int{
	"actors.Agent":          55, // a handle of an agent: its own operations; nouns with several are values (Mail, Names, Rules)
	"gateway/client.Client": 84, // a handle of a node

	"cmd/parley/watch.model":      45, // the state of one screen
	"internal/sim.mailboxActor":   50,
	"internal/sim.world":          60,
	"mailbox/mailboxtest.Harness": 74,
}

// source is a Go file of the module.
type source struct {
	path string // with slashes
	pkg  string // its folder
	test bool
	text string
	tree *ast.File
}

// sources reads all Go files of the module.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		all = append(all, source{path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), text: string(text), tree: tree})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestImportsRunOneWay(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		allowed, known := imports[f.pkg]
		if !known {
			t.Errorf("%s: package %s has no entry in imports", f.path, f.pkg)
			continue
		}
		for _, spec := range f.tree.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if name == "parley" {
				name += "/."
			}
			if own, inside := strings.CutPrefix(name, "parley/"); inside {
				if !slices.Contains(allowed, own) {
					t.Errorf("%s imports %s: %s may not", f.path, own, f.pkg)
				}
			} else if isDomain(f.pkg) && !slices.Contains(pure[f.pkg], name) {
				t.Errorf("%s imports %s: %s is pure", f.path, name, f.pkg)
			}
		}
	}
}

// isDomain reports whether a package belongs to the domain, or is pure as those are.
func isDomain(pkg string) bool {
	room, _, _ := strings.Cut(pkg, "/")
	return strings.HasPrefix(pkg, "gateway/call") && pkg != "gateway/call/calltest" || pkg == "gateway/people" || pkg == "gateway/queue" || pkg == "actors/outbox" || pkg == "actors/peers/window" || room == "capabilities" || room == "events" || room == "mailbox"
}

func TestDomainPackagesReadNoClock(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || !isDomain(f.pkg) {
			continue
		}
		for _, call := range impure {
			if strings.Contains(f.text, call) {
				t.Errorf("%s calls %s", f.path, call)
			}
		}
	}
}

// hasOneGoroutine reports whether a package and its tests do all their work on the goroutine that calls them. So the race
// detector has nothing to find there, and .ci/run tests them without it.
func hasOneGoroutine(pkg string) bool {
	switch pkg {
	case ".", "events", "actors/keys", "actors/view", "gateway/call", "gateway/exchange", "gateway/people", "gateway/qr", "gateway/sanitize",
		"internal/disk", "internal/elicitation", "internal/pack", "internal/realpath", "internal/regular", "persistence/group":
		return true
	}
	return strings.HasPrefix(pkg+"/", "mailbox/") || strings.HasPrefix(pkg+"/", "internal/sim/")
}

func TestPackagesWithOneGoroutineStartNone(t *testing.T) {
	for _, f := range sources(t) {
		if !hasOneGoroutine(f.pkg) {
			continue
		}
		for _, spec := range f.tree.Imports {
			if strings.HasPrefix(spec.Path.Value, `"sync`) {
				t.Errorf("%s imports %s", f.path, spec.Path.Value)
			}
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if _, starts := n.(*ast.GoStmt); starts {
				t.Errorf("%s starts a goroutine", f.path)
			}
			return true
		})
	}
}

// TestNoTypeDoesEverything counts the methods of types.
func TestNoTypeDoesEverything(t *testing.T) {
	methods := map[string]int{}
	for _, f := range sources(t) {
		for _, d := range f.tree.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && !f.test && d.Recv != nil {
				methods[f.pkg+"."+receiver(d.Recv.List[0].Type)]++
			}
		}
	}
	for name, n := range methods {
		if most := cmp.Or(large[name], maxMethods); n > most {
			t.Errorf("%s has %d methods, over %d", name, n, most)
		}
	}
}

// TestExportedIdentifiersHaveComments requires a comment that begins with the name for each exported function, type and
// method, and for each single constant and variable. A group may share one comment.
func TestExportedIdentifiersHaveComments(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		for _, d := range f.tree.Decls {
			for name, doc := range exportedIn(d) {
				text := doc.Text()
				for _, article := range []string{"A ", "An ", "The "} {
					text = strings.TrimPrefix(text, article)
				}
				if rest, named := strings.CutPrefix(text, name); !named || rest != "" && token.IsIdentifier(name+rest[:1]) {
					t.Errorf("%s: the comment of %s does not begin with its name", f.path, name)
				}
			}
		}
	}
}

// exportedIn returns the comments of the exported identifiers that a declaration declares.
func exportedIn(d ast.Decl) map[string]*ast.CommentGroup {
	docs := map[string]*ast.CommentGroup{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if ast.IsExported(d.Name.Name) && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
			docs[d.Name.Name] = d.Doc
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if ast.IsExported(s.Name.Name) {
					docs[s.Name.Name] = s.Doc
					if !d.Lparen.IsValid() {
						docs[s.Name.Name] = d.Doc
					}
				}
			case *ast.ValueSpec:
				if name := s.Names[0].Name; !d.Lparen.IsValid() && ast.IsExported(name) {
					docs[name] = d.Doc
				}
			}
		}
	}
	return docs
}

// receiver returns the name of a method's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

func TestPackagesHaveDocumentation(t *testing.T) {
	said := map[string]bool{}
	for _, f := range sources(t) {
		said[f.pkg] = said[f.pkg] || path.Base(f.path) == "doc.go" && f.tree.Doc != nil
	}
	for pkg, has := range said {
		if !has {
			t.Errorf("%s has no doc.go with a comment", pkg)
		}
	}
}

// fieldTypes returns the names of the types of fields in package events.
func fieldTypes(all []source) (names []string) {
	for _, f := range all {
		if f.pkg != "events" || f.test {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				if is, ok := v.Type.(*ast.Ident); ok && is.Name == "FieldType" {
					names = append(names, v.Names[0].Name)
				}
			}
			return true
		})
	}
	return names
}

// TestFieldTypesAreReadFromTheirTable finds what asks for the type of a field. It should ask form.Types, or for the kind of
// control, so that a new type is a row. Package mailbox tells its own fields by their types.
func TestFieldTypesAreReadFromTheirTable(t *testing.T) {
	all := sources(t)
	types := fieldTypes(all)
	if !slices.Contains(types, "Text") {
		t.Fatalf("the types of fields are %v", types)
	}
	isType := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		from, ok := s.X.(*ast.Ident)
		return ok && from.Name == "events" && slices.Contains(types, s.Sel.Name)
	}
	for _, f := range all {
		if f.test || f.pkg == "mailbox" || f.pkg == "mailbox/form" {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			asks := false
			switch n := n.(type) {
			case *ast.CaseClause:
				asks = slices.ContainsFunc(n.List, isType)
			case *ast.BinaryExpr:
				asks = isType(n.X) || isType(n.Y)
			}
			if asks {
				t.Errorf("%s asks for the type of a field: ask form.ControlOf", f.path)
			}
			return true
		})
	}
}
