//go:build unix

package acp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley"
	"parley/actors/runtime"
	"parley/actors/runtime/proctest"
	"parley/actors/runtime/runtimetest"
	"parley/internal/eventually"
)

func TestFileAccessStaysInFolder(t *testing.T) {
	r := agent(t, granted(accessRead, accessWrite))
	folder := r.spec.Folder
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"a": "one\ntwo\nthree\n", "big": strings.Repeat("line\n", 1<<20), "garbage": "\xff\x00"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(folder, "linked")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(path, more string) string {
		return fmt.Sprintf(`call fs/read_text_file {"sessionId":"SESSION","path":%q%s}`, path, more)
	}
	write := func(path string) string {
		return fmt.Sprintf(`call fs/write_text_file {"sessionId":"SESSION","path":%q,"content":"new"}`, path)
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	for _, c := range []struct{ line, want string }{
		{read(in("a"), ""), `result {"content":"one\ntwo\nthree\n"}`},
		{read(in("a"), `,"line":2`), `result {"content":"two\nthree\n"}`},
		{read(in("a"), `,"line":2,"limit":1`), `result {"content":"two\n"}`},
		{read(in("a"), `,"limit":0`), `result {"content":""}`},
		{read(in("a"), `,"line":-5,"limit":1`), `result {"content":"one\n"}`},
		{read(in("a"), `,"line":50`), `result {"content":""}`},
		{read(in("garbage"), ""), "result {\"content\":\"\ufffd\\u0000\"}"},
		{read(in("big"), ""), "error "},
		{read(in("big"), `,"line":1048576`), `result {"content":"line\n"}`},
		{read(in("none"), ""), "error "},
		{read(in("link"), ""), "error "},
		{read(in("linked/secret"), ""), "error "},
		{read(in("pipe"), ""), "error "},
		{read(folder, ""), "error "},
		{read("a", ""), "error "},
		{read(outside, ""), "error "},
		{read(in("../"+filepath.Base(filepath.Dir(outside))+"/secret"), ""), "error "},
		{write(in("a")), "result {}"},
		{read(in("a"), ""), `result {"content":"new"}`},
		{write(in("deep/er/b")), "result {}"},
		{write(in("link")), "error "},
		{write(in("linked/new")), "error "},
		{write(in("pipe")), "error "},
		{write(folder), "error "},
		{write(outside), "error "},
	} {
		d := runtimetest.NewHost(t)
		if got := runtimetest.Begin(t, r, d, prompted(c.line)).Result(); got.Err != nil {
			t.Fatal(got.Err)
		}
		if out := d.Text(runtime.Output); !strings.HasPrefix(out, c.want) || c.want != "error " && out != c.want+"\n" || strings.Contains(out, "secret\"") {
			t.Errorf("%s: %.300s", c.line, out)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "secret" {
		t.Errorf("outside there is %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(outside), "new")); !errors.Is(err, os.ErrNotExist) {
		t.Error("something was written outside")
	}
}

// TestLeasedFilesAreNotWritten has an agent write a file that another has a lease on, and read it.
func TestLeasedFilesAreNotWritten(t *testing.T) {
	r := agent(t, granted(accessRead, accessWrite))
	file := filepath.Join(r.spec.Folder, "a")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := runtimetest.NewHost(t)
	d.MayFunc = leased(file)
	got := runtimetest.Begin(t, r, d, prompted(
		fmt.Sprintf(`call fs/write_text_file {"sessionId":"SESSION","path":%q,"content":"new"}`, file),
		fmt.Sprintf(`call fs/read_text_file {"sessionId":"SESSION","path":%q}`, file),
	)).Result()
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	lines := strings.Split(strings.TrimSpace(d.Text(runtime.Output)), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "error ") || !strings.Contains(lines[0], "leased") || lines[1] != `result {"content":"old"}` {
		t.Errorf("the agent has %q", lines)
	}
}

// leased refuses writes of a file.
func leased(file string) func(string) error {
	return func(f string) error {
		if f == file {
			return parley.Refuse(parley.Leased, "%q is leased by somebody else", f)
		}
		return nil
	}
}

// TestLinkIsNotChangedToALeasedFile has a link lead to a file that is leased as soon as its name was looked at.
func TestLinkIsNotChangedToALeasedFile(t *testing.T) {
	r := agent(t, granted(accessRead, accessWrite))
	folder, err := filepath.EvalSymlinks(r.spec.Folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"free", "held"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file, link := filepath.Join(folder, "held", "a"), filepath.Join(folder, "link")
	if err := errors.Join(os.WriteFile(file, []byte("old"), 0o600), os.Symlink("free", link)); err != nil {
		t.Fatal(err)
	}
	d := runtimetest.NewHost(t)
	asked := 0
	d.MayFunc = func(f string) error {
		if asked++; asked == 1 {
			return errors.Join(os.Remove(link), os.Symlink("held", link))
		}
		return leased(file)(f)
	}
	got := runtimetest.Begin(t, r, d, prompted(fmt.Sprintf(`call fs/write_text_file {"sessionId":"SESSION","path":%q,"content":"new"}`, filepath.Join(link, "a")))).Result()
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if out := d.Text(runtime.Output); !strings.Contains(out, "leased") || asked != 2 {
		t.Errorf("the agent has %q after %d questions", out, asked)
	}
}

// TestLinkMakesNothingInALeasedPlace has a link lead to a folder that is leased as soon as its name was looked at, and a file and folders
// written there that are not there: nothing is made. Where nobody has leased it, they are.
func TestLinkMakesNothingInALeasedPlace(t *testing.T) {
	for _, name := range []string{"new", "deep/er/new"} {
		r := agent(t, granted(accessRead, accessWrite))
		folder, err := filepath.EvalSymlinks(r.spec.Folder)
		if err != nil {
			t.Fatal(err)
		}
		held, link := filepath.Join(folder, "held"), filepath.Join(folder, "link")
		if err := errors.Join(os.Mkdir(filepath.Join(folder, "free"), 0o700), os.Mkdir(held, 0o700), os.Symlink("free", link)); err != nil {
			t.Fatal(err)
		}
		d := runtimetest.NewHost(t)
		asked := 0
		d.MayFunc = func(f string) error {
			if asked++; asked == 1 {
				return errors.Join(os.Remove(link), os.Symlink("held", link))
			}
			if strings.HasPrefix(f, held+"/") {
				return parley.Refuse(parley.Leased, "%q is leased by somebody else", f)
			}
			return nil
		}
		got := runtimetest.Begin(t, r, d, prompted(
			fmt.Sprintf(`call fs/write_text_file {"sessionId":"SESSION","path":%q,"content":"new"}`, filepath.Join(link, name)),
			fmt.Sprintf(`call fs/write_text_file {"sessionId":"SESSION","path":%q,"content":"new"}`, filepath.Join(folder, "free", name)),
		)).Result()
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if made, err := os.ReadDir(held); err != nil || len(made) != 0 {
			t.Errorf("%s: in the leased place is %v, %v", name, made, err)
		}
		if text, err := os.ReadFile(filepath.Join(folder, "free", name)); err != nil || string(text) != "new" {
			t.Errorf("%s: the free file has %q, %v", name, text, err)
		}
		if out := d.Text(runtime.Output); !strings.Contains(out, "leased") {
			t.Errorf("%s: the agent has %q", name, out)
		}
	}
}

func TestCommandsRequireAccess(t *testing.T) {
	r := agent(t, granted(accessTerminal))
	terminal := func(method, id string) string {
		return fmt.Sprintf(`call terminal/%s {"sessionId":"SESSION","terminalId":"terminal-%s"}`, method, id)
	}
	d := runtimetest.NewHost(t)
	got := runtimetest.Begin(t, r, d, prompted(
		`call terminal/create {"sessionId":"SESSION","command":"sh","args":["-c","echo $MINE; echo err >&2; pwd; exit 3"],"env":[{"name":"MINE","value":"v"}]}`,
		terminal("wait_for_exit", "1"), terminal("output", "1"), terminal("release", "1"), terminal("output", "1"),
		`call terminal/create {"sessionId":"SESSION","command":"sh","args":["-c","printf 0123456789; exec sleep 60"],"outputByteLimit":4}`,
		terminal("kill", "2"), terminal("wait_for_exit", "2"), terminal("output", "2"),
		`call terminal/create {"sessionId":"SESSION","command":"/there/is/none"}`,
		`call terminal/create {"sessionId":"SESSION","command":"sh","args":["-c","echo $$ > pid; sleep 60 & sleep 60"]}`,
	)).Result()
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	lines := strings.Split(strings.TrimSpace(d.Text(runtime.Output)), "\n")
	for i, want := range []string{
		`result {"terminalId":"terminal-1"}`, `result {"exitCode":3}`, `result {"exitStatus":{"exitCode":3},"output":"v\nerr\n`, `result {}`, `error {`,
		`result {"terminalId":"terminal-2"}`, `result {}`, `result {"signal":"SIGTERM"}`, `result {"exitStatus":{"signal":"SIGTERM"},"output":"`, `error {`,
		`result {"terminalId":"terminal-3"}`,
	} {
		if len(lines) <= i || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d is not %s: %s", i, want, d.Text(runtime.Output))
		}
	}
	if !strings.Contains(lines[2], r.spec.Folder) || !strings.Contains(lines[2], "err") {
		t.Errorf("the output is %s", lines[2])
	}
	var leader []byte
	eventually.Holds(t, "the command runs", func() bool {
		leader, _ = os.ReadFile(filepath.Join(r.spec.Folder, "pid"))
		return len(leader) > 0
	})
	r.Close()
	proctest.WantGone(t, string(leader))
}
