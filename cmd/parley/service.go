//go:build !client

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"parley"
	"parley/cmd/parley/service"
)

func serviceCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:     "service",
		Short:   "Have the node start when you sign in",
		Long:    "Has the node start when you sign in, by a unit of systemd on Linux or an agent of launchd on macOS, and start again when it fails.",
		Example: "  parley service install\n  parley service status\n  parley service remove",
	}
	c.AddCommand(installServiceCommand(env), serviceStatusCommand(env), removeServiceCommand(env))
	return c
}

func installServiceCommand(env *environment) *cobra.Command {
	var preview bool
	c := &cobra.Command{
		Use:   "install",
		Short: "Start the node now and whenever you sign in",
		Long: `Writes a unit of systemd, or an agent of launchd, for you alone, and starts it. A node that runs already is stopped first.
Where neither is there nothing changes. Settings of the node are in the file that the unit names: docs/service.md has them.`,
		Example: "  parley service install\n  parley service install --print",
	}
	c.Flags().BoolVar(&preview, "print", false, "only show the file that would be written, and where")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o, err := serviceOptions(env)
		if err != nil {
			return err
		}
		if preview {
			path, text, err := service.Preview(o)
			if err != nil {
				return err
			}
			return env.print(map[string]string{"path": path, "text": text}, func() string { return "# " + path + "\n" + text })
		}
		if err := env.checkOutside(c.Context(), env.options.state); err != nil {
			return err
		}
		return installService(c.Context(), env, o)
	}
	return c
}

// installService stops a node that runs in the background, installs the service and waits until its node answers.
func installService(ctx context.Context, env *environment, o service.Options) error {
	if err := service.Check(ctx, o); err != nil {
		return err // with the node as it is
	}
	was, err := service.Of(ctx, o)
	if err != nil {
		return err
	}
	if !was.Running {
		if _, err := stopNode(ctx, env); err != nil && parley.CodeOf(err) != parley.NotRunning {
			return err
		}
	}
	status, err := service.Install(ctx, o)
	if err != nil {
		return err
	}
	if _, err := awaitReady(ctx, env, defaultReady); err != nil {
		return parley.AsError(err).WithHint("%s", status.Logs)
	}
	return env.print(status, status.Words)
}

func serviceStatusCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Say whether the node starts when you sign in",
		Example: "  parley service status",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := serviceOptions(env)
			if err != nil {
				return err
			}
			status, err := service.Of(c.Context(), o)
			if err != nil {
				return err
			}
			return env.print(status, status.Words)
		},
	}
}

func removeServiceCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "remove",
		Short:   "Have the node no longer start by itself",
		Long:    "Stops the service and takes its file away. The mail stays where it is.",
		Example: "  parley service remove",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := serviceOptions(env)
			if err != nil {
				return err
			}
			if err := env.checkOutside(c.Context(), env.options.state); err != nil {
				return err
			}
			removed, err := service.Remove(c.Context(), o)
			if err != nil {
				return err
			}
			return env.print(map[string]bool{"removed": removed}, func() string {
				if !removed {
					return "there was no service"
				}
				return "the node no longer starts by itself"
			})
		},
	}
}

// serviceOptions returns for whom and for which state folder a service is.
func serviceOptions(env *environment) (service.Options, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return service.Options{}, fmt.Errorf("find this program: %w", err)
	}
	state, err := filepath.Abs(string(env.options.state))
	if err != nil {
		return service.Options{}, fmt.Errorf("find the state folder: %w", err)
	}
	home, _ := env.lookup("HOME")
	config, _ := env.lookup("XDG_CONFIG_HOME")
	return service.Options{
		Program: program, State: state, Default: string(defaultState(env.lookup)), Home: home, Config: config, System: runtime.GOOS, User: os.Getuid(), Run: service.Execute,
	}, nil
}
