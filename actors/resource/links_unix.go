//go:build unix

package resource

import (
	"io/fs"
	"syscall"
)

// hasOtherNames reports whether a file has more names than one, which may be outside of the folder.
func hasOtherNames(f fs.FileInfo) bool {
	s, ok := f.Sys().(*syscall.Stat_t)
	return ok && f.Mode().IsRegular() && s.Nlink > 1
}
