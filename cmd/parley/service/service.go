package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"parley"
)

// Options say what is started for whom.
type Options struct {
	Program string // an absolute path
	State   string // the state folder, an absolute path
	Default string // the state folder where none is named
	Home    string // of the person, an absolute path
	Config  string // the person's folder for settings; "" is .config in Home
	System  string // the operating system, as in runtime.GOOS
	User    int    // the person's number

	// Run runs a program and returns what it prints. An error that wraps exec.ErrNotFound says that there is none.
	Run func(ctx context.Context, program string, args ...string) (string, error)
}

// Status is what is known of the service.
type Status struct {
	Manager   string `json:"manager"` // systemd or launchd
	Name      string `json:"name"`
	Path      string `json:"path"` // of the file
	Installed bool   `json:"installed"`
	Running   bool   `json:"running"`
	Starts    bool   `json:"startsAtLogin"`
	Changed   bool   `json:"changed,omitempty"` // by somebody else than this program
	Logs      string `json:"logs"`              // a command that shows the log
}

// mark is in the first lines of a file that this program wrote. Behind it is the digest of all after its line.
const mark = "parley service install wrote this: "

// manager is a program of the system that starts services.
type manager interface {
	name() string
	path() string
	file() []byte // all of it
	install(ctx context.Context) error
	remove(ctx context.Context) error
	status(ctx context.Context) (running, starts bool)
	logs() string
	check(ctx context.Context) error // refuses where the manager does not run
}

func (o Options) manager() (manager, error) {
	switch {
	case !filepath.IsAbs(o.Home):
		return nil, parley.Refuse(parley.InvalidArgument, "there is no home folder to keep a service in")
	case !filepath.IsAbs(o.Program) || !filepath.IsAbs(o.State):
		return nil, parley.Refuse(parley.InvalidArgument, "the program and the state folder of a service are absolute paths")
	case strings.ContainsFunc(o.Program+o.State+o.Home, parley.IsInvisible):
		return nil, parley.Refuse(parley.InvalidArgument, "a path of the service has characters that do not show")
	}
	switch o.System {
	case "linux":
		return systemd{o}, nil
	case "darwin":
		return launchd{o}, nil
	}
	return nil, parley.Refuse(parley.InvalidArgument, "there is neither systemd nor launchd on %s", o.System).
		WithHint("parley start runs the node in the background")
}

// unit returns the name of the service. That of another state folder than the default has a name of its own.
func (o Options) unit() string {
	if o.State == o.Default {
		return "parley"
	}
	sum := sha256.Sum256([]byte(o.State))
	return "parley-" + hex.EncodeToString(sum[:4])
}

// Preview returns the path and the text of the file that Install writes.
func Preview(o Options) (path, text string, err error) {
	m, err := o.manager()
	if err != nil {
		return "", "", err
	}
	return m.path(), string(m.file()), nil
}

// Check refuses where no program of the system starts services for the person.
func Check(ctx context.Context, o Options) error {
	m, err := o.manager()
	if err != nil {
		return err
	}
	return m.check(ctx)
}

// Install writes the file and has the service start, now and when the person signs in. If it is there already, it is replaced.
func Install(ctx context.Context, o Options) (Status, error) {
	m, err := o.manager()
	if err != nil {
		return Status{}, err
	}
	if err := m.check(ctx); err != nil {
		return Status{}, err
	}
	if _, changed, err := installed(m.path()); err != nil {
		return Status{}, err
	} else if changed {
		return Status{}, leftAlone(m.path())
	}
	if err := os.MkdirAll(filepath.Dir(m.path()), 0o755); err != nil { //nolint:gosec // as the system makes it
		return Status{}, fmt.Errorf("make the folder of the service: %w", err)
	}
	if err := replace(m.path(), m.file()); err != nil {
		return Status{}, fmt.Errorf("write the service: %w", err)
	}
	if err := m.install(ctx); err != nil {
		return Status{}, err
	}
	return Of(ctx, o)
}

// Remove stops the service and takes its file away. It reports false if there was none.
func Remove(ctx context.Context, o Options) (removed bool, err error) {
	m, err := o.manager()
	if err != nil {
		return false, err
	}
	there, changed, err := installed(m.path())
	if err != nil || !there {
		return false, err
	}
	if changed {
		return false, leftAlone(m.path())
	}
	if err := m.remove(ctx); err != nil && !errors.Is(err, exec.ErrNotFound) {
		return false, err
	}
	if err := os.Remove(m.path()); err != nil {
		return false, fmt.Errorf("remove the service: %w", err)
	}
	if s, ok := m.(systemd); ok {
		_, _ = s.Run(ctx, "systemctl", "--user", "daemon-reload") // it forgets the file at the next start otherwise
	}
	return true, nil
}

// Of returns the status of the service.
func Of(ctx context.Context, o Options) (Status, error) {
	m, err := o.manager()
	if err != nil {
		return Status{}, err
	}
	s := Status{Manager: m.name(), Name: o.unit(), Path: m.path(), Logs: m.logs()}
	if s.Installed, s.Changed, err = installed(m.path()); err == nil && s.Installed {
		s.Running, s.Starts = m.status(ctx)
	}
	return s, err
}

// Words returns the status as a person reads it.
func (s Status) Words() string {
	if !s.Installed {
		return "not installed: parley service install has the node start when you sign in"
	}
	words := "does not run"
	if s.Running {
		words = "runs"
	}
	if s.Starts {
		words += ", starts when you sign in"
	} else {
		words += ", does not start by itself"
	}
	if s.Changed {
		words += ", its file was changed by hand"
	}
	return fmt.Sprintf("%s (%s %s)\nfile: %s\nlog:  %s", words, s.Manager, s.Name, s.Path, s.Logs)
}

func leftAlone(path string) error {
	return parley.Refuse(parley.InvalidArgument, "%s is left alone: somebody else has written or changed it", path).WithHint("move it away first")
}

// installed reports whether a file is there, and whether it is other than this program wrote.
func installed(path string) (there, changed bool, err error) {
	text, err := os.ReadFile(path) //nolint:gosec // a path of this package
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("read the service: %w", err)
	}
	return true, !isOwn(text), nil
}

// isOwn reports whether this program has written a text.
func isOwn(text []byte) bool {
	_, after, found := bytes.Cut(text, []byte(mark))
	if !found || len(after) < digestLength {
		return false
	}
	_, rest, _ := bytes.Cut(after, []byte("\n"))
	return string(after[:digestLength]) == digestOf(rest)
}

const digestLength = 16

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:digestLength]
}

// marked returns a file of a head, the mark as a comment, and the rest.
func marked(head, before, after, rest string) []byte {
	return []byte(head + before + mark + digestOf([]byte(rest)) + after + "\n" + rest)
}

// replace writes a file in place of another, or leaves that as it was.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".parley-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is gone, or of no use
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// runTime bounds a call of the manager.
const runTime = 30 * time.Second

// Execute is the Run of a real system.
func Execute(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput() //nolint:gosec // programs of this package
	return strings.TrimSpace(string(out)), err
}
