package bench

import (
	"os"
	"syscall"
)

// datasync brings a file's data to disk, with the metadata that reading it back needs.
func datasync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}
