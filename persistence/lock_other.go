//go:build !unix

package persistence

import "os"

// lockFile has no effect on systems without locks. The fence alone detects a second process there.
func lockFile(*os.File) error { return nil }
