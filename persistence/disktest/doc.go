//go:build unix

// Package disktest mounts a file system that fails as disks do, for tests. It is in memory, and promises no more than
// POSIX: the contents of a file are on the disk after a flush of the file. The name of a new file is there after a
// flush of its folder. What was done to it can be recorded, and cut off at any point as a power failure would.
package disktest
