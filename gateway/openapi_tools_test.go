package gateway

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenAPIToolsTakeTheDocument runs linters and generators on the document, and compiles what they generate. It needs
// npm install @redocly/cli @stoplight/spectral-cli openapi-typescript @hey-api/openapi-ts typescript in the folder that
// PARLEY_OPENAPI_TOOLS names, and the Go module proxy.
func TestOpenAPIToolsTakeTheDocument(t *testing.T) {
	tools := os.Getenv("PARLEY_OPENAPI_TOOLS")
	if tools == "" {
		t.Skip("PARLEY_OPENAPI_TOOLS names no folder with the tools")
	}
	doc, err := os.ReadFile(filepath.Join("testdata", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	files := map[string]string{
		"openapi.json": string(doc), ".spectral.yaml": "extends: [\"spectral:oas\"]\n", "gen/go.mod": "module gen\n\ngo 1.26.0\n",
		"package.json": `{"type":"module"}`,
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(tools, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	npm := func(name string) string { return filepath.Join(tools, "node_modules", ".bin", name) }
	const tsc = "--noEmit --strict --target es2022 --module esnext --moduleResolution bundler --lib es2022,dom,dom.iterable "
	for _, c := range []struct{ in, program, args string }{
		{"", npm("redocly"), "lint --format=stylish openapi.json"},
		{"", npm("spectral"), "lint --fail-severity=hint openapi.json"},
		{"", npm("openapi-typescript"), "openapi.json -o types.d.ts"},
		{"", npm("tsc"), tsc + "types.d.ts"},
		{"", npm("openapi-ts"), "-i openapi.json -o hey -c @hey-api/client-fetch"},
		{"", npm("tsc"), tsc + "hey/index.ts"},
		{"gen", "go", "run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -generate types,client -package gen -o gen.go ../openapi.json"},
		{"gen", "go", "mod tidy"},
		{"gen", "go", "build ."},
	} {
		run := exec.CommandContext(t.Context(), c.program, strings.Fields(c.args)...)
		run.Dir, run.Env = filepath.Join(folder, c.in), append(os.Environ(), "GOFLAGS=-mod=mod")
		if out, err := run.CombinedOutput(); err != nil || strings.Contains(string(out), "warning ") {
			t.Errorf("%s %s: %v\n%s", filepath.Base(c.program), c.args, err, out)
		}
	}
}
