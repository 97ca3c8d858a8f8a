// Package shell writes and reads command lines, and writes the scripts by which shells complete them.
//
// What Word and Join return is safe to paste into a POSIX shell. Split understands quotes and backslashes and expands
// nothing. The completion scripts quote every candidate, since others choose the names that are completed. The package
// starts no shell.
package shell
