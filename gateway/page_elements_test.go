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

// TestElementTypesMatchModule runs the TypeScript compiler on elements.d.ts, the module and a usage of both.
func TestElementTypesMatchModule(t *testing.T) {
	t.Parallel()
	compiler := os.Getenv("PARLEY_TSC")
	if compiler == "" {
		if os.Getenv("CI") == "true" && os.Getenv("PARLEY_NO_BROWSER") == "" {
			t.Fatal("PARLEY_TSC names no TypeScript compiler, and the types are not to go unchecked")
		}
		t.Skip("the types of the elements are NOT checked: PARLEY_TSC names no TypeScript compiler")
	}
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
