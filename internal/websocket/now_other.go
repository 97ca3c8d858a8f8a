//go:build !unix

package websocket

import "syscall"

// readsNow says whether a connection can be read, and written to, without waiting.
const readsNow = false

// errNotYet is never returned.
const errNotYet = syscall.EINVAL

// readNow is never called.
func readNow(uintptr, []byte) (int, error) { return 0, errNotYet }

// writeNow is never called.
func writeNow(uintptr, []byte) (int, error) { return 0, errNotYet }
