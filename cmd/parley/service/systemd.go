package service

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"parley"
)

// systemd starts services of a person on Linux.
type systemd struct{ Options }

func (s systemd) name() string { return "systemd" }

func (s systemd) path() string {
	config := s.Config
	if !filepath.IsAbs(config) {
		config = filepath.Join(s.Home, ".config")
	}
	return filepath.Join(config, "systemd", "user", s.unit()+".service")
}

func (s systemd) file() []byte {
	command := unitWord(s.Program) + " serve"
	if s.State != s.Default {
		command += " --state " + unitWord(s.State)
	}
	return marked("# The node of one person. parley service remove takes it away.\n", "# ", "", `[Unit]
Description=Parley: durable mail and forms for agents

[Service]
Type=notify
EnvironmentFile=-%E/parley/environment
ExecStart=`+command+`
TimeoutStartSec=infinity
TimeoutStopSec=30
Restart=always
RestartSec=2
RestartPreventExitStatus=2
LimitNOFILE=65536
Delegate=yes

[Install]
WantedBy=default.target
`)
}

// unitWord quotes a word of a command in a unit, in which "%" and "$" have a meaning.
func unitWord(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(word) + `"`
}

// check refuses where systemd does not run for the person.
func (s systemd) check(ctx context.Context) error {
	said, err := s.Run(ctx, "systemctl", "--user", "show-environment")
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		said = "systemctl is not on the path"
	}
	return parley.Refuse(parley.InvalidArgument, "systemd does not run for you here, so nothing was changed: %s", firstLine(said, err)).
		WithHint("parley start runs the node in the background until the computer stops")
}

func (s systemd) install(ctx context.Context) error {
	for _, args := range [][]string{{"daemon-reload"}, {"enable", s.unit() + ".service"}, {"restart", s.unit() + ".service"}} {
		if said, err := s.Run(ctx, "systemctl", append([]string{"--user"}, args...)...); err != nil {
			return parley.Refuse(parley.Internal, "systemctl --user %s: %s", strings.Join(args, " "), firstLine(said, err)).WithHint("%s", s.logs())
		}
	}
	return nil
}

func (s systemd) remove(ctx context.Context) error {
	said, err := s.Run(ctx, "systemctl", "--user", "disable", "--now", s.unit()+".service")
	if err != nil && !errors.Is(err, exec.ErrNotFound) && !strings.Contains(said, "connect to bus") && !strings.Contains(said, "not loaded") && !strings.Contains(said, "does not exist") {
		return parley.Refuse(parley.Internal, "systemctl --user disable --now %s.service: %s", s.unit(), firstLine(said, err))
	}
	return nil
}

func (s systemd) status(ctx context.Context) (running, starts bool) {
	active, _ := s.Run(ctx, "systemctl", "--user", "is-active", s.unit()+".service")   // its error is the answer
	enabled, _ := s.Run(ctx, "systemctl", "--user", "is-enabled", s.unit()+".service") // as above
	return active == "active", enabled == "enabled"
}

func (s systemd) logs() string { return fmt.Sprintf("journalctl --user -u %s", s.unit()) }

// firstLine returns what a program said, or why it did not run.
func firstLine(said string, err error) string {
	if line, _, _ := strings.Cut(said, "\n"); line != "" {
		return line
	}
	return err.Error()
}
