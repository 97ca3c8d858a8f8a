package gateway

import (
	"net/http"
	"os"
	"os/exec"
	"parley/gateway/web"
	"path/filepath"
	"strings"
	"testing"
)

func TestElementsAreServedWithTheirTypes(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for path, kind := range map[string]string{web.ElementsPath: "text/javascript", web.ElementTypesPath: "application/typescript"} {
		status, head, _ := h.get(path, "")
		if status != http.StatusTemporaryRedirect {
			t.Fatalf("%s: %d", path, status)
		}
		status, head, body := h.get("/"+head.Get("Location"), "")
		if status != 200 || !strings.HasPrefix(head.Get("Content-Type"), kind) || !strings.Contains(body, "validateValues") {
			t.Errorf("%s: %d %v", path, status, head)
		}
	}
}

// compilerPath returns the path of the TypeScript compiler.
func compilerPath(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PARLEY_TSC")
	if path == "" {
		if os.Getenv("CI") == "true" && os.Getenv("PARLEY_NO_BROWSER") == "" {
			t.Fatal("PARLEY_TSC names no TypeScript compiler, and the scripts are not to go unchecked")
		}
		t.Skip("the scripts are NOT checked: PARLEY_TSC names no TypeScript compiler")
	}
	return path
}

// TestServedScriptsAreTheirSource has a real parser of the language tell that scripts are served without comments, and with all else.
func TestServedScriptsAreTheirSource(t *testing.T) {
	t.Parallel()
	compiler := compilerPath(t)
	h := openPageServer(t)
	folder := t.TempDir()
	for name := range h.server.site.Assets.Files {
		if filepath.Ext(name) != ".js" {
			continue
		}
		_, _, served := h.get(h.server.site.Assets.URL(name), "")
		if err := os.WriteFile(filepath.Join(folder, name), []byte(served), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := `
const [compiler, source, served] = process.argv.slice(1);
const fs = require("fs"), path = require("path"), ts = require(path.join(path.dirname(compiler), "..", "lib", "typescript.js"));
const plain = (file) => ts.transpileModule(fs.readFileSync(file, "utf8"), { compilerOptions: { removeComments: true, target: "esnext", module: "esnext" } }).outputText;
let many = 0;
for (const name of fs.readdirSync(served)) {
  if (plain(path.join(source, name)) !== plain(path.join(served, name))) console.log(name + " differs");
  many++;
}
console.log(many > 30 ? "compared" : "only " + many);`
	said, err := exec.CommandContext(t.Context(), "node", "-e", script, compiler, "web/assets/static", folder).CombinedOutput()
	if err != nil || string(said) != "compared\n" {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestElementTypesMatchModule runs the TypeScript compiler on elements.d.ts, the module and a usage of both.
func TestElementTypesMatchModule(t *testing.T) {
	t.Parallel()
	compiler := compilerPath(t)
	folder := t.TempDir()
	copies := map[string]string{"testdata/elements/*": "", "web/assets/static/elements.d.ts": "", "web/assets/static/*.js": "module"} // without the types beside it
	for from, to := range copies {
		files, err := filepath.Glob(from)
		if err != nil || len(files) == 0 {
			t.Fatal(from, err)
		}
		if err := os.MkdirAll(filepath.Join(folder, to), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, to, filepath.Base(file)), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if said, err := exec.CommandContext(t.Context(), compiler, "--project", folder).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
