//go:build !linux

package persistence

import "os"

// syncData flushes a file.
func syncData(f *os.File) error { return f.Sync() }
