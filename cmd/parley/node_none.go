//go:build client

package main

import "github.com/spf13/cobra"

// addNodeCommands adds nothing: this program is a client of a node.
func addNodeCommands(*cobra.Command, *environment) {}
