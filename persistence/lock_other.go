//go:build !unix

package persistence

import "os"

// lockFile does nothing where there are no locks: the fence alone finds a second process.
func lockFile(*os.File) error { return nil }
