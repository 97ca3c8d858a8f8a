//go:build !unix

package httpd

// fileLimit reports that this system bounds the files of a process by memory alone.
func fileLimit() (files uint64, limited bool) { return 0, false }
