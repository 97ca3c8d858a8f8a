// Package disktest mounts a file system that fails as disks do, for tests. It is in memory, and takes POSIX at its
// word: what a file holds is on the disk once the file is flushed, and the name of a new file once its folder is.
package disktest
