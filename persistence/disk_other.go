//go:build !unix

package persistence

import "os"

// syncData flushes a file.
func syncData(f *os.File) error { return f.Sync() }

// lockFile has no effect on systems without locks. The fence alone detects a second process there.
func lockFile(*os.File) error { return nil }

// closeLocked closes a file.
func closeLocked(f *os.File) error { return f.Close() }
