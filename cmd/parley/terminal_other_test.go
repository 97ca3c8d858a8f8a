//go:build unix && !linux

package main

import (
	"fmt"
	"os"
	"testing"
)

// openTerminal skips the test: terminals are opened on Linux only.
func openTerminal(t *testing.T) (control, screen *os.File) {
	t.Skip("terminals are opened on Linux only")
	return nil, nil
}

// onTerminal fails: scripts ask for Linux before they use it.
func onTerminal() {
	fmt.Fprintln(os.Stderr, "terminals are opened on Linux only")
	os.Exit(1)
}
