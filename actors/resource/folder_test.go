package resource_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/actors/resource"
	"parley/capabilities"
)

// do reads and invokes a use of a folder.
func do(t *testing.T, kind resource.Kind, r resource.Resource, verb string, in resource.Input) (resource.Input, error) {
	t.Helper()
	call, err := kind.Read(r, verb, in)
	if err != nil {
		return nil, err
	}
	got, err := kind.Invoke(t.Context(), r, call, capabilities.Facet{})
	if err != nil {
		return nil, err
	}
	return record(t, got), nil
}

func TestNothingLeadsOutOfAFolder(t *testing.T) {
	dir, r := folderOf(t)
	outside := filepath.Join(filepath.Dir(dir), "outside")
	for name, to := range map[string]string{"link": "/etc/passwd", "out": outside, "in": "docs", "docs/up": "../other"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".git/hooks", "bare/objects", "bare/refs"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".git/config", "bare/HEAD", "bare/config"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kind := resource.Kinds()[capabilities.KindFolder]
	for _, name := range []string{
		"..", "../x", "docs/../../x", "/etc/passwd", "docs//a.md", "./docs", "docs/.", `docs\a.md`, "a\x00b", "link", "out/x", "in/a.md", "docs/up/b.md",
		".git/config", ".GIT/config", ".git./config", ".git /config", ".g\u200cit/config", "git~1/config", "docs/.git", "bare/config", "bare/HEAD",
	} {
		for verb, in := range map[string]resource.Input{"read": {"path": text(name)}, "write": {"path": text(name), "content": text("evil")}} {
			if _, err := do(t, kind, r, verb, in); parley.CodeOf(err) != parley.NotPermitted && parley.CodeOf(err) != parley.InvalidArgument {
				t.Errorf("%s %q: %v", verb, name, err)
			} else if err != nil && strings.Contains(err.Error(), dir) {
				t.Errorf("%s %q tells where the folder is: %v", verb, name, err)
			}
		}
	}
	got, err := do(t, kind, r, "list", nil)
	if err != nil {
		t.Fatal(err)
	}
	entries, _ := got["entries"].AsList()
	for _, e := range entries {
		one, _ := e.AsRecord()
		if one["name"].Text() == ".git" {
			t.Error("the list shows .git")
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside of the folder are %v (%v)", left, err)
	}
}

// TestNoRepositoryIsMade writes the parts of a repository in each order: git would run what its config names.
func TestNoRepositoryIsMade(t *testing.T) {
	kind := resource.Kinds()[capabilities.KindFolder]
	for _, order := range [][]string{
		{"x/HEAD", "x/objects/a", "x/refs/b"}, {"x/refs/b", "x/objects/a", "x/HEAD"}, {"x/commondir", "x/HEAD"}, {"x/HEAD", "x/commondir"}, {"HEAD", "refs/a"}, {"objects/a", "head", "HEAD"},
	} {
		dir, r := folderOf(t)
		refused := false
		for _, name := range order {
			_, err := do(t, kind, r, "write", resource.Input{"path": text(name), "content": text("ref: refs/heads/main")})
			refused = refused || parley.CodeOf(err) == parley.NotPermitted
		}
		at := filepath.Dir(filepath.Join(dir, order[0]))
		if strings.Contains(order[0], "/") {
			at = filepath.Join(dir, strings.Split(order[0], "/")[0])
			if at == filepath.Join(dir, "objects") {
				at = dir
			}
		}
		_, head := os.Stat(filepath.Join(at, "HEAD"))
		_, refs := os.Stat(filepath.Join(at, "refs"))
		_, objects := os.Stat(filepath.Join(at, "objects"))
		_, common := os.Stat(filepath.Join(at, "commondir"))
		if !refused || head == nil && (refs == nil || objects == nil || common == nil) {
			t.Errorf("%v: refused is %t, and a repository is there", order, refused)
		}
	}
}

// TestAFolderSwappedForALinkIsRefused swaps a folder for a link, to a folder in it and to one outside, while others write and read.
func TestAFolderSwappedForALinkIsRefused(t *testing.T) {
	dir, r := folderOf(t)
	kind := resource.Kinds()[capabilities.KindFolder]
	secret := filepath.Join(filepath.Dir(dir), "secret")
	hooks := filepath.Join(dir, ".git", "hooks")
	for _, name := range []string{secret, hooks} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(name, "a.md"), []byte("private"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	swapped, kept := filepath.Join(dir, "docs"), filepath.Join(dir, "kept")
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			to := secret
			if i%2 == 0 {
				to = hooks
			}
			_ = os.Rename(swapped, kept)
			_ = os.Symlink(to, swapped)
			_ = os.RemoveAll(swapped) // the link, or a folder that a write has made meanwhile
			_ = os.Rename(kept, swapped)
		}
	})
	done := map[string]int{}
	for i := range 1500 {
		verb, in := "read", resource.Input{"path": text("docs/a.md")}
		if i%2 == 0 {
			verb, in = "write", resource.Input{"path": text("docs/new.md"), "content": text("evil")}
		}
		got, err := do(t, kind, r, verb, in)
		done[verb+" "+string(parley.CodeOf(err))]++
		if s, _ := got["text"].AsString(); err == nil && verb == "read" && s != "hello" {
			t.Fatalf("it read %q", s)
		}
	}
	close(stop)
	swaps.Wait()
	for _, name := range []string{secret, hooks} {
		left, err := os.ReadDir(name)
		if err != nil || len(left) != 1 {
			t.Errorf("%s has %v (%v)", name, left, err)
		}
	}
	t.Log(done)
	if done["read "] == 0 || done["write "] == 0 {
		t.Errorf("nothing was read or written: %v", done)
	}
}

func TestAFileIsReadInParts(t *testing.T) {
	dir, r := folderOf(t)
	kind := resource.Kinds()[capabilities.KindFolder]
	whole := strings.Repeat("grüße ", 60_000)
	if err := os.WriteFile(filepath.Join(dir, "long"), []byte(whole), 0o644); err != nil {
		t.Fatal(err)
	}
	read, offset := "", int64(0)
	for {
		got, err := do(t, kind, r, "read", resource.Input{"path": text("long"), "offset": capabilities.Int(offset)})
		if err != nil {
			t.Fatal(err)
		}
		part, _ := got["text"].AsString()
		read += part
		offset += int64(len(part))
		if more, _ := got["more"].AsBool(); !more {
			break
		}
		if part == "" {
			t.Fatal("a part is empty")
		}
	}
	if read != whole {
		t.Errorf("%d bytes were read of %d", len(read), len(whole))
	}
}

// TestWhatIsOpenedIsWhatWasSeen swaps a folder for a link in the very moment between the look at it and its opening.
func TestWhatIsOpenedIsWhatWasSeen(t *testing.T) {
	dir, _ := folderOf(t)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	seen, err := root.Lstat("docs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "docs"), filepath.Join(dir, "kept")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", filepath.Join(dir, "docs")); err != nil {
		t.Fatal(err)
	}
	opened, err := root.OpenRoot("docs")
	if err != nil {
		t.Fatal(err) // it leads to a folder in the root, which the library allows
	}
	if _, err := resource.SameFolder(opened, seen); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("another folder than was seen is refused with %v", err)
	}
}

// TestHardLinksAreNotFollowed reads and writes a file that has another name outside of the folder.
func TestHardLinksAreNotFollowed(t *testing.T) {
	dir, r := folderOf(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("private"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(outside, filepath.Join(dir, "linked")); err != nil {
		t.Skip("there are no hard links here:", err)
	}
	kind := resource.Kinds()[capabilities.KindFolder]
	for verb, in := range map[string]resource.Input{"read": {"path": text("linked")}, "write": {"path": text("linked"), "content": text("evil")}} {
		if got, err := do(t, kind, r, verb, in); parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("%s: %v, %v", verb, got, err)
		}
	}
}

// TestSettingsOfToolsAreNotWritten writes what the tools of whoever works in a folder run by themselves. They can be read.
func TestSettingsOfToolsAreNotWritten(t *testing.T) {
	dir, r := folderOf(t)
	kind := resource.Kinds()[capabilities.KindFolder]
	for _, name := range []string{".envrc", ".mcp.json", ".claude/settings.json", ".CLAUDE /hooks/x", "docs/.Mcp.json", ".vscode/tasks.json", "docs/.husky/pre-commit", ".codex/config.toml", "opencode.json", ".enV\u200crc",
		".hg/hgrc", "sub/.HG/hgrc", ".jj/repo/config.toml", ".sl/config", ".roo/mcp.json", ".kiro/settings/mcp.json", ".amazonq/mcp.json", ".junie/mcp/mcp.json", ".continue/mcpServers/a.yaml", ".crush.json", "crush.json", ".aider.conf.yml", ".helix/languages.toml", ".nvimrc", ".dir-locals.el", "mise.toml", ".mise.local.toml"} {
		if _, err := do(t, kind, r, "write", resource.Input{"path": text(name), "content": text("evil")}); parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("%s is written: %v", name, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, ".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".claude", "settings.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := do(t, kind, r, "read", resource.Input{"path": text(".claude/settings.json")}); err != nil {
		t.Error(err)
	}
	if _, err := resource.CheckFolder(filepath.Join(dir, ".claude"), true); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("the folder of settings can be written to: %v", err)
	}
	if _, err := resource.CheckFolder(filepath.Join(dir, ".claude"), false); err != nil {
		t.Error(err)
	}
}
