package gateway

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/actors"
	"parley/actors/runtime"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// register registers a coding agent whose process is not known.
func register(t *testing.T, s *Server, r api.Register) (api.Registered, error) {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.RegisterPath, strings.NewReader(string(body))))
	var done struct {
		api.Registered
		api.Failure
	}
	if err := json.Unmarshal(w.Body.Bytes(), &done); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if done.Error != nil {
		return done.Registered, done.Error
	}
	return done.Registered, nil
}

// TestFolderHasOneGuest registers folders by several paths, and renames and retitles a guest.
func TestFolderHasOneGuest(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	in := func(folder string) api.Registered {
		t.Helper()
		done, err := register(t, s, api.Register{Program: "claude-code", Title: "Claude Code", Folder: folder})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	a, b := in("/home/a/app"), in("/home/b/app")
	if a.Name == b.Name || a != in("/home/a/app/") || !strings.HasPrefix(a.Name, "claude-code-app-") || a.Bound {
		t.Errorf("guests %+v, %+v", a, b)
	}
	if codex, err := register(t, s, api.Register{Program: "codex", Title: "Codex", Folder: "/home/a/app"}); err != nil || codex.Agent == a.Agent {
		t.Errorf("two programs have one guest: %v", err)
	}
	if odd := in("/x/\u202ea b\n/" + strings.Repeat("é", 300)); len(odd.Name) > 60 {
		t.Errorf("guest %+v", odd)
	}
	if root := in("/"); !strings.HasPrefix(root.Name, "claude-code---") {
		t.Errorf("guest %+v", root)
	}
	folder := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	if in(folder) != in(link) {
		t.Error("one folder has two guests")
	}

	guest, err := node.ActAs(t.Context(), a.Name)
	if err != nil {
		t.Fatal(err)
	}
	title := "My app"
	if err := guest.Describe(t.Context(), &title, nil); err != nil {
		t.Fatal(err)
	}
	if err := node.Host().Names().Rename(t.Context(), a.Name, "mine"); err != nil {
		t.Fatal(err)
	}
	if again := in("/home/a/app"); again.Agent != a.Agent || again.Name != "mine" {
		t.Errorf("under another name and title the guest is %+v, want %s", again, a.Agent)
	}
	if _, err := node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: a.Name}); err != nil { // another takes the name
		t.Fatal(err)
	}
	if again := in("/home/a/app"); again.Agent != a.Agent {
		t.Errorf("while another has its name, the guest is %+v, want %s", again, a.Agent)
	}
	for _, wrong := range []api.Register{
		{}, {Program: "codex", Folder: "app"}, {Program: "../codex", Folder: "/"}, {Program: "codex", Title: "a\nb", Folder: "/"},
		{Program: "codex", Folder: "/" + strings.Repeat("x", 1<<13)}, {Program: "codex", Folder: "/", Session: strings.Repeat("x", 129)},
	} {
		if _, err := register(t, s, wrong); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%.80v: %v", wrong, err)
		}
	}
	for as, want := range map[string]parley.Code{"HOST": parley.NotPermitted, "nobody": parley.UnknownName, "mine": ""} {
		wanted := api.Register{Acting: api.Acting{As: as}, Program: "codex", Folder: "/"}
		if _, err := register(t, s, wanted); parley.CodeOf(err) != want {
			t.Errorf("as %s: %v", as, err)
		}
	}
}

// TestProcessesOfCodersAreKept writes a noted process and a session, and reads them as another node's start does. A damaged file keeps the
// node from starting.
func TestProcessesOfCodersAreKept(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	s.coders.file = filepath.Join(t.TempDir(), "coders.json")
	self, err := runtime.ProcessOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	guest := capabilities.ID{ULID: [16]byte{1}, Node: node.ID()}
	session := runtime.Session{ID: "a session", Agent: guest}
	for range 2 {
		if err := s.coders.note(self, session.ID, guest, "/opt/claude"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.coders.note(runtime.Process{}, session.ID, node.Host().ID(), ""); err != nil { // the first counts
		t.Fatal(err)
	}
	other, again := openServer(t)
	again.coders.file = s.coders.file
	if err := again.coders.load(); err != nil {
		t.Fatal(err)
	}
	l := other.Programs().Launcher()
	if got := l.Noted(); len(got) != 1 || got[self] != guest || !slices.Equal(l.Programs(), []string{"/opt/claude"}) || !slices.Equal(l.Sessions(), []runtime.Session{session}) {
		t.Errorf("noted after a restart: %v, %v", got, l.Sessions())
	}
	if err := os.WriteFile(s.coders.file, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Listen(node, Options{
		Socket: filepath.Join(t.TempDir(), "s"), Listen: Off, Coders: s.coders.file, Log: slog.New(slog.DiscardHandler),
	})
	if parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("with a damaged file: %v", err)
	}
}
