package main

import (
	"os"
	"syscall"
)

// datasync brings a file's data to disk, and of its metadata what reading it back needs.
func datasync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}
