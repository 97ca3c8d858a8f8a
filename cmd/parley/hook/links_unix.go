//go:build unix

package hook

import (
	"io/fs"
	"syscall"
)

// linksOf returns how many names a file has.
func linksOf(info fs.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(stat.Nlink)
}
