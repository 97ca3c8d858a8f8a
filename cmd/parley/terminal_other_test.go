//go:build unix && !linux

package main

import (
	"os"
	"testing"
)

// openTerminal skips the test: terminals are opened on Linux only.
func openTerminal(t *testing.T) (control, screen *os.File) {
	t.Skip("terminals are opened on Linux only")
	return nil, nil
}
