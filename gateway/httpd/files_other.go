//go:build !unix

package httpd

// FileLimit reports that this system bounds the files of a process by memory alone.
func FileLimit() (files uint64, limited bool) { return 0, false }
