//go:build !client

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/keys"
	"parley/cmd/parley/service"
	"parley/cmd/parley/terminal"
)

func uninstallCommand(env *environment) *cobra.Command {
	var purge bool
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Take Parley out of this computer",
		Long: `Takes the hooks out of the settings of coding agents, for you and for the folder that this is run in, has the node no longer
start by itself, and stops it. The mail stays in the state folder, unless --purge deletes it: then it is gone. The program itself is
left, since what installed it takes it away.`,
		Example: "  parley uninstall\n  parley uninstall --purge",
		Args:    exactly(),
	}
	c.Flags().BoolVar(&purge, "purge", false, "delete the mail and the keys too: there is no way back")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := env.checkOutside(c.Context(), env.options.state); err != nil {
			return err
		}
		return uninstall(c.Context(), env, purge)
	}
	return c
}

// uninstall takes away what this program has put on the computer. What fails is said, and does not stop the rest, but for what would
// delete mail under a node that runs.
func uninstall(ctx context.Context, env *environment, purge bool) error {
	state := string(env.options.state)
	failed := removeSetups(ctx, env)
	o, err := serviceOptions(env)
	if err != nil {
		return errors.Join(failed, err)
	}
	removed, err := service.Remove(ctx, o)
	switch {
	case err != nil:
		failed = errors.Join(failed, err)
	case removed:
		env.say("the node no longer starts by itself")
	}
	switch _, err := stopNode(ctx, env); {
	case err == nil:
		env.say("the node is stopped")
	case parley.CodeOf(err) != parley.NotRunning:
		return errors.Join(failed, err)
	}
	if _, err := os.Stat(filepath.Join(state, keys.FileName)); err != nil {
		env.say("there is no mail in %s", terminal.Visible(state))
		return failed
	}
	if !purge {
		env.say("the mail stays in %s: parley uninstall --purge deletes it", terminal.Visible(state))
		return failed
	}
	if failed != nil {
		return failed // something may still ask the node
	}
	if err := os.RemoveAll(state); err != nil {
		return fmt.Errorf("delete the mail: %w", err)
	}
	env.say("the mail in %s is deleted", terminal.Visible(state))
	return nil
}
